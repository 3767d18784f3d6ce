"""Partial results of standing aggregates by series and interval: what a batch adds, and what a report adds up.

They are `Groups` with two attributes in front of those of the GROUP BY: the number of the series and that of the
interval. Series with as many attributes and measures share one `Groups`, whatever the names of these are. A batch
writes what its posts add, files are merged like all others, and what no window reaches any more is left out then. A
file that has many intervals of a series has layers above them (STAR's MT-index §5.2: `kinds.aggregates.time_layers`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.kinds.aggregates.group_by import WordCodes, merge, regrouped
from nearcast.kinds.aggregates.group_rows import Amounts, Keys, aggregate_rows
from nearcast.kinds.aggregates.groups import MEASURED, Groups, Shape
from nearcast.kinds.aggregates.series import Series
from nearcast.kinds.aggregates.time_layers import Layers
from nearcast.storage.bundle import bundle_table, open_bundle
from nearcast.storage.files import write_table
from nearcast.storage.posts.coded_columns import Column
from nearcast.storage.posts.values import Spelling

ANY = 1 << 62  # number of groups
AHEAD = 2  # attributes in front: series and interval
FLAT = tuple(each.name for each in fields(Groups) if each.name not in ("shape", "spelling"))


def class_of(shape: Shape) -> Shape:
    """What series must have in common to be kept together."""
    by = ("series", "interval", *(f"by{i}" for i in range(len(shape.by))))
    return Shape(by, tuple(f"of{i}" for i in range(len(shape.measured))), shape.terms)


def interval_of(ts: Any, length: Any) -> Any:
    """Interval j is the time ((j − 1)·length, j·length]."""
    return -(-ts // length)


NONE_REPLACED = frozen(np.empty((0, 3), np.int64))


@dataclass(frozen=True)
class Partials:
    """By class. They stand in place of what was counted before for the intervals of `replaced`: series, and after
    which and up to which interval. `layers`, of partial results that were read from a file, are theirs.
    """

    parts: Mapping[Shape, Groups]
    replaced: np.ndarray = field(default_factory=lambda: NONE_REPLACED)
    layers: Mapping[Shape, Layers] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts.values())

    @classmethod
    def merged(cls, some: Iterable["Partials"]) -> "Partials":
        """Those of several batches, given in their order, added up."""
        by_class: dict[Shape, list[Groups]] = {}
        for each in some:
            if len(each.replaced):
                before = cls({shape: merge(parts, ANY) for shape, parts in by_class.items()})
                kept = before.picked(partial(_outside, each.replaced))
                by_class = {shape: [groups] for shape, groups in kept.parts.items()}
            for shape, groups in each.parts.items():
                by_class.setdefault(shape, []).append(groups)
        return cls({shape: merge(parts, ANY) for shape, parts in by_class.items()})

    def of(self, series: np.ndarray) -> "Partials":
        """Those of some series (sorted numbers)."""
        return self.picked(lambda values: np.isin(values[:, 0], series))

    def of_class(self, shape: Shape) -> "Partials":
        return Partials({each: groups for each, groups in self.parts.items() if each == shape}, self.replaced)

    def picked(self, wanted: Callable[[np.ndarray], np.ndarray]) -> "Partials":
        """Those whose values (series, interval, …) are wanted."""
        parts = {}
        for shape, groups in self.parts.items():
            rows = np.flatnonzero(wanted(groups.values))
            parts[shape] = groups if len(rows) == len(groups) else groups.take(rows)
        return Partials({shape: groups for shape, groups in parts.items() if len(groups)}, self.replaced)

    def relabelled(self, interval: Callable[[np.ndarray], np.ndarray]) -> "Partials":
        """With other intervals, worked out from the values (series, interval, …); equal groups are added up."""
        parts = {}
        for shape, groups in self.parts.items():
            values = groups.values.copy()
            values[:, 1] = interval(values)
            parts[shape] = regrouped(replace(groups, values=values))
        return Partials(parts, self.replaced)

    # -- files ---------------------------------------------------------------------------------------------------------

    def write(self, path: Path) -> int:
        arrays: dict[str, Any] = {"replaced": self.replaced}
        for number, (shape, groups) in enumerate(self.parts.items()):
            layers = Layers.built(groups)
            widths = (len(shape.by), len(shape.measured), int(shape.terms))
            arrays[f"{number}_shape"] = np.array(widths, np.int64)
            arrays[f"{number}_sizes"] = np.array(layers.sizes, np.int64)
            arrays[f"{number}_shifts"] = np.array(layers.shifts, np.int64)
            for part, held in (("", layers.groups), *((("above_", layers.above),) if layers.sizes else ())):
                arrays |= {f"{number}_{part}{name}": getattr(held, name) for name in FLAT}
            arrays[f"{number}_hashes"], arrays[f"{number}_strings"] = groups.spelling.hashes, groups.spelling.strings
        return write_table(path.with_suffix(".arrow"), bundle_table(arrays))

    @classmethod
    def open(cls, path: Path) -> "Partials":
        arrays = open_bundle(path.with_suffix(".arrow"))
        parts, layers = {}, {}
        for name in [name for name in arrays if name.endswith("_shape")]:
            number = name.removesuffix("_shape")
            by, measured, terms = np.asarray(arrays[name]).tolist()
            shape = class_of(Shape(("",) * (by - AHEAD), ("",) * measured, bool(terms)))
            spelling = Spelling(np.asarray(arrays[f"{number}_hashes"]), arrays[f"{number}_strings"])
            sizes, shifts = (tuple(np.asarray(arrays.get(f"{number}_{e}", ())).tolist()) for e in ("sizes", "shifts"))
            held = []
            for part in ("", "above_") if sizes else ("",):
                columns = {each: np.asarray(arrays[f"{number}_{part}{each}"]) for each in FLAT}
                for matrix, width in (("kinds", by), ("values", by), *((name, measured) for name in MEASURED)):
                    columns[matrix] = columns[matrix].reshape(len(columns["posts"]), width)
                held.append(Groups(shape=shape, spelling=spelling, **columns))
            parts[shape] = held[0]
            layers[shape] = Layers(held[0], held[1], sizes, shifts) if sizes else Layers.of(held[0])
        return cls(parts, frozen(np.asarray(arrays["replaced"]).reshape(-1, 3)), layers)


def _outside(ranges: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Which (series, interval, …) lie in none of the ranges."""
    out = np.ones(len(values), np.bool_)
    for series, after, until in ranges.tolist():
        out &= (values[:, 0] != series) | (values[:, 1] <= after) | (values[:, 1] > until)
    return out


