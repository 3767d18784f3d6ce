"""From partial aggregates to the rows of an answer: outputs, HAVING, ORDER BY, LIMIT (STAR §3.1)."""

import json
from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.arrays import arrow, frozen, numbers
from nearcast.kinds.aggregates.groups import Groups, Shape
from nearcast.kinds.aggregates.query import AggregateQuery, Measure, Ordering
from nearcast.kinds.aggregates.row_order import in_order
from nearcast.kinds.aggregates.spellings import FEW_STRINGS
from nearcast.kinds.aggregates.top_terms import with_terms
from nearcast.reader.row_format import TERM_LISTS
from nearcast.storage.lexicon import Speller
from nearcast.storage.posts.attributes import satisfied
from nearcast.storage.posts.kernels.term_lists import frequent_terms, least_keys
from nearcast.storage.posts.values import LAST, NO_STRINGS, REAL, STRING, TIME, WHOLE, Values

NUMBERS = 1 << WHOLE | 1 << REAL
SPLIT = 2.0**27 + 1
NO_TERMS = frozen(np.empty(0, np.uint64))


def shape_of(query: AggregateQuery) -> Shape:
    """What has to be kept of posts to answer a query."""
    measures = [each for each in _values_of(query) if isinstance(each, Measure)]
    measured = [each.of for each in measures if each.function != "topk" and each.of is not None]
    return Shape(query.group_by, tuple(dict.fromkeys(measured)), any(each.function == "topk" for each in measures))


def most_terms(query: AggregateQuery) -> int:
    """How many terms of a group its TopK ask for at most."""
    measures = [each.value for each in query.outputs if isinstance(each.value, Measure)]
    return max((each.k for each in measures if each.function == "topk"), default=0)


def _values_of(query: AggregateQuery) -> Iterable[Measure | str]:
    for clause in (query.outputs, query.having, query.order):
        yield from (each.value for each in clause)


def rows_of(
    query: AggregateQuery,
    groups: Groups,
    spell: Speller,
    stop: np.ndarray = NO_TERMS,
    frequent: Callable[[np.ndarray, int], pa.Array] | None = None,
) -> pa.Table:
    """The rows of an answer. `groups` has the shape of the query, or more; `spell` gives terms their words; the terms
    `stop` are left out of TopK. `frequent` gives the k most frequent terms of some groups, where they are not counted
    in `groups`.

    A column has the type of its values; numbers of both kinds are doubles, and values that are not all numbers, all
    times and so on are text. TopK is a list of {term, count}, most frequent first, ties by term.
    """
    builder = RowBuilder(query, groups)
    rows = builder.rows()
    columns = []
    for output in query.outputs:
        value = output.value
        if isinstance(value, Measure) and value.function == "topk":
            columns.append(
                _most_frequent(groups, rows, value.k, spell, stop) if frequent is None else frequent(rows, value.k)
            )
        else:
            columns.append(builder.values(value, rows).arrow())
    return pa.table(columns, [output.name for output in query.outputs])


class RowBuilder:
    """What a query says of each group."""

    def __init__(self, query: AggregateQuery, groups: Groups) -> None:
        self.query, self.groups = query, groups
        self.alone = not query.group_by and not len(groups)  # one row, of no posts
        self._known: dict[str, np.ndarray | None] = {}  # places of strings, by attribute

    def rows(self) -> np.ndarray:
        """The groups that are in the answer, in its order."""
        query = self.query
        rows = np.arange(1 if self.alone else len(self.groups))
        for having in query.having:
            condition = json.dumps([["", having.op, [having.literal]]])
            rows = rows[satisfied(condition, self.values(having.value, rows).table(""))]
        order = [*query.order, *(Ordering(name) for name in query.group_by)]
        if not order or query.limit == 0:
            return rows[: query.limit]
        first = self._key(order[0], rows)
        if query.limit is not None and query.limit < len(rows):  # what comes later than so many need not be sorted
            kept = first <= np.partition(first, query.limit - 1)[query.limit - 1]
            rows, first = rows[kept], first[kept]
        keys = [first, *(self._key(each, rows) for each in order[1:])]
        return rows[in_order(keys)][: query.limit]

    def _key(self, ordering: Ordering, rows: np.ndarray) -> np.ndarray:
        of = ordering.value
        ranks = self._ranks(of, rows) if isinstance(of, str) else self.values(of, rows).ranks()
        return np.where(ranks == LAST, LAST, -ranks) if ordering.descending else ranks

    def values(self, of: Measure | str, rows: np.ndarray) -> Values:
        """An attribute of some groups, or an aggregate that is one value."""
        return self._attribute(of, rows) if isinstance(of, str) else self._measure(of).take(rows)

    def _attribute(self, name: str, rows: np.ndarray) -> Values:
        groups, places, strings = self.groups, self._places(name), NO_STRINGS
        at = groups.shape.by.index(name)
        kinds, values = groups.kinds[:, at][rows], groups.values[:, at][rows]
        if places is not None:
            strings = groups.spelling.strings.take(arrow(places[rows]))
        elif (spelled := kinds == STRING).any():
            some = np.searchsorted(groups.spelling.hashes, np.where(spelled, values, 0))
            indices = pc.if_else(arrow(spelled), arrow(some), pa.scalar(None, pa.int64()))
            strings = groups.spelling.strings.take(indices)
        return Values(kinds, values, strings)

    def _places(self, name: str) -> np.ndarray | None:
        """Where the values of all groups are among the strings that are spelled; None where one is no string."""
        if name not in self._known:
            groups, at = self.groups, self.groups.shape.by.index(name)
            strings = len(groups) > 0 and bool((groups.kinds[:, at] == STRING).all())
            self._known[name] = np.searchsorted(groups.spelling.hashes, groups.values[:, at]) if strings else None
        return self._known[name]

    def _ranks(self, name: str, rows: np.ndarray) -> np.ndarray:
        """By an attribute; strings by the ranks of all that are spelled, where these are few."""
        places = self._places(name)
        few = len(self.groups.spelling.hashes) <= max(FEW_STRINGS, len(self.groups))
        if places is not None and few:
            return self.groups.spelling.ranks[places[rows]]
        return self._attribute(name, rows).ranks()

    def _measure(self, measure: Measure) -> Values:
        groups = self.groups
        if self.alone:
            return _whole(np.zeros(1, np.int64)) if measure.function == "count" else Values.missing(1)
        if measure.of is None:
            return _whole(groups.posts)
        at = groups.shape.measured.index(measure.of)
        seen = groups.seen[:, at]
        match measure.function:
            case "count":
                return _whole(groups.counts[:, at])
            case "min":
                return _extreme(groups.least[:, at], groups.least_low[:, at], seen, times=seen & NUMBERS == 0)
            case "max":
                return _extreme(groups.greatest[:, at], groups.greatest_low[:, at], seen, times=seen & 1 << TIME > 0)
            case "sum":
                return _sum(groups.sums[:, at], groups.low[:, at], seen)
            case _:
                return _mean(groups.sums[:, at], groups.low[:, at], groups.numbers[:, at])


