"""The CH-tree, STAR's cost-based hybrid tree of standing aggregates (STAR §5.1).

Guarantees: exact; each pair of a post and a query once; a query added or dropped changes one tree of CAPACITY queries.

Each level of a tree looks at one predicate: x = v by a hash table, y in [lb, ub] by an interval tree, loc in R by a
quadtree, words by an inverted list under the most selective word of the query. A query is passed to the child of its
value, or to the child "none"; what the way to its leaf has not decided is checked there. The order of the predicates
comes from the cost model, once for a tree; inner trees are frozen then. When a tree is full the next is planned from
fresh statistics. Dropped queries are marked, and leave their trees when MOST_INACTIVE have gathered; a tree whose
queries are all dropped goes at once.

Beyond the paper: IN files a query under each of its values, and OR under the key of each alternative; one inner tree
serves all nodes of a level, where the paper has one a node, so that a post is looked up in it once; nodes with no child
but "none" are left out. Predicates of other kinds (<>, IS NULL, NOT IN) are checked in the leaf. Cost of a match: per
tree and level one lookup of the post, per node reached one probe a label, then the queries of the leaves reached.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import frozen
from nearcast.kinds.aggregates.ch_plan import Labelled, PlannedQueries, TreePlan
from nearcast.kinds.aggregates.condition_index import Seen, certain, collected, prepared
from nearcast.kinds.aggregates.condition_predicates import values_of
from nearcast.kinds.aggregates.kernels.ch_build import hash_children, lay_out_nodes
from nearcast.kinds.aggregates.kernels.ch_walk import EQUAL, PLACE, WORDS, Tree, walk
from nearcast.kinds.aggregates.kernels.conditions import CHECK_PLACE, CHECK_TESTS, Posts, Values
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Matches

CAPACITY = 1_000
MOST_INACTIVE = 1_000
MOST_COPIES = 256  # leaves that one query is filed in


@dataclass(frozen=True)
class ChTree:
    """One tree; `inactive` marks the queries that were dropped."""

    plan: TreePlan
    queries: PlannedQueries
    tree: Tree
    inactive: np.ndarray

    @classmethod
    def build(cls, rows: Rows, plan: TreePlan, seen: Seen) -> "ChTree":
        queries = PlannedQueries(rows, seen)
        table, labelled = plan.table(queries)
        return cls(plan, queries, planted(queries, table, labelled), np.zeros(len(rows), np.bool_))

    @property
    def standing(self) -> Rows:
        """Those not dropped."""
        return self.queries.rows.take(np.flatnonzero(~self.inactive))

    def match(self, posts: Posts, values: Values, names: dict[str, int], attributes: pa.Table) -> Matches:
        columns = np.array([names[name] for name in self.queries.predicates.names], np.int64)
        seen = values._replace(columns=frozen(columns))
        inactive = frozen(self.inactive)

        def step(begin: int, out_posts: np.ndarray, out_rows: np.ndarray) -> tuple[int, int, int]:
            return walk(self.tree, self.queries.conditions, posts, seen, inactive, begin, out_posts, out_rows)

        return certain(collected(step, len(posts.lon)), self.queries.predicates, attributes)


def planted(queries: PlannedQueries, table: Tree, labelled: Sequence[Labelled]) -> Tree:
    """The nodes and leaves of a tree."""
    rows, levels = len(queries.rows), len(labelled)
    labelled = bounded(labelled, rows)
    item, labels = np.arange(rows), np.zeros((rows, levels), np.int32)
    picked = np.full((rows, levels), -1, np.int64)  # which of the labels of the level
    for level, found in enumerate(labelled):
        counts = np.bincount(found.rows, minlength=rows)
        starts = np.cumsum(counts) - counts
        copies = np.maximum(counts[item], 1)
        at = np.repeat(np.arange(len(item)), copies)
        inside = np.arange(len(at)) - np.repeat(np.cumsum(copies) - copies, copies)
        item, labels, picked = item[at], labels[at], picked[at]
        some = counts[item] > 0
        picked[some, level] = starts[item[some]] + inside[some]
        labels[some, level] = found.labels[picked[some, level]]
    order = np.lexsort(labels.T[::-1]) if levels else item
    item, labels, picked = item[order], labels[order], picked[order]
    entries, terms = checks(queries, table, labelled, item, picked)
    node_levels, nones, edges, leaf_starts = lay_out_nodes(labels)
    keys, children = hash_children(edges, 1 << (2 * len(edges) + 2).bit_length())
    arrays = dict(
        node_levels=node_levels, nones=nones, child_keys=keys, children=children,
        leaf_starts=leaf_starts, entries=entries, entry_terms=terms,
    )  # fmt: skip
    return table._replace(**{name: frozen(array) for name, array in arrays.items()})


def bounded(labelled: Sequence[Labelled], rows: int) -> list[Labelled]:
    """With at most MOST_COPIES ways to label a row: one with more loses the most numerous of its labels."""
    counts = np.zeros((rows, len(labelled)), np.int64)
    for level, found in enumerate(labelled):
        counts[:, level] = np.bincount(found.rows, minlength=rows)
    while len(many := np.flatnonzero(np.maximum(counts, 1).prod(axis=1, dtype=np.float64) > MOST_COPIES)):
        counts[many, counts[many].argmax(axis=1)] = 0
    out = []
    for level, found in enumerate(labelled):
        keep = counts[found.rows, level] > 0
        out.append(Labelled(found.rows[keep], found.labels[keep], found.decided[keep], found.terms[keep]))
    return out


def checks(
    queries: PlannedQueries, table: Tree, labelled: Sequence[Labelled], item: np.ndarray, picked: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(row and what is left to check, key that must be the first true one or 0) of each copy of a row."""
    predicates, rows = queries.predicates, queries.rows
    place = rows.kinds[item] > 0
    words = queries.word_checks[item]
    tests = np.diff(predicates.starts)[predicates.of_row][item]
    terms = np.zeros(len(item), np.uint64)
    for level, found in enumerate(labelled):
        has = np.flatnonzero(picked[:, level] >= 0)
        which = picked[has, level]
        decided = has[found.decided[which]]
        kind = table.levels[level, 0]
        if kind == PLACE:
            place[decided] = False
        elif kind == WORDS:
            words[decided] = 0
            several = np.bincount(found.rows, minlength=len(rows))[item[has]] > 1
            terms[has[several]] = found.terms[which[several]]
        elif kind == EQUAL:
            tests[decided] -= 1
    return item + CHECK_PLACE * place + words + CHECK_TESTS * (tests > 0), terms