# -- counting ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CountedPosts:
    """Posts to be counted: their times and words, and their attributes as columns by name."""

    ts: np.ndarray
    terms: np.ndarray
    offsets: np.ndarray
    column: Callable[[str], Column]

    @cached_property
    def words(self) -> WordCodes:
        return WordCodes.of(self.terms, self.offsets)


class Counters:
    """Series that posts are counted for, batch after batch: those of one class together."""

    def __init__(self, series: Sequence[Series]) -> None:
        self.numbers, self.starts, self.lengths = (
            np.array([getattr(each, name) for each in series], np.int64) for name in ("number", "start", "interval")
        )
        shapes = sorted({each.shape for each in series}, key=lambda shape: (repr(class_of(shape)), repr(shape)))
        places = {shape: place for place, shape in enumerate(shapes)}
        self.shapes = shapes
        kind = np.uint16 if len(shapes) < 1 << 16 else np.int64
        self.shape_of = np.array([places[each.shape] for each in series], kind)

    def count(self, posts: CountedPosts, post: np.ndarray, of: np.ndarray) -> Partials:
        """What pairs of a post and a series (its place) add; a series that has a start, only from then on."""
        since = posts.ts[post] >= self.starts[of]
        if not since.all():
            post, of = post[since], of[since]
        shapes = self.shape_of[of]
        order = np.argsort(shapes, kind="stable")
        post, of = post[order], of[order]
        bounds = np.searchsorted(shapes[order], np.arange(len(self.shapes) + 1))
        intervals = interval_of(posts.ts[post], self.lengths[of])
        parts = {}
        for into, alike in groupby(range(len(self.shapes)), lambda place: class_of(self.shapes[place])):
            there = [place for place in alike if bounds[place] < bounds[place + 1]]
            if not there:
                continue
            begin, end = bounds[there[0]], bounds[there[-1] + 1]
            keys = Keys.empty(end - begin, len(into.by))
            keys.values[:, 0], keys.values[:, 1] = self.numbers[of[begin:end]], intervals[begin:end]
            measured = [Amounts.empty(end - begin) for _ in into.measured]
            spellings = []
            for place in there:
                rows = slice(bounds[place] - begin, bounds[place + 1] - begin)
                some = frozen(post[bounds[place] : bounds[place + 1]])
                for at, name in enumerate(self.shapes[place].by):
                    column = posts.column(name).take(some)
                    keys.fill(rows, AHEAD + at, column)
                    spellings.append(column.values.grouped[1].spelling)
                for amounts, name in zip(measured, self.shapes[place].measured, strict=True):
                    amounts.fill(rows, posts.column(name).take(some))
            words = posts.words.of_posts(post[begin:end]) if into.terms else None
            parts[into] = aggregate_rows(into, keys, measured, spellings, words, ANY)
        return Partials(parts)
