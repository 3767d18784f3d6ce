"""The arrays of a segment of posts: how a table becomes what searches read.

Rows lie sorted by leaf and along the Z-order curve, in blocks under a tree of bounding boxes and time bounds. Words are
numbers into the segment's own vocabulary, the frequent ones small. All but tiny
segments have inverted lists. A sealed one has also term tables at the upper levels of the tree, and shortened texts; a
fresh one, written every batch and soon merged, has not.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.arrays import arrow, chunk, frozen, numbers
from nearcast.common.kernels.packing import exact_places, fixed_places, pack_integers
from nearcast.storage.bundle import Arrays
from nearcast.storage.posts.kernels.blocks import build_tree
from nearcast.storage.posts.kernels.counting import write_tables
from nearcast.storage.posts.kernels.forward import write_forward
from nearcast.storage.posts.kernels.half_bytes import write_halves
from nearcast.storage.posts.kernels.head_words import write_heads
from nearcast.storage.posts.kernels.postings import write_postings
from nearcast.storage.posts.kernels.texts import encode_texts, learn_symbols
from nearcast.storage.posts.kernels.vocabulary import encode_terms, recode_terms
from nearcast.storage.subscriptions.filing import WORLD
from nearcast.storage.subscriptions.kernels.register import z_codes
from nearcast.storage.subscriptions.rows import optional_strings

LISTED_ROWS = 2_000  # from here on a fresh segment has inverted lists: they cost little, and a scan adds up
MOST_BYTES = 1 << 31
SAMPLE = 1 << 17  # bytes of texts from which symbols are learned
LEAF_BITS = 24  # of a sort key; the rest is the Z-order code


@dataclass(frozen=True)
class Vocabulary:
    """The distinct terms of a segment, sorted, and in how many of its posts each occurs."""

    terms: np.ndarray
    counts: np.ndarray


def place_order(table: pa.Table) -> np.ndarray:
    """The order of a segment: by leaf, then along the Z-order curve."""
    z = z_codes(column(table, "lon"), column(table, "lat"), np.array(WORLD))
    leaf = column(table, "leaf").astype(np.uint64)
    return np.argsort(leaf << np.uint64(64 - LEAF_BITS) | z >> np.uint64(LEAF_BITS))


def column(table: pa.Table, name: str) -> np.ndarray:
    return frozen(chunk(table[name]).to_numpy())


def lay_out(table: pa.Table, order: np.ndarray, sealed: bool) -> tuple[Arrays, Vocabulary]:
    """The arrays of the posts `order` of a table (columns as in `post_schema`, `leaf` and `terms`)."""
    order = frozen(order.astype(np.int64, copy=False))
    arrays: Arrays = {}
    facts = [len(order)]
    for name in ("id", "ts"):
        arrays[name], *more = _packed(column(table, name)[order])
        facts += more
    arrays["facts"] = np.array(facts, np.int64)
    arrays["id_text"] = optional_strings(chunk(table["id_text"]))
    if len(arrays["id_text"]):
        arrays["id_text"] = optional_strings(arrays["id_text"].take(arrow(order)))
    arrays["fixed"] = fixed_places(column(table, "lon"), column(table, "lat"), order)
    arrays["exact"] = np.empty(0, np.float64)
    if not len(arrays["fixed"]):
        arrays["exact"] = exact_places(column(table, "lon"), column(table, "lat"), order)
    arrays["leaves"], arrays["leaf_ends"] = _runs(column(table, "leaf")[order])
    words = _words(table, order, arrays, sealed)
    _texts(table, order, arrays, sealed)
    places = frozen(arrays["fixed"]), frozen(arrays["exact"])
    tree = build_tree(*places, frozen(arrays["ts"]), facts[4], facts[3], len(order))
    arrays["boxes"], arrays["times"], arrays["levels"] = tree
    _indexes(arrays, sealed)
    return arrays, words


def _packed(values: np.ndarray) -> tuple[np.ndarray, int, int]:
    """(bytes, base, width of a value)."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    width = max(1, ((high - low).bit_length() + 7) // 8)
    return pack_integers(frozen(values), np.int64(low), width), low, width


