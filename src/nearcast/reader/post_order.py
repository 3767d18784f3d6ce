"""Posts of several segments in one order."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.arrays import arrow
from nearcast.reader.answer import SegmentRows
from nearcast.storage.posts.post_segment import PostSegment

Hit = tuple[PostSegment, np.ndarray]


def rows_by_segment(hits: Sequence[Hit], order: np.ndarray) -> tuple[SegmentRows, ...]:
    """The posts `order` of those of all hits end to end, by segment."""
    if len(hits) == 1:
        return (SegmentRows(hits[0][0], hits[0][1][order], np.arange(len(order))),) if len(order) else ()
    bounds = np.cumsum([0, *(len(rows) for _, rows in hits)])
    of = np.searchsorted(bounds[1:], order, side="right").astype(np.int32)
    by_segment = np.argsort(of, kind="stable")
    cuts = np.searchsorted(of[by_segment], np.arange(len(bounds))).tolist()
    inside = (order - bounds[of])[by_segment]
    return tuple(
        SegmentRows(segment, rows[inside[a:b]], by_segment[a:b])
        for (segment, rows), (a, b) in zip(hits, pairwise(cuts), strict=True)
        if a < b
    )


def ordered(hits: Sequence[Hit], first: np.ndarray, at_most: int | None = None) -> np.ndarray:
    """The order of the hits by `first`, then by id: numbers before strings; of one id newer posts first, then by
    place. `at_most` so many, the first ones.
    """
    if at_most is not None and at_most < len(first):
        if at_most == 0:
            return np.empty(0, np.int64)
        kept = np.flatnonzero(first <= np.partition(first, at_most - 1)[at_most - 1])
        bounds = np.cumsum([0, *(len(rows) for _, rows in hits)])
        cuts = np.searchsorted(kept, bounds)
        less = [
            (segment, rows[kept[a:b] - low])
            for (segment, rows), a, b, low in zip(hits, cuts[:-1], cuts[1:], bounds[:-1], strict=True)
        ]
        return kept[ordered(less, first[kept])][:at_most]
    order = np.argsort(first)  # not stable, which takes five times as long: where there are ties, all is sorted again
    by_first = first[order]
    if not (by_first[1:] == by_first[:-1]).any():
        return order
    ids = np.concatenate([segment.ids(rows) for segment, rows in hits])
    ts = np.concatenate([segment.ts_of(rows) for segment, rows in hits])
    places = [segment.places(rows) for segment, rows in hits]
    lon, lat = (np.concatenate([pair[i] for pair in places]) for i in range(2))
    if not any(len(segment.id_text) for segment, _ in hits):
        return np.lexsort((lat, lon, -ts, ids, first))
    texts = pa.chunked_array([segment.id_texts(rows) for segment, rows in hits], pa.string())
    ids[texts.is_valid().to_numpy()] = 0
    numbers = {"first": first, "id": ids, "ts": ts, "lon": lon, "lat": lat}
    table = pa.table({"text": texts, **{name: arrow(values) for name, values in numbers.items()}})
    keys = [("first", "ascending"), ("text", "ascending", "at_start"), ("id", "ascending")]
    rest = [("ts", "descending"), ("lon", "ascending"), ("lat", "ascending")]
    return pc.sort_indices(table, keys + rest).to_numpy().astype(np.int64)
