"""Answers of searches: posts or counted terms. Each iterates as dictionaries and turns into Arrow or pandas."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.arrow_arrays import arrow
from nearcast.common.post_schema import BASE_FIELDS, no_rows
from nearcast.reader.row_format import iso, post_rows
from nearcast.storage.posts.derived import with_derived
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.range_search import Looked


@dataclass(frozen=True)
class Effort:
    """What a search of so many `segments` cost: `looked` says, when it is asked, of each segment that was opened its
    name and how it was searched. `batch` is the committed one that the answer belongs to. `exact_since` is the time
    from which on posts are kept, where some of what was asked for is from before it; None where all of it is there.
    """

    looked: Callable[[], Iterable[tuple[str, Looked]]] = tuple
    segments: int = 0
    batch: int = -1
    exact_since: int | None = None

    @cached_property
    def opened(self) -> tuple[tuple[str, Looked], ...]:
        return tuple(self.looked())

    @property
    def skipped(self) -> int:
        """How many segments were not needed."""
        return self.segments - len({name for name, _ in self.opened})

    @property
    def candidates(self) -> int:
        return sum(looked.candidates for _, looked in self.opened)


@dataclass(frozen=True)
class Picked:
    """Some rows of a segment, and which places of the answer they have."""

    segment: PostSegment
    rows: np.ndarray
    places: np.ndarray


class Answered(ABC):
    """What every kind of answer tells.

    Examples:
        >>> import nearcast
        >>> answer = nearcast.open("state").search("SELECT id FROM stream WHERE text CONTAINS 'flood'")
        >>> len(answer), answer.batch, answer.exact_since, answer.notice
        (2, 1, None, None)
    """

    effort: Effort

    @property
    def candidates_checked(self) -> int:
        return self.effort.candidates

    @property
    def batch(self) -> int:
        """The committed batch that the answer belongs to."""
        return self.effort.batch

    @property
    def exact_since(self) -> int | None:
        """The time (microseconds) from which on the answer is exact; None where all that was asked for is kept."""
        return self.effort.exact_since

    @property
    def notice(self) -> str | None:
        """What a reader of the answer should know of it: that something was left out, or counted coarsely."""
        if self.exact_since is None:
            return None
        return (
            f"posts from before {iso(self.exact_since)} are no longer kept (--keep-size); "
            "what is older was left out (APPROXIMATE counts it coarsely)"
        )

    @property
    def segments_opened(self) -> int:
        return len(self.effort.opened)

    @abstractmethod
    def to_arrow(self) -> pa.Table: ...

    def to_pandas(self) -> Any:
        return self.to_arrow().to_pandas()


@dataclass(frozen=True)
class Found(Answered):
    """Posts in the order of the answer. Which they are is settled; texts and attributes are read when asked for, from
    files that stay mapped whatever the writer does.

    `distance_km` is there for the nearest; `score`, and the version of the idf that it comes from, for the most
    relevant.
    """

    picked: tuple[Picked, ...]
    columns: tuple[str, ...] | None
    effort: Effort = field(default_factory=Effort)
    distance_km: np.ndarray | None = None
    score: np.ndarray | None = None
    idf: int | None = None

    def __len__(self) -> int:
        return sum(len(each.rows) for each in self.picked)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        rows = post_rows(self.posts, self.columns)
        for name, values in self.ranked.items():
            rows = [{**row, name: value} for row, value in zip(rows, values.tolist(), strict=True)]
        return iter(rows)

    @property
    def ranked(self) -> dict[str, np.ndarray]:
        """What the answer is ordered by, where that is no column of a post."""
        by = {"distance_km": self.distance_km, "score": self.score}
        return {name: values for name, values in by.items() if values is not None}

    @cached_property
    def posts(self) -> pa.Table:
        """The posts, with the columns of the model."""
        tables = [each.segment.take(each.rows) for each in self.picked]
        if not tables:
            return no_rows(pa.schema(BASE_FIELDS))
        if len(tables) == 1:
            table, places = tables[0], self.picked[0].places
        else:
            table = pa.concat_tables(tables, promote_options="default")
            places = np.concatenate([each.places for each in self.picked])
        if np.array_equal(places, np.arange(len(places))):
            return table
        back = np.empty(len(places), np.int64)
        back[places] = np.arange(len(places))
        return table.take(arrow(back))

    def to_arrow(self) -> pa.Table:
        """The rows as a table: `id` is a number where all ids are, else a string; `ts` a time."""
        table = with_derived(self.posts, self.columns or ())
        texts = table["id_text"]
        ids = table["id"] if texts.null_count == len(table) else pc.coalesce(texts, table["id"].cast(pa.string()))
        out = {"id": ids, "ts": table["ts"].cast(pa.timestamp("us", tz="UTC"))}
        out |= {name: table[name] for name in ("lon", "lat", "text")}
        by_name: dict[str, list[str]] = {}
        for name in table.column_names:
            if ":" in name:
                by_name.setdefault(name.rpartition(":")[0], []).append(name)
        for name, columns in by_name.items():
            out[name] = (
                table[columns[0]]
                if len(columns) == 1
                else pc.coalesce(*(pc.cast(table[c], pa.string()) for c in columns))
            )
        if self.columns is not None:
            missing = pa.nulls(len(table))
            out = {name: out.get(name, missing) for name in self.columns}
        out |= {name: arrow(values) for name, values in self.ranked.items()}
        return pa.table(out)


@dataclass(frozen=True)
class Counted(Answered):
    """Terms and in how many posts each occurs: most frequent first, ties by term."""

    terms: tuple[str, ...]
    counts: tuple[int, ...]
    posts_counted: int
    effort: Effort = field(default_factory=Effort)

    columns = ("term", "count")

    def __len__(self) -> int:
        return len(self.terms)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return ({"term": term, "count": n} for term, n in zip(self.terms, self.counts, strict=True))

    def to_arrow(self) -> pa.Table:
        return pa.table({"term": pa.array(self.terms, pa.string()), "count": pa.array(self.counts, pa.int64())})


Hit = tuple[PostSegment, np.ndarray]


def pick(hits: Sequence[Hit], order: np.ndarray) -> tuple[Picked, ...]:
    """The posts `order` of those of all hits end to end, by segment."""
    if len(hits) == 1:
        return (Picked(hits[0][0], hits[0][1][order], np.arange(len(order))),) if len(order) else ()
    bounds = np.cumsum([0, *(len(rows) for _, rows in hits)])
    of = np.searchsorted(bounds[1:], order, side="right").astype(np.int32)
    by_segment = np.argsort(of, kind="stable")
    cuts = np.searchsorted(of[by_segment], np.arange(len(bounds))).tolist()
    inside = (order - bounds[of])[by_segment]
    return tuple(
        Picked(segment, rows[inside[a:b]], by_segment[a:b])
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