def _runs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Equal neighbours once, and where each run ends."""
    ends = np.flatnonzero(np.append(values[1:] != values[:-1], True)[: len(values)]) + 1
    return values[ends - 1].astype(np.int32), ends


def _words(table: pa.Table, order: np.ndarray, arrays: Arrays, sealed: bool) -> Vocabulary:
    lists = chunk(table["terms"])
    offsets = frozen(lists.offsets.to_numpy().astype(np.int64))
    values = lists.values
    if pa.types.is_dictionary(values.type):  # of segments that are merged
        terms = frozen(values.dictionary.to_numpy())
        boundary = int(np.argmin(terms)) if len(terms) and not terms.min() else -1
        seen, bounds, repeats, counts = recode_terms(numbers(values.indices), offsets, order, len(terms), boundary)
    else:
        seen, bounds, repeats, terms, counts = encode_terms(frozen(values.to_numpy()), offsets, order)
    words = np.flatnonzero((terms != 0) & (counts > 0))
    by_count = words[np.argsort(-counts[words].astype(np.int64), kind="stable")]
    ranks = np.zeros(len(terms), np.uint32)
    ranks[by_count] = np.arange(1, len(by_count) + 1, dtype=np.uint32)
    arrays["terms"] = np.concatenate((np.zeros(1, np.uint64), terms[by_count]))
    arrays["counts"] = np.concatenate((np.zeros(1, np.uint32), counts[by_count]))
    by_term = words[np.argsort(terms[words])]
    arrays["by_term"] = ranks[by_term]
    arrays["forward"], arrays["forward_starts"] = write_forward(seen, bounds, repeats, ranks)
    return Vocabulary(terms[by_term], counts[by_term])


def _texts(table: pa.Table, order: np.ndarray, arrays: Arrays, sealed: bool) -> None:
    texts = table["text"]
    if texts.nbytes >= MOST_BYTES:  # more than the offsets of one array of strings can say
        texts = texts.cast(pa.large_string())
    data, bounds = text_buffers(chunk(texts))
    values, lengths = np.empty(0, np.uint64), np.empty(0, np.uint8)
    if sealed:
        picked = frozen(np.ascontiguousarray(order[:: max(1, int(bounds[-1]) // SAMPLE)]))
        values, lengths = learn_symbols(data, bounds, picked)
    arrays["length"] = _lengths(texts)[order]
    arrays["symbols"], arrays["symbol_lengths"] = values, lengths
    arrays["text"], arrays["text_starts"] = encode_texts(data, bounds, order, frozen(values), frozen(lengths))


def _lengths(texts: pa.ChunkedArray) -> np.ndarray:
    """The number of characters of each text, in as few bytes as the greatest needs."""
    lengths = numbers(chunk(pc.utf8_length(texts).fill_null(0)))
    return lengths.astype(np.min_scalar_type(int(lengths.max(initial=0))))


def text_buffers(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of all texts, padded to whole words of 8 bytes and one more, and their offsets; a null is empty."""
    if texts.null_count:
        texts = texts.fill_null("")
    _, offsets, data = texts.buffers()
    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    if not len(texts):
        return frozen(np.zeros(8, np.uint8)), frozen(np.zeros(1, np.int64))
    edges = np.frombuffer(offsets, width)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    begin, end = int(edges[0]), int(edges[-1])
    padded = np.zeros((end - begin) // 8 * 8 + 16, np.uint8)
    if data is not None:
        padded[: end - begin] = np.frombuffer(data, np.uint8)[begin:end]
    return frozen(padded), frozen(edges - begin)


def _indexes(arrays: Arrays, sealed: bool) -> None:
    """Inverted lists and term tables, or the empty arrays of a fresh segment."""
    rows, words = int(arrays["facts"][0]), len(arrays["terms"])
    forward = frozen(arrays["forward"]), frozen(arrays["forward_starts"])
    names: tuple[str, ...] = ("lists", "list_starts", "skip_first", "skip_rows", "skip_at")
    lists = tuple(np.empty(0, kind) for kind in (np.uint8, np.int64, np.int64, np.int32, np.uint32))
    tables = np.empty(0, np.uint8), np.zeros(1, np.int64)
    shorts = np.empty(0, np.uint16)
    small = np.empty(0, np.uint8), shorts, *tables, shorts, np.empty(0, np.int32), shorts
    heads = np.empty(0, np.uint64)
    if sealed or rows >= LISTED_ROWS:
        lists = write_postings(*(*forward, rows, frozen(arrays["counts"])))
    if sealed:
        tables = write_tables(*(*forward, rows, words, frozen(arrays["levels"])))
        small = write_halves(*(*forward, rows, words))
        heads = write_heads(*(*forward, rows))
    names += ("tables", "table_starts", "halves", "tops", "beyond", "beyond_starts", "several", "wide", "rare", "heads")
    arrays.update(zip(names, (*lists, *tables, *small, heads), strict=True))
