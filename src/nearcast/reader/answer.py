"""Answers of searches. Each iterates as dictionaries and turns into Arrow or pandas."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.arrays import arrow
from nearcast.common.post_schema import BASE_FIELDS, no_rows
from nearcast.reader.row_format import iso, post_rows, row_names
from nearcast.storage.posts.derived import with_derived
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.range_search import SegmentScan

Measures = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Effort:
    """What a search of so many `segments` cost: `make_scans` says, when it is asked, of each segment that was opened
    its name and how it was searched. `batch` is the committed one that the answer belongs to. `exact_since` is the time
    from which on posts are kept, where some of what was asked for is from before it; None where all of it is there.
    """

    make_scans: Callable[[], Iterable[tuple[str, SegmentScan]]] = tuple
    segments: int = 0
    batch: int = -1
    exact_since: int | None = None

    @cached_property
    def scans(self) -> tuple[tuple[str, SegmentScan], ...]:
        return tuple(self.make_scans())

    @property
    def skipped(self) -> int:
        """How many segments were not needed."""
        return self.segments - len({name for name, _ in self.scans})

    @property
    def candidates(self) -> int:
        return sum(scan.candidates for _, scan in self.scans)


class Answer(ABC):
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
    def segments_opened(self) -> int:
        return len(self.effort.scans)

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
    def footnote(self) -> str:
        """What a terminal says below the rows, beside their number."""
        return ""

    @property
    @abstractmethod
    def column_names(self) -> tuple[str, ...]:
        """The names that rows have."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __iter__(self) -> Iterator[dict[str, Any]]: ...

    @abstractmethod
    def to_arrow(self) -> pa.Table: ...

    def to_pandas(self) -> Any:
        return self.to_arrow().to_pandas()


@dataclass(frozen=True)
class SegmentRows:
    """Some rows of a segment, and which places of the answer they have."""

    segment: PostSegment
    rows: np.ndarray
    places: np.ndarray


@dataclass(frozen=True)
class PostRows(Answer):
    """Posts in the order of the answer. Which they are is known; texts and attributes are read when asked for, from
    files that stay mapped whatever the writer does.

    `columns` are the SELECT's, None for all. `measures` are what the answer is ordered by where that is no column of a
    post: `distance_km` of the nearest, say. They are the last columns of the rows.
    """

    parts: tuple[SegmentRows, ...]
    columns: tuple[str, ...] | None
    effort: Effort = field(default_factory=Effort)
    measures: Measures = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(len(part.rows) for part in self.parts)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return measured_rows(self.posts, self.columns, self.measures)

    @property
    def column_names(self) -> tuple[str, ...]:
        return measured_names(self.posts, self.columns, self.measures)

    @cached_property
    def posts(self) -> pa.Table:
        """The posts, with the columns of the model."""
        tables = [part.segment.take(part.rows) for part in self.parts]
        if not tables:
            return no_rows(pa.schema(BASE_FIELDS))
        if len(tables) == 1:
            table, places = tables[0], self.parts[0].places
        else:
            table = pa.concat_tables(tables, promote_options="default")
            places = np.concatenate([part.places for part in self.parts])
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
        out |= {name: arrow(values) for name, values in self.measures.items()}
        return pa.table(out)


def measured_rows(posts: pa.Table, columns: Sequence[str] | None, measures: Measures) -> Iterator[dict[str, Any]]:
    """Posts as rows, each with its measures."""
    rows = post_rows(posts, columns)
    for name, values in measures.items():
        rows = [{**row, name: value} for row, value in zip(rows, values.tolist(), strict=True)]
    return iter(rows)


def measured_names(posts: pa.Table, columns: Sequence[str] | None, measures: Measures) -> tuple[str, ...]:
    """The names that such rows have, the measures last."""
    names = columns or row_names(posts.column_names)
    return (*(name for name in names if name not in measures), *measures)
