"""OpIndex, as STAR compares itself with it (STAR §8.3).

Two levels: queries are partitioned by a pivot attribute, the least frequent of those they have a predicate on; the
predicates of a partition lie in lists by operator. A range is two intervals, of longitude and latitude. For each pivot
that a post has, the satisfied predicates of its lists are counted by query, and a query with all is a candidate; words
are checked last, and so is what has no list (<>, IS NULL, the order of strings). Exact, each pair once.
"""

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.kinds.aggregates.condition_predicates import order_codes
from nearcast.kinds.aggregates.kernels.ch_walk import NUMBERS
from nearcast.kinds.aggregates.kernels.conditions import Posts, Values
from nearcast_papers.baselines.kernels.count_predicates import EQUALS, INTERVALS, PredicateLists, count_posts, hash_runs
from nearcast_papers.baselines.pivoted import Pivoted, least_frequent

PredicateRows = list[tuple[int, int, np.ndarray, np.ndarray, np.ndarray]]  # attribute, kind, rows, two columns


class OpIndex(Pivoted):
    def lay_out(self) -> None:
        names, count = self.queries.predicates.names, len(self.rows)
        found, decided = self._predicates()
        having = np.zeros((count, len(names) + 2), np.bool_)
        needs = np.zeros(count, np.int64)
        for attribute, _, rows, _, _ in found:
            having[rows, attribute] = True
            needs[np.unique(rows)] += 1
        pivots = least_frequent(having)
        order = np.argsort(needs, kind="stable")  # those without a predicate come first
        number = np.empty(count, np.int64)
        number[order] = np.arange(count)
        tests = np.diff(self.queries.predicates.starts)[self.queries.predicates.of_row] > decided
        entries = self.left_open(self.rows.kinds > 1, tests)[order]
        self.lists = self._listed(found, pivots, number, needs[order], entries)

    def _predicates(self) -> tuple[PredicateRows, np.ndarray]:
        """The predicates that have lists, and how many tests of each row they decide."""
        queries, names = self.queries, self.queries.predicates.names
        decided = np.zeros(len(self.rows), np.int64)
        found: PredicateRows = []
        for attribute, name in enumerate(names):
            texts, kinds, codes, sure = queries.equal(name)
            at, rows = queries.having(texts)
            found.append((attribute, EQUALS, rows, kinds[at], codes[at]))
            decided[np.unique(rows[sure[at]])] += 1
            decided[np.unique(rows[~sure[at]])] = -(1 << 32)
            texts, low, high, _ = queries.intervals(name, NUMBERS)
            at, rows = queries.having(texts)
            found.append((attribute, INTERVALS, rows, low[at], high[at]))
        ranged = np.flatnonzero(self.rows.kinds)
        boxes = queries.conditions.boxes[ranged]
        wraps = boxes[:, 0] > boxes[:, 2]
        west = np.concatenate([boxes[:, 0], np.full(wraps.sum(), -np.inf)])
        east = np.concatenate([np.where(wraps, np.inf, boxes[:, 2]), boxes[wraps, 2]])
        both = np.concatenate([ranged, ranged[wraps]])
        found.append((len(names), INTERVALS, both, order_codes(west), order_codes(east)))
        found.append((len(names) + 1, INTERVALS, ranged, order_codes(boxes[:, 1]), order_codes(boxes[:, 3])))
        return found, decided

    def _listed(
        self, found: PredicateRows, pivots: np.ndarray, number: np.ndarray, needs: np.ndarray, entries: np.ndarray
    ) -> PredicateLists:
        lists: list[tuple[int, ...]] = []
        owners, keys, equal = [], [], []
        lows, highs, reach, spans = [], [], [], []
        begin = 0
        for attribute, kind, rows, first, second in found:
            for pivot in np.unique(pivots[rows]):
                some = np.flatnonzero(pivots[rows] == pivot)
                if kind == EQUALS:
                    owners.append(len(lists) << 3 | first[some])
                    keys.append(second[some])
                    equal.append(number[rows[some]])
                    lists.append((pivot, attribute, kind, 0, 0))
                    continue
                some = some[np.argsort(first[some], kind="stable")]
                lists.append((pivot, attribute, kind, begin, begin + len(some)))
                begin += len(some)
                lows.append(first[some])
                highs.append(second[some])
                reach.append(np.maximum.accumulate(second[some]))
                spans.append(number[rows[some]])
        pairs, queries = np.stack([_flat(keys), _flat(owners)]), _flat(equal)
        known, run = np.unique(pairs, axis=1, return_inverse=True)
        order = np.argsort(run.reshape(-1), kind="stable")
        starts = np.searchsorted(run.reshape(-1)[order], np.arange(known.shape[1] + 1))
        hashed = hash_runs(frozen(known[0]), frozen(known[1]), 1 << (2 * known.shape[1] + 2).bit_length())
        arrays = (
            np.array(lists, np.int64).reshape(-1, 5), *hashed, starts, queries[order],
            _flat(lows), _flat(highs), _flat(reach), _flat(spans), needs, entries, np.zeros(len(entries), np.uint64),
        )  # fmt: skip
        return PredicateLists(*map(frozen, arrays))

    def step(
        self, posts: Posts, values: Values, begin: int, out_posts: np.ndarray, out_rows: np.ndarray
    ) -> tuple[int, int, int]:
        places = np.stack([order_codes(posts.lon), order_codes(posts.lat)], axis=1)
        return count_posts(
            self.lists, frozen(places), self.queries.conditions, posts, values, self.inactive,
            begin, out_posts, out_rows,
        )  # fmt: skip


def _flat(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.empty(0, np.int64), *parts]).astype(np.int64)
