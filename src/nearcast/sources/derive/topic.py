"""`topic`: what a post is about, by a model that `nearcast topics train` makes (STAR §3.1: a pre-trained LDA)."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import frozen
from nearcast.common.errors import BadInput
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.sources.derive.protocol import Given
from nearcast.sources.kernels.topics import PARTS, topics_of

TABLE_TO = 32.0  # a post with more words on one topic is far beyond where digamma bends


@dataclass(frozen=True)
class Topic:
    """A model: `components` (topics × terms) are the parameters of each topic's distribution over the terms, which are
    sorted, `words` how they are spelled, and `prior` that of a post's topics.

    A post's topic is the number of the greatest share of it that variational inference finds; a post with none of the
    words has no topic. The file is a plain npz of these four and `keep_accents`.
    """

    terms: np.ndarray
    words: np.ndarray
    components: np.ndarray
    prior: float
    tokenizer: Tokenizer

    @cached_property
    def weights(self) -> np.ndarray:
        """A row for each term, scaled to a sum of 1: how much each topic wants it."""
        from scipy.special import digamma

        wanted = np.exp(digamma(self.components) - digamma(self.components.sum(axis=1, keepdims=True))).T
        return frozen(np.ascontiguousarray(wanted / wanted.sum(axis=1, keepdims=True), np.float32))

    @cached_property
    def _table(self) -> np.ndarray:
        from scipy.special import digamma

        steps = np.arange(1, int(TABLE_TO * PARTS) + 1) / PARTS
        return frozen(np.concatenate(([0.0], np.exp(digamma(steps)))))

    def topics(self, terms: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """The topic of each post, -1 for none."""
        return topics_of(*(frozen(terms), frozen(offsets), frozen(self.terms), self.weights, self.prior, self._table))

    def values(self, given: Given) -> pa.Array:
        words = given.terms, given.offsets
        if given.tokenizer != self.tokenizer:
            words = self.tokenizer.terms(given.posts["text"])
        found = self.topics(*words)
        return pa.array(found, mask=found < 0)

    def top_words(self, count: int = 10) -> list[list[str]]:
        """The words that each topic gives most weight to, ties by word."""
        shown = []
        for row in self.components:
            order = np.lexsort((self.words, -row))[:count]
            shown.append([str(self.words[i]) for i in order])
        return shown

    def save(self, path: Path) -> None:
        with open(path, "wb") as file:
            np.savez_compressed(
                file, terms=self.terms, words=self.words, components=self.components.astype(np.float32),
                prior=np.float64(self.prior), keep_accents=np.bool_(self.tokenizer.keep_accents),
            )  # fmt: skip

    @classmethod
    def load(cls, path: Path) -> "Topic":
        try:
            with np.load(path, allow_pickle=False) as file:
                model = cls(
                    file["terms"], file["words"], file["components"].astype(np.float64), float(file["prior"]),
                    Tokenizer(keep_accents=bool(file["keep_accents"])),
                )  # fmt: skip
        except FileNotFoundError:
            raise BadInput(f"{path} is not there: nearcast topics train --out {path} makes a model") from None
        except (OSError, ValueError, KeyError, BadZipFile, EOFError) as error:
            raise BadInput(f"{path} is no model of topics: {str(error).splitlines()[0][:100]}") from None
        if model.components.ndim != 2 or model.components.shape[1] != len(model.terms):
            raise BadInput(f"{path} is no model of topics: its parts do not fit together")
        return model
