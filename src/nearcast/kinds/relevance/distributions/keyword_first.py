"""Keyword-first (Skype §8.2): prefix into l1 parts, and in each of them location over its own workers."""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from nearcast.kinds.relevance.distributions.kd import COLUMNS, KdTree
from nearcast.kinds.relevance.distributions.protocol import Arrays
from nearcast.kinds.relevance.distributions.sample import SubscriberSample
from nearcast.kinds.relevance.distributions.shares import firsts, shares_of
from nearcast.kinds.relevance.distributions.subscriber_arrays import keys_of
from nearcast.kinds.relevance.distributions.subscriber_vocabulary import cut_words, prefixes
from nearcast.kinds.relevance.distributions.word_cut import WordCut
from nearcast.kinds.relevance.vectors import Profiles, Vectors


@dataclass(frozen=True)
class KeywordFirst:
    """A subscriber is held in the parts of its loose prefix, by one worker of each; a post goes to all workers of the
    parts that have its words.
    """

    workers: int
    words: WordCut
    first: np.ndarray
    trees: tuple[KdTree, ...]
    name: ClassVar[str] = "keyword-first"
    follows_theta: ClassVar[bool] = True

    @classmethod
    def build(cls, sample: SubscriberSample, workers: int, parts: int | None = None) -> "KeywordFirst":
        shares = shares_of(workers, parts)
        held = sample.held(by_sum=False)
        words = WordCut.whole(sample.vocabulary, cut_words(len(sample.vocabulary), held, sample.posted, shares))
        mine = _parts(words, sample.profiles, sample.theta)
        theirs = words.of_posts(sample.posts)
        trees = []
        for part, share in enumerate(shares):
            inside = [(each.lon[in_[:, part]], each.lat[in_[:, part]])
                      for each, in_ in ((sample.profiles, mine), (sample.posts, theirs))]  # fmt: skip
            trees.append(KdTree.of(inside[0], inside[1], np.ones(share, np.int64)))
        return cls(workers, words, firsts(shares), tuple(trees))

    def holders(self, profiles: Profiles, theta: np.ndarray, ids: np.ndarray | None = None) -> np.ndarray:
        parts, keys = _parts(self.words, profiles, theta), keys_of(profiles, ids)
        out = np.zeros((len(profiles), self.workers), np.bool_)
        for part, tree in enumerate(self.trees):
            rows = np.flatnonzero(parts[:, part])
            out[rows, self.first[part] + tree.slots(profiles.lon[rows], profiles.lat[rows], keys[rows])] = True
        return out

    def targets(self, posts: Vectors) -> np.ndarray:
        return np.repeat(self.words.of_posts(posts), np.diff(self.first), axis=1)

    def arrays(self) -> Arrays:
        nodes = firsts(np.array([len(tree.axis) for tree in self.trees]))
        joined = {name: np.concatenate([getattr(tree, name) for tree in self.trees]) for name in COLUMNS}
        return {**self.words.arrays(), **joined, "nodes": nodes, "workers_first": self.first}

    @classmethod
    def restored(cls, workers: int, arrays: Arrays) -> "KeywordFirst":
        nodes = arrays["nodes"].tolist()
        trees = tuple(KdTree(*(arrays[name][begin:end] for name in COLUMNS)) for begin, end in pairwise(nodes))
        return cls(workers, WordCut.restored(arrays), arrays["workers_first"], trees)


def _parts(words: WordCut, profiles: Profiles, theta: np.ndarray) -> np.ndarray:
    """bool[subscribers, parts]: those of the loose prefix."""
    ranks = words.vocabulary.ranks(profiles.words)
    return words.of_profiles(profiles, ranks, prefixes(profiles, theta, ranks, by_sum=False), None)
