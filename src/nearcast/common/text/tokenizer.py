"""The tokeniser: which words a text has.

- Characters are decomposed (NFKD; Hangul syllables stay whole) and case folded; accents, the marks U+0300-U+036F, are
  dropped unless they are to be kept. "Straße" and "STRASSE" are one word; so are, unless accents are kept,
  "café" and "cafe".
- A word is a run of letters, digits, underscores and the marks that follow them. Everything else separates: "wi-fi" is
  two words.
- Scripts without spaces (Han, Kana, Bopomofo, Thai, Lao, Khmer, Myanmar): each character, with its marks, is a word of
  its own, so that any part of a text is found as a phrase. So is each pictograph; joiners, variation selectors and skin
  tones are ignored.
- A URL (http://, https://, www. where a word could begin) is dropped up to the next white space.
- A tag is # or @, not behind a word, and the run of word characters right behind it. Its words stand in their place
  like any others; the tag itself comes after all words, behind a boundary, the term 0: "flash #flood" is
  [flash, flood, 0, #flood]. So no phrase runs into a tag.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearcast.common.errors import BadInput
from nearcast.common.kernels.tokens import BOUNDARY, first_places, spell_out, terms_of
from nearcast.common.text.folding import folding

Strings: TypeAlias = pa.StringArray | pa.LargeStringArray | pa.ChunkedArray
SIGNS = ("#", "@")


@dataclass(frozen=True)
class Tokenizer:
    """Texts to terms, and terms back to words.

    A term is a 64-bit hash of a word's folded code points, never 0, the same in every Python and on every machine.
    A word is reported folded and in composed form (NFC), and is itself tokenised to its term again.
    """

    keep_accents: bool = False

    def terms(self, strings: Strings) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """All terms end to end, and offsets: text i has `terms[offsets[i]:offsets[i + 1]]`; a null has none."""
        table = folding(self.keep_accents)
        parts = [terms_of(*texts, table) for texts in _utf8(strings)]
        if len(parts) == 1:
            return parts[0]
        offsets, count = [np.zeros(1, np.int64)], 0
        for terms, bounds in parts:
            offsets.append(bounds[1:] + count)
            count += terms.size
        return np.concatenate([np.empty(0, np.uint64), *(terms for terms, _ in parts)]), np.concatenate(offsets)

    def tokens(self, text: str) -> list[tuple[str, int]]:
        """(word, term) of each word in order, then of each tag, with its sign; without the boundary."""
        data = text.encode("utf-8", "replace")
        texts = _frozen(np.frombuffer(data, np.uint8)), np.array([0], np.int64), np.array([len(data)], np.int64)
        table = folding(self.keep_accents)
        terms, bounds = terms_of(*texts, table)
        places = np.flatnonzero(terms != BOUNDARY)
        words = _words(*spell_out(*texts, table, bounds, places))
        return list(zip(words, terms[places].tolist(), strict=True))

    def words_of(self, strings: Strings, wanted: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], list[str]]:
        """Those of the wanted terms that occur in the texts, and their words, in order of their first occurrence."""
        table = folding(self.keep_accents)
        missing = np.setdiff1d(np.asarray(wanted, np.uint64), [BOUNDARY])
        found, words = [np.empty(0, np.uint64)], []
        for texts in _utf8(strings):
            terms, bounds = terms_of(*texts, table)
            places = first_places(terms, missing)
            missing = missing[places < 0]
            places = np.sort(places[places >= 0])
            found.append(terms[places])
            words += _words(*spell_out(*texts, table, bounds, places))
        return np.concatenate(found), words

    def term(self, word: str) -> int:
        """The term of one word, or of one tag."""
        tokens = self.tokens(word)
        if len(tokens) == 1:
            return tokens[0][1]
        tags = [token for token in tokens if token[0].startswith(SIGNS)]
        parts = [token[0] for token in tokens if not token[0].startswith(SIGNS)]
        if len(tags) == 1 and tags[0][0][1:] == "".join(parts):
            return tags[0][1]
        if not tokens:
            raise BadInput(f"{word!r} holds no word: give one with a letter or a digit")
        raise BadInput(f"{word!r} is not one word but {len(parts)} ({', '.join(parts)}): give one at a time")


def _utf8(strings: Strings) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]]:
    """The bytes of each chunk, and where each text starts and stops in them; nulls are empty."""
    for chunk in strings.chunks if isinstance(strings, pa.ChunkedArray) else [strings]:
        if not (pa.types.is_string(chunk.type) or pa.types.is_large_string(chunk.type)):
            chunk = chunk.cast(pa.large_string())
        validity, offsets, data = chunk.buffers()
        if len(chunk) == 0 or data is None:
            nowhere = np.zeros(len(chunk), np.int64)
            yield _frozen(np.empty(0, np.uint8)), nowhere, nowhere
            continue
        first, last = chunk.offset, chunk.offset + len(chunk)
        width = np.int64 if pa.types.is_large_string(chunk.type) else np.int32
        edges = np.frombuffer(offsets, width)[first : last + 1].astype(np.int64)
        starts, stops = edges[:-1], edges[1:]
        if chunk.null_count and validity is not None:
            bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little", count=last)[first:]
            stops = np.where(bits, stops, starts)
        yield _frozen(np.frombuffer(data, np.uint8)), starts, stops


def _frozen(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Read-only, as most buffers are: a writable array would be another type to Numba, and compiled for again."""
    data.flags.writeable = False
    return data


def _words(letters: NDArray[np.uint32], edges: NDArray[np.int64]) -> list[str]:
    text = letters.astype("<u4").tobytes().decode("utf-32-le")
    return [_composed(text[start:stop]) for start, stop in pairwise(edges.tolist())]


def _composed(word: str) -> str:
    """The word in NFC, unless it would then be folded to another one (marks out of order, loose Hangul letters)."""
    if word.isascii():
        return word
    composed = unicodedata.normalize("NFC", word)
    again = "".join(c if "\uac00" <= c <= "\ud7a3" else unicodedata.normalize("NFD", c) for c in composed)
    return composed if again == word else word