@dataclass(frozen=True)
class ChTrees:
    """The index: trees of at most `capacity` queries each."""

    trees: tuple[ChTree, ...]
    seen: Seen
    none: Rows  # no rows
    capacity: int = CAPACITY

    @classmethod
    def build(cls, rows: Rows, seen: Seen, capacity: int = CAPACITY) -> "ChTrees":
        return cls((), seen, rows.take(np.arange(0)), capacity).insert(rows)

    @cached_property
    def rows(self) -> Rows:
        """Dropped ones, which no match has, included, until they leave their trees."""
        return Rows.join([self.none, *(tree.queries.rows for tree in self.trees)])

    def match(self, posts: PostColumns, attributes: pa.Table) -> Matches:
        names = {
            name: at for at, name in enumerate(sorted({n for t in self.trees for n in t.queries.predicates.names}))
        }
        ready = prepared(posts)
        values = values_of(attributes, tuple(names), ready.order)
        found, base = [Matches(np.empty(0, np.int64), np.empty(0, np.int64), 0)], 0
        for tree in self.trees:
            each = tree.match(ready, values, names, attributes)
            found.append(Matches(each.posts, each.rows + base, each.candidates))
            base += len(tree.queries.rows)
        pairs = (np.concatenate([each.posts for each in found]), np.concatenate([each.rows for each in found]))
        return Matches(*pairs, sum(each.candidates for each in found))

    def seeing(self, seen: Seen) -> "ChTrees":
        """The same, planning its next trees by fresh statistics."""
        return replace(self, seen=seen)

    def insert(self, rows: Rows) -> "ChTrees":
        """Into the last tree while it has room, by its plan; then into new ones."""
        trees, done = list(self.trees), 0
        if trees and (room := self.capacity - int((~trees[-1].inactive).sum())) > 0 and len(rows):
            done = min(room, len(rows))
            joined = Rows.join([trees[-1].standing, rows.take(np.arange(done))])
            trees[-1] = ChTree.build(joined, trees[-1].plan, self.seen)
        while done < len(rows):
            some = rows.take(np.arange(done, min(done + self.capacity, len(rows))))
            recent = Rows.join([trees[-1].queries.rows, some]) if trees else some
            recent = recent.take(np.arange(max(0, len(recent) - self.capacity), len(recent)))
            trees.append(ChTree.build(some, TreePlan.of(recent, self.seen), self.seen))
            done += len(some)
        return replace(self, trees=tuple(trees))

    def remove(self, seqs: np.ndarray) -> "ChTrees":
        trees = []
        for tree in self.trees:
            gone = np.isin(tree.queries.rows.seq, seqs)
            marked = replace(tree, inactive=tree.inactive | gone) if gone.any() else tree
            if not marked.inactive.all():
                trees.append(marked)
        index = replace(self, trees=tuple(trees))
        return index.cleaned() if sum(int(tree.inactive.sum()) for tree in trees) > MOST_INACTIVE else index

    def cleaned(self) -> "ChTrees":
        """Without the queries that were dropped; trees that are left less than half full grow together anew."""
        kept, sparse = [], []
        for tree in self.trees:
            standing = tree.standing if tree.inactive.any() else tree.queries.rows
            if 2 * len(standing) < self.capacity:
                sparse.append(standing)
            else:
                kept.append(ChTree.build(standing, tree.plan, self.seen) if tree.inactive.any() else tree)
        index = replace(self, trees=tuple(kept))
        return index.insert(Rows.join(sparse)) if sparse else index
