"""How a CH-tree sees queries: the predicates it looks at, in which order, and the labels they give (STAR §5.1).

A plan is decided beforehand from a set of queries and of posts, and never changed: the order of the predicates by
ascending cost (eq. 5), the quadtree of ranges and the interval trees.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.kinds.aggregates.condition_index import Seen, conditions_of, prepared
from nearcast.kinds.aggregates.condition_predicates import EXACT, Predicates, values_of
from nearcast.kinds.aggregates.kernels.ch_build import grid_boxes, grow_quadtree, hash_keys, leaves_of_boxes
from nearcast.kinds.aggregates.kernels.ch_walk import (
    EQUAL,
    NUMBERS,
    PLACE,
    SIGNS,
    STRINGS,
    TIMES,
    WITHIN,
    WORDS,
    Tree,
    label_visits,
)
from nearcast.kinds.aggregates.kernels.conditions import (
    EQ,
    GE,
    GT,
    HUGE,
    IN,
    LE,
    LT,
    MOMENT,
    REAL,
    STRING,
    TIME,
    WHOLE,
    word_checks,
)
from nearcast.storage.subscriptions.kernels.register import LENGTH, NEGATIVE, file_codes, key_terms
from nearcast.storage.subscriptions.rows import Rows

MOST_LEVELS = 8
CROWDED = 8  # ranges in a leaf of the quadtree that is divided
MOST_LEAVES = 1_024
MOST_REPEATS = 64  # leaves that one range is filed in
MOST_CENTRES = 63
BOTTOM, TOP = -(2**63), 2**63 - 1

# c1, c2, c3 of eq. 5 in nanoseconds: the labels of a post; one query more in a leaf that it reaches; the same where the
# query is to be checked. Measured on trees of 1,000 queries with one predicate each (50 topics; intervals of 2% of the
# axis; ranges of 0.1% of the side about posts of 200 cities; 1-3 words by frequency), 100,000 posts of 9 words.
COSTS = {EQUAL: (8.0, 20.0, 30.0), WITHIN: (52.0, 20.0, 43.0), PLACE: (5.0, 20.0, 16.0), WORDS: (86.0, 20.0, 24.0)}


@dataclass(frozen=True)
class Level:
    """One predicate of the order: its kind, its attribute, and of intervals the axis and centres."""

    kind: int
    name: str = ""
    axis: int = NUMBERS
    centres: tuple[int, ...] = ()


@dataclass(frozen=True)
class Labelled:
    """The labels of rows on a level, sorted by row. `decided`: whoever has the label satisfies the predicate. `terms`
    are the keys, of words.
    """

    rows: np.ndarray
    labels: np.ndarray
    decided: np.ndarray
    terms: np.ndarray

    @classmethod
    def of(
        cls, rows: np.ndarray, labels: np.ndarray, decided: np.ndarray | None = None, terms: np.ndarray | None = None
    ) -> "Labelled":
        order = np.argsort(rows, kind="stable")
        sure = np.zeros(len(rows), np.bool_) if decided is None else decided[order]
        keys = np.zeros(len(rows), np.uint64) if terms is None else terms[order]
        return cls(rows[order].astype(np.int64), labels[order].astype(np.int32), sure, keys)


class PlannedQueries:
    """Some rows, with their words filed under the rarest and their predicates as arrays."""

    def __init__(self, rows: Rows, seen: Seen) -> None:
        code = file_codes(rows.code, rows.code_offsets, frozen(seen.terms), frozen(seen.counts.astype(np.uint64)))
        self.rows = Rows(**{**rows.__dict__, "code": code})
        self.predicates = Predicates.of(rows.predicates, len(rows))
        self.conditions = conditions_of(self.rows, self.predicates)
        self.word_checks = word_checks(self.rows.code, self.rows.code_offsets)

    @cached_property
    def by_text(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows in the order of their predicate texts, and where those of each text begin."""
        order = np.argsort(self.predicates.of_row, kind="stable")
        return order, np.searchsorted(self.predicates.of_row[order], np.arange(len(self.predicates.texts) + 1))

    def having(self, texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(position in `texts`, row) of all rows with one of some predicate texts."""
        order, starts = self.by_text
        counts = starts[texts + 1] - starts[texts]
        at = np.repeat(np.arange(len(texts)), counts)
        inside = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
        return at, order[starts[texts][at] + inside]

    def tests(self, name: str, operators: tuple[int, ...], kinds: tuple[int, ...]) -> np.ndarray:
        """The tests of an attribute by one of some operators and with a literal of one of some kinds."""
        if name not in self.predicates.names:
            return np.empty(0, np.int64)
        tests = self.predicates.tests
        which = (tests[:, 0] == self.predicates.names.index(name)) & np.isin(tests[:, 1], operators)
        some = np.flatnonzero(which & (tests[:, 3] > tests[:, 2]))
        return some[np.isin(self.predicates.literals.parts[tests[some, 2], 0], kinds)]

    def kinds(self) -> list[Level]:
        """The predicates that rows have, intervals without centres."""
        levels = [Level(EQUAL, name) for name in self.predicates.names if len(self.equal(name)[0])]
        for name in self.predicates.names:
            for axis in (NUMBERS, TIMES):
                texts, low, high, _ = self.intervals(name, axis)
                if len(texts):
                    levels.append(Level(WITHIN, name, axis, centres(low, high)))
        if self.rows.kinds.any():
            levels.append(Level(PLACE))
        if len(self.rows.code):
            levels.append(Level(WORDS))
        return levels

    # -- predicates by kind --------------------------------------------------------------------------------------------

    def equal(self, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(text, kind, code, whether the code decides) of each value that `name` may have by = or IN."""
        predicates, literals = self.predicates, self.predicates.literals
        tests = self.tests(name, (EQ, IN), tuple(range(8)))
        tests = tests[np.unique(predicates.owners[tests], return_index=True)[1]]  # of two, one is enough to find it
        counts = predicates.tests[tests, 3] - predicates.tests[tests, 2]
        texts = np.repeat(predicates.owners[tests], counts)
        at = np.arange(len(texts)) - np.repeat(np.cumsum(counts) - counts, counts)
        at += np.repeat(predicates.tests[tests, 2], counts)
        kind, codes = literals.parts[at, 0], literals.codes[at]
        sure = (
            (kind != HUGE) & ~((kind == WHOLE) & (np.abs(literals.reals[at]) >= EXACT)) & ~np.isnan(literals.reals[at])
        )
        moments = np.flatnonzero(kind == MOMENT)
        owner = np.where(np.isin(kind, (WHOLE, REAL, HUGE)), 0, np.where(kind == MOMENT, STRING, kind))
        texts, owner = np.concatenate([texts, texts[moments]]), np.concatenate([owner, np.full(len(moments), TIME)])
        codes = np.concatenate([codes, literals.parts[at[moments], 2]])
        sure = np.concatenate([sure, sure[moments]])
        found = np.unique(np.stack([texts, owner, codes, ~sure]), axis=1)  # of one value written twice, the exact
        first = np.ones(found.shape[1], np.bool_)
        first[1:] = (found[:3, 1:] != found[:3, :-1]).any(axis=0)
        return found[0, first], found[1, first], found[2, first], found[3, first] == 0

    def intervals(self, name: str, axis: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(text, least, greatest, whether it is one of times) of the closed intervals that order predicates on `name`
        make; a string that is no time has an order among strings only.
        """
        predicates, literals = self.predicates, self.predicates.literals
        kinds = (WHOLE, REAL, HUGE) if axis == NUMBERS else (STRING, MOMENT)
        tests = self.tests(name, (LT, LE, GT, GE), kinds)
        texts, which = np.unique(predicates.owners[tests], return_inverse=True)
        low, high, timed = np.full(len(texts), BOTTOM), np.full(len(texts), TOP), np.ones(len(texts), np.bool_)
        at = predicates.tests[tests, 2]
        bounds = literals.codes[at] if axis == NUMBERS else literals.parts[at, 2]
        below = np.isin(predicates.tests[tests, 1], (LT, LE))
        if axis == TIMES:
            np.logical_and.at(timed, which, literals.parts[at, 0] == MOMENT)
        np.minimum.at(high, which[below], bounds[below])
        np.maximum.at(low, which[~below], bounds[~below])
        return texts, low, np.maximum(low, high), timed


def centres(low: np.ndarray, high: np.ndarray) -> tuple[int, ...]:
    """Of an interval tree: quantiles of the ends of intervals."""
    ends = np.unique(np.concatenate([low[low > BOTTOM], high[high < TOP]]))
    count = min(MOST_CENTRES, max(1, len(low) // 4), len(ends))
    at = (np.arange(count) * 2 + 1) * len(ends) // max(1, 2 * count)
    return tuple(int(each) for each in ends[at])


@dataclass(frozen=True)
class TreePlan:
    """The order of predicates, and the quadtree."""

    levels: tuple[Level, ...]
    leaves: np.ndarray

    @classmethod
    def of(cls, rows: Rows, seen: Seen) -> "TreePlan":
        """The predicates of some rows by ascending cost; of more than MOST_LEVELS the rest is checked at the end."""
        queries = PlannedQueries(rows, seen)
        ranges = grid_boxes(frozen(queries.conditions.boxes[rows.kinds > 0]))
        leaves = np.sort(grow_quadtree(frozen(ranges), CROWDED, MOST_LEAVES))
        trial = cls(tuple(queries.kinds()), leaves)
        cheapest = sorted(zip(trial.costs(queries, seen), range(len(trial.levels)), strict=True))
        return cls(tuple(trial.levels[at] for _, at in cheapest[:MOST_LEVELS]), leaves)

    def costs(self, queries: PlannedQueries, seen: Seen) -> list[float]:
        """Cost(P) = c1·|O| + Σ (c2·|Q_o| + c3·|Q_v|), eq. 5, of each level over the posts seen, in nanoseconds.

        Q_o, the queries that need no check of P, has those without P too: they are what P does not filter, and this is
        how the number of queries that have P counts, the third of the paper's factors. (Without them a predicate of one
        query in a thousand would come first.)
        """
        tree, labelled = self.table(queries)
        posts = prepared(seen.posts)
        values = values_of(seen.attributes, queries.predicates.names, posts.order)
        costs = []
        for at, (level, found) in enumerate(zip(self.levels, labelled, strict=True)):
            look, pass_on, check = COSTS[level.kind]
            weights = np.bincount(found.labels, np.where(found.decided, pass_on, check), minlength=self.labels(level))
            free = len(queries.rows) - len(np.unique(found.rows))
            visits = label_visits(tree, posts, values, at, frozen(weights))
            costs.append((look + pass_on * free) * len(seen.posts) + visits)
        return costs

    def labels(self, level: Level) -> int:
        """One more than the greatest label of a level that has no table."""
        return {PLACE: len(self.leaves) + 1, WITHIN: 2 * len(level.centres) + 3}.get(level.kind, 1)

    def table(self, queries: PlannedQueries) -> tuple[Tree, list[Labelled]]:
        """A tree with no nodes yet, and the labels of all rows on each level."""
        keys, owners, numbers = [np.empty(0, np.uint64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        labelled, levels, middles = [], np.zeros((len(self.levels), 5), np.int64), [np.empty(0, np.int64)]
        signs = np.zeros(1 << SIGNS, np.uint64)
        begin = 0
        for at, level in enumerate(self.levels):
            attribute = queries.predicates.names.index(level.name) if level.name in queries.predicates.names else -1
            levels[at] = level.kind, attribute, level.axis, begin, begin + len(level.centres)
            begin += len(level.centres)
            middles.append(np.array(level.centres, np.int64))
            if level.kind == PLACE:
                labelled.append(self._places(queries))
            elif level.kind == WITHIN:
                labelled.append(_within(queries, level))
            else:
                found, kinds, codes = _words(queries) if level.kind == WORDS else _values(queries, level.name)
                known, order = np.unique(np.stack([kinds.astype(np.uint64), codes]), axis=1, return_inverse=True)
                labelled.append(Labelled.of(found.rows, order.reshape(-1) + 1, found.decided, found.terms))
                keys.append(known[1])
                owners.append(at << 3 | known[0].astype(np.int64))
                numbers.append(np.arange(known.shape[1]) + 1)
                if level.kind == WORDS:
                    sign = (known[1] >> np.uint64(58 - SIGNS)).astype(np.int64)
                    np.bitwise_or.at(signs, sign >> 6, np.uint64(1) << (sign & 63).astype(np.uint64))
        every = np.concatenate(keys)
        slots = 1 << (2 * len(every) + 2).bit_length()
        hashed = hash_keys(
            every, np.concatenate(owners).astype(np.int32), np.concatenate(numbers).astype(np.int32), slots
        )
        nothing = (np.empty(0, np.int32), np.empty(0, np.int32), np.zeros(1, np.uint64), np.empty(1, np.int32))
        leaves = (np.zeros(1, np.int64), np.empty(0, np.int64), np.empty(0, np.uint64))
        arrays = (levels, *hashed, signs, self.leaves, np.concatenate(middles), *nothing, *leaves)
        return Tree(*map(frozen, arrays)), labelled

    def _places(self, queries: PlannedQueries) -> Labelled:
        ranged = np.flatnonzero(queries.rows.kinds)
        boxes = grid_boxes(frozen(queries.conditions.boxes[ranged]))
        owners, leaves, covered = leaves_of_boxes(frozen(boxes), frozen(self.leaves), MOST_REPEATS)
        _, first = np.unique(owners * (len(self.leaves) + 1) + leaves, return_index=True)  # two halves may share one
        rows = ranged[owners[first]]
        return Labelled.of(rows, leaves[first] + 1, (covered[first] > 0) & (queries.rows.kinds[rows] == 1))


def _values(queries: PlannedQueries, name: str) -> tuple[Labelled, np.ndarray, np.ndarray]:
    texts, kinds, codes, sure = queries.equal(name)
    at, rows = queries.having(texts)
    order = np.argsort(rows, kind="stable")
    at = at[order]
    return Labelled.of(rows[order], np.zeros(len(rows)), sure[at]), kinds[at], codes[at].view(np.uint64)


def _words(queries: PlannedQueries) -> tuple[Labelled, np.ndarray, np.ndarray]:
    """Each conjunction is filed under its key; a query with one that has no positive word is under none."""
    code, offsets = queries.rows.code, queries.rows.code_offsets
    rows, terms = key_terms(code, offsets)
    worded = np.diff(offsets.astype(np.int64)) > 0
    free = np.zeros(len(queries.rows), np.bool_)
    free[rows[terms == 0]] = True
    keep = worded[rows] & ~free[rows]
    rows, terms = rows[keep].astype(np.int64), terms[keep]
    sizes = np.diff(offsets.astype(np.int64))[rows]
    header = code[offsets[rows]] if len(code) else np.empty(0, np.uint64)
    sure = (sizes == 2) & (header & (LENGTH | NEGATIVE) == 1)
    return Labelled.of(rows, np.zeros(len(rows)), sure, terms), np.zeros(len(rows), np.int64), terms


def _within(queries: PlannedQueries, level: Level) -> Labelled:
    texts, low, high, timed = queries.intervals(level.name, level.axis)
    middles = np.array(level.centres, np.int64)
    begin, end = np.zeros(len(texts), np.int64), np.full(len(texts), len(middles))
    labels = np.zeros(len(texts), np.int64)
    while (open_ := (labels == 0) & (begin < end)).any():
        middle = (begin + end) >> 1
        centre = middles[np.minimum(middle, len(middles) - 1)]
        labels[open_ & (low <= centre) & (centre <= high)] = 2 + middle[open_ & (low <= centre) & (centre <= high)]
        end = np.where(open_ & (high < centre), middle, end)
        begin = np.where(open_ & (low > centre), middle + 1, begin)
    labels = np.where(labels == 0, 2 + len(middles) + begin, labels)
    if level.axis == TIMES:  # among strings they have an order of their own
        texts, labels = (
            np.concatenate([texts[timed], texts]),
            np.concatenate([labels[timed], np.full(len(texts), STRINGS)]),
        )
    at, rows = queries.having(texts)
    return Labelled.of(rows, labels[at])