def _whole(values: np.ndarray) -> Values:
    return Values(np.full(len(values), WHOLE, np.uint8), values, NO_STRINGS)


def _extreme(high: np.ndarray, low: np.ndarray, seen: np.ndarray, times: np.ndarray) -> Values:
    """The least or the greatest: a time where `times` says so, else a number, whole where all numbers are."""
    whole = times | ((seen & NUMBERS) == 1 << WHOLE)
    numbers = _numbers(high, low, (seen & (NUMBERS | 1 << TIME)) > 0, whole)
    return Values(np.where(times & (numbers.kinds == WHOLE), TIME, numbers.kinds), numbers.values, NO_STRINGS)


def _sum(high: np.ndarray, low: np.ndarray, seen: np.ndarray) -> Values:
    """Whole where all numbers are."""
    return _numbers(high, low, (seen & NUMBERS) > 0, (seen & NUMBERS) == 1 << WHOLE)


def _numbers(high: np.ndarray, low: np.ndarray, there: np.ndarray, whole: np.ndarray) -> Values:
    """Pairs of doubles as numbers; those said to be whole as such, as long as they have 64 bits."""
    doubles = Values.of_doubles(high + low, there)
    kinds, values = doubles.kinds.copy(), doubles.values.copy()
    easy = there & whole & (np.abs(high) < 2.0**62)
    kinds[easy] = WHOLE
    values[easy] = high[easy].astype(np.int64) + low[easy].astype(np.int64)
    for row in np.flatnonzero(there & whole & (np.abs(high) >= 2.0**62) & (np.abs(high) <= 2.0**63)).tolist():
        exact = int(high[row]) + int(low[row])
        if -(2**63) <= exact < 2**63:
            kinds[row], values[row] = WHOLE, exact
    return Values(kinds, values, NO_STRINGS)


def _mean(high: np.ndarray, low: np.ndarray, count: np.ndarray) -> Values:
    """The quotient, and what is left after it divided once more: the nearest double, but for one very near a tie."""
    n = np.maximum(count, 1).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        first = high / n
        product, rest = _product(first, n)
        second = ((high - product) - rest + low) / n
        mean = np.where(np.isfinite(second), first + second, first)
    return Values.of_doubles(mean, count > 0)


def _product(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Products of doubles, and by how much they are too small (T. J. Dekker, 1971)."""
    product = one * other
    upper = [(each * SPLIT) - (each * SPLIT - each) for each in (one, other)]
    lower = [one - upper[0], other - upper[1]]
    rest = ((upper[0] * upper[1] - product) + upper[0] * lower[1] + lower[0] * upper[1]) + lower[0] * lower[1]
    return product, rest


# -- TopK --------------------------------------------------------------------------------------------------------------


def _most_frequent(groups: Groups, rows: np.ndarray, k: int, spell: Speller, stop: np.ndarray) -> pa.ListArray:
    """The k most frequent terms of some groups, with their counts."""
    if len(stop):
        groups = with_terms(groups, np.flatnonzero(~np.isin(groups.term, stop)))
    some = rows[: len(groups) if k else 0]  # without groups there may be a row
    of, terms, counts = frequent_terms(*groups.term_lists, frozen(some), k)
    known, at = np.unique(terms, return_inverse=True)
    words = spell(known)
    by_word = numbers(pc.rank(words, tiebreaker="dense")).astype(np.int64)
    most, width = counts.max(initial=0), len(known) + 1
    keys, starts = least_keys(frozen(of), frozen((most - counts) * width + by_word[at]), len(rows), k)
    spelled = np.empty(width, np.int64)
    spelled[by_word] = np.arange(len(known))
    pairs = [words.take(arrow(spelled[keys % width])).cast(pa.string()), arrow(most - keys // width)]
    offsets = arrow(starts.astype(np.int32))
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(pairs, ["term", "count"])).cast(TERM_LISTS)
