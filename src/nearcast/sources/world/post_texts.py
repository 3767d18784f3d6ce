"""Texts for many posts at once: pieces to strings and slots, slots to strings, strings to one text a post.

The strings of all posts, taken in order, lie one after the other in one Arrow buffer; a text is a run of them, so
joining costs nothing but new offsets.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nearcast.sources.world.world_vocabulary import SLOT_CODE, SLOTS, WorldVocabulary

Integers = npt.NDArray[np.int64]

OPENER_SHARE, CLOSER_SHARE, BYLINE_SHARE, DECORATION_SHARE = 0.2, 0.3, 0.55, 0.36


def texts(
    vocabulary: WorldVocabulary,
    rng: np.random.Generator,
    groups: dict[str, Integers],
    language: Integers,
    event: Integers,
) -> pa.StringArray:
    """One text a post. `groups` holds, by the keys of SLOTS, which list fills a slot of each post; `event` is 1 for a
    post about an event, else 0."""
    codes, size = _codes(vocabulary, _pieces(vocabulary, rng, groups["phrase"], language, event))
    post = np.repeat(np.arange(len(language)), size)
    for slot, key in SLOTS.items():
        where = np.flatnonzero(codes == SLOT_CODE[slot])
        codes[where] = vocabulary.fillings[slot].pick(groups[key][post[where]], rng.random(len(where)))
    return _join(vocabulary.strings.take(pa.array(codes)), size)


def _pieces(
    vocabulary: WorldVocabulary, rng: np.random.Generator, phrase: Integers, language: Integers, event: Integers
) -> Integers:
    """Opener, sentence, closer, byline and decoration of each post; 0, the empty piece, where it has none."""
    count = len(phrase)
    pieces = np.zeros((count, 5), np.int64)
    chosen = rng.random((5, count))
    present = rng.random((4, count))
    pieces[:, 0] = np.where(present[0] < OPENER_SHARE, vocabulary.openers.pick(language, chosen[0]), 0)
    pieces[:, 1] = vocabulary.sentences.pick(phrase, chosen[1])
    pieces[:, 2] = np.where(present[1] < CLOSER_SHARE, vocabulary.closers.pick(language, chosen[2]), 0)
    pieces[:, 3] = np.where(present[2] < BYLINE_SHARE, vocabulary.bylines.pick(np.zeros_like(event), chosen[3]), 0)
    decorated = present[3] < DECORATION_SHARE + 0.4 * event
    pieces[:, 4] = np.where(decorated, vocabulary.decorations.pick(event, chosen[4]), 0)
    return pieces


def _codes(vocabulary: WorldVocabulary, pieces: Integers) -> tuple[npt.NDArray[np.int32], Integers]:
    """The strings and slots of all posts in a row, and how many belong to each post."""
    flat = pieces.ravel()
    size = vocabulary.piece_size[flat]
    ends = np.cumsum(size)
    position = np.arange(ends[-1]) + np.repeat(vocabulary.piece_start[flat] - (ends - size), size)
    return vocabulary.piece_codes[position], size.reshape(pieces.shape).sum(axis=1)


def _join(strings: pa.StringArray, size: Integers) -> pa.StringArray:
    _, offsets, data = strings.buffers()
    ends = np.frombuffer(offsets, np.int32)[strings.offset : strings.offset + len(strings) + 1]
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(size)])
    return pa.StringArray.from_buffers(len(size), pa.py_buffer(np.ascontiguousarray(ends[bounds])), data)
