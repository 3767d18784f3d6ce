"""Subscriptions to the most relevant, given as columns."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.kinds.relevance.order_by import HALF_WORLD_KM, RELEVANCE
from nearcast.kinds.relevance.query import ASKING, SCORING
from nearcast.kinds.relevance.vectors import Idf
from nearcast.language.bulk_columns import LONGEST_SECONDS, TOO_LONG, BulkColumns, is_whole
from nearcast.language.keywords import MOST_WORDS

_OPERATOR = r"(?:^|\s)(?:AND|OR|NOT)(?:\s|$)"


def encode(bulk: BulkColumns, rows: np.ndarray) -> dict[str, np.ndarray | pa.Array]:
    """The `k` most relevant to the place `lon`, `lat` and `words`, by `alpha`, of the last `window_posts` or
    `window_seconds`, within a reach (`reach_km`) of half the world unless there is one.
    """
    stray = ~rows & np.logical_or.reduce([bulk.is_set(name) for name in SCORING])
    k = bulk.k(rows)
    lon, lat = bulk.place(k > 0, RELEVANCE.first)
    bulk.refuse(stray, "words, reach_km and window_posts ask for the most relevant, which takes an alpha too")
    words = _words(bulk, rows)
    scoring = _scoring(bulk, rows)[rows]
    ends = np.zeros(len(bulk) + 1, np.int32)
    np.cumsum(4 * rows, out=ends[1:])
    lists = pa.ListArray.from_arrays(pa.array(ends), pa.array(scoring.ravel()))
    return {"k": k, "at_lon": lon, "at_lat": lat, "words": words, "scoring": lists}


def _words(bulk: BulkColumns, rows: np.ndarray) -> pa.ListArray:
    """Each word once, in order."""
    texts = bulk.table["words"] if bulk.has("words") else pa.nulls(len(bulk), pa.string())
    joined = pc.fill_null(pc.match_substring_regex(texts, _OPERATOR), False).to_numpy(zero_copy_only=False)
    texts = texts if rows.all() else pc.if_else(pa.array(rows), texts, None)
    terms, offsets, _ = Idf.none().weigh(*bulk.tokenizer.terms(texts))
    sizes = np.diff(offsets)
    for bad, reason in (
        (joined, "RELEVANCE takes plain words, and each that a post has counts; for AND, OR and NOT use text"),
        (sizes == 0, "the most relevant are so to some words: give at least one in words"),
        (sizes > MOST_WORDS, f"words has more than {MOST_WORDS:,} words"),
    ):
        bulk.refuse(bad & rows, reason)
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(terms))


def _scoring(bulk: BulkColumns, rows: np.ndarray) -> np.ndarray:
    """As `RelevanceRole.encode` has it, one row a subscription."""
    alpha, reach, posts, seconds, sync = (
        bulk.numbers(name) for name in (ASKING, "reach_km", "window_posts", "window_seconds", "sync_seconds")
    )
    counted, timed = ~np.isnan(posts), ~np.isnan(seconds)
    reach = np.where(np.isnan(reach), HALF_WORLD_KM, reach)
    window = np.rint(np.where((seconds > 0) & (seconds < LONGEST_SECONDS), seconds, 0.0) * 1e6)
    for bad, reason in (
        (~((alpha >= 0) & (alpha <= 1)), "alpha is not a number from 0 (words alone) to 1 (nearness alone)"),
        (~((reach > 0) & (reach < np.inf)), "reach_km is not a number greater than 0"),
        (~np.isnan(sync), "the most relevant are kept at all times: with alpha, sync_seconds makes no sense"),
        (counted == timed, "the most relevant are those of a window: give window_posts or window_seconds"),
        (counted & ~is_whole(posts), "window_posts is not a whole number of at least 1"),
        (timed & (window < 1), "window_seconds is not a length of time"),
        (window > (np.inf if bulk.longest is None else bulk.longest), TOO_LONG),
    ):
        bulk.refuse(bad & rows, reason)
    return np.stack([alpha, reach, np.where(counted, posts, 0.0), window], axis=1)
