"""The routing table: what a partition says about posts and queries, by the million.

Every router is one of these over its own partition. It answers four questions: which leaf stores a post, which leaves
match it, who keeps a subscription, and whether any subscription there may want a post at all. The last is the textual
summary of Tornado §3 and H2 of PS2Stream §IV-C: a bit for each (cell, term) under which a subscription is filed, the
cells being those of a grid of SIDE by SIDE over the extent, finer than the leaves of most trees.
"""

import hashlib
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import freeze, frozen
from nearcast.common.errors import BadInput
from nearcast.common.kernels.grid import grid_leaves, summary_positions
from nearcast.partitioning.allocation import greedy
from nearcast.partitioning.kernels.routing import (
    DEALT,
    MOST_LEAVES,
    GridBands,
    keep_leaves,
    keepers,
    lay_keywords,
    match_leaves,
    nodes_at,
    reporters,
    store_leaves,
    unknown_words,
)
from nearcast.partitioning.learned_words import ANYWHERE, LearnedWords, lengthened
from nearcast.partitioning.partition import BY_POST, BY_QUERY, Partition
from nearcast.partitioning.router_sample import Queries
from nearcast.storage.bundle import bundle_table, open_bundle
from nearcast.storage.files import write_table
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.subscriptions.kernels.register import key_terms
from nearcast.storage.subscriptions.rows import Rows, is_first
from nearcast.storage.subscriptions.subscription_segment import Matches

SIDE = 64  # cells of the summary, as of the grid of PS2Stream §VI-B
NO_WORDS = frozen(np.empty(0, np.uint64))
NO_OFFSETS = frozen(np.zeros(1, np.int64))
EVERYTHING = frozen(np.empty(0, np.uint64))  # a summary that rules nothing out


@dataclass(frozen=True)
class Placed:
    """What decides who keeps a subscription: its box, and its words as in `Rows`."""

    boxes: np.ndarray
    code: np.ndarray
    code_offsets: np.ndarray

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.boxes)


@dataclass(frozen=True)
class Crews:
    """Who owns the leaves: a worker a leaf, and by node the distinct workers."""

    owners: np.ndarray
    starts: np.ndarray
    workers: np.ndarray
    matrix: np.ndarray  # nodes by workers

    def __post_init__(self) -> None:
        freeze(self)


class RoutingTable:
    """Total and deterministic: one storing leaf a post, at least one leaf a query. For every post and every query it
    satisfies, some leaf both matches the post and keeps the query.

    Cost: O(1) a post and its words, O(nodes touched) a query.
    """

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.name, self.extent, self.cells = partition.name, partition.extent, int(partition.cells)
        self.nodes, self.leaves = partition.nodes, partition.leaves
        self._node = _as(partition.node, np.int32)
        self._first = _as(partition.first, np.int32)
        self._extent = _as(np.array(partition.extent), np.float64)
        self._keyword_counts = np.diff(self._keyword_starts)
        self.node_of_leaf = frozen(np.repeat(np.arange(self.nodes, dtype=np.int32), np.diff(self._first)))
        known = np.bincount(self.node_of_leaf, weights=self._keyword_counts, minlength=self.nodes) > 0
        kinds = partition.kind.astype(np.uint8)
        kinds[(kinds == BY_POST) & ~known] = DEALT
        self._kind = frozen(kinds)
        if (np.diff(self._first)[kinds == BY_POST] > MOST_LEAVES).any():
            raise ValueError(f"a node that is cut by the posts' words has at most {MOST_LEAVES} leaves")
        self.shares = bool((kinds == BY_QUERY).any())  # a post may be matched by several leaves
        self.roams = bool((kinds == BY_POST).any())  # where a post is stored depends on its words
        self.textual = self.shares or self.roams
        self.hashes = self.shares or bool((kinds == DEALT).any())  # it depends on its fingerprint
        self._crews: dict[int, Crews] = {}
        self._layouts: dict[int, str] = {}
        self._asked_too = NO_WORDS

    # -- posts ---------------------------------------------------------------------------------------------------------

    def store(
        self,
        lon: np.ndarray,
        lat: np.ndarray,
        terms: np.ndarray = NO_WORDS,
        offsets: np.ndarray = NO_OFFSETS,
        prints: np.ndarray = NO_WORDS,
    ) -> np.ndarray:
        """The leaf that stores each post. `prints` are fingerprints, needed where `hashes`; words where `roams`."""
        nodes = self._nodes_at(lon, lat)
        if not (self.roams or self.hashes):
            return nodes if self._first[-1] == self.nodes else self._first[nodes]
        columns = _posts(terms, offsets if self.roams else np.zeros(len(nodes) + 1, np.int64))
        return store_leaves(
            frozen(nodes), self._kind, self._first, _as(prints, np.uint64), *columns, self._words
        )  # fmt: skip

    def match(
        self,
        lon: np.ndarray,
        lat: np.ndarray,
        terms: np.ndarray,
        offsets: np.ndarray,
        stored: np.ndarray,
        summary: np.ndarray = EVERYTHING,
        cells: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """(starts, leaves): the distinct leaves that must match each post, given the one that stores it. Where nodes
        are cut by the queries' words (`shares`) a summary rules some out, and all for a post that nobody can want;
        `cells` are the posts' in it, where it is not this table's own.
        """
        if not self.shares:
            return np.arange(len(stored) + 1), stored
        if cells is None or not len(summary):
            cells = self.summary_cells(lon, lat) if len(summary) else np.empty(0, np.int32)
        nodes = self.node_of_leaf[stored]
        return match_leaves(
            _as(stored, np.int32), frozen(nodes), self._kind, self._first, *_posts(terms, offsets), self._words,
            frozen(cells), _as(summary, np.uint64),
        )  # fmt: skip

    def learned(self, terms: np.ndarray, offsets: np.ndarray, stored: np.ndarray) -> LearnedWords:
        """What posts teach the leaves that store them, where their words decide (SSTD §4.2): the words that are
        asked for and that the leaf has not had, with the number of posts. Cost: some 10 ns a word.
        """
        if not self.roams or not len(stored):
            return LearnedWords.nothing()
        nodes = frozen(self.node_of_leaf[stored])
        return LearnedWords.of(
            *unknown_words(
                _as(stored, np.int32), nodes, self._kind, self._first, *_posts(terms, offsets), self._words, self._asked
            )
        )

    def taught(self, more: LearnedWords) -> "RoutingTable":
        """The same table with longer keyword lists. Who keeps what stays, and with it the layout."""
        known = (more.leaf == ANYWHERE) | (more.leaf < self.leaves)
        if known.any():
            leaves = more.leaf[known]
            known[known] = (leaves == ANYWHERE) | (self._kind[self.node_of_leaf[leaves]] == BY_POST)
        more = more.take(known)
        if not self.roams or not len(more):
            return self
        out = copy(self)
        out._asked_too = np.union1d(self._asked_too, more.term)
        keywords, starts = lengthened(self.partition.keywords, self._keyword_starts, more)
        out.partition = replace(self.partition, keywords=keywords, keyword_starts=starts)
        out._keyword_counts = np.diff(starts)
        for derived in ("_words", "_asked"):
            out.__dict__.pop(derived, None)
        return out

    def summary_cells(self, lon: np.ndarray, lat: np.ndarray) -> np.ndarray:
        """The cell of the textual summary of each post."""
        return grid_leaves(_as(lon, np.float64), _as(lat, np.float64), self._extent, SIDE)

    def _nodes_at(self, lon: np.ndarray, lat: np.ndarray) -> np.ndarray:
        return nodes_at(_as(lon, np.float64), _as(lat, np.float64), self._extent, self.cells, self._node)

    # -- queries -------------------------------------------------------------------------------------------------------

    def keepers(self, rows: Rows | Placed, workers: int, by_place: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """A matrix (row, worker) of who keeps a subscription, and its one home worker. With `by_place`: of all who may
        store a post that satisfies it.
        """
        crews = self.crews(workers)
        return keepers(
            rows.boxes, *self._filed(rows), self._bands, self._kind, self._first,
            crews.starts, crews.workers, crews.owners, workers, self._words, by_place,
        )  # fmt: skip

    def leaves_of(self, rows: Rows | Queries, by_place: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """(starts, leaves): the distinct leaves that keep each subscription; with `by_place`, all that a search there
        has to look into.
        """
        filed = self._filed(rows)
        return keep_leaves(rows.boxes, *filed, self._bands, self._kind, self._first, self._words, by_place)

    def leaves_in(self, box: tuple[float, float, float, float]) -> np.ndarray:
        """All leaves that a search in a box has to look into."""
        boxes, no_terms = frozen(np.array([box], np.float64)), (frozen(np.zeros(2, np.int64)), NO_WORDS)
        return keep_leaves(boxes, *no_terms, self._bands, self._kind, self._first, self._words, True)[1]

    def _filed(self, rows: Rows | Queries | Placed) -> tuple[np.ndarray, np.ndarray]:
        """(where each row's begin, terms): the terms that rows are filed under."""
        if not self.shares:
            return frozen(np.zeros(len(rows) + 1, np.int64)), NO_WORDS
        filed, terms = key_terms(rows.code, rows.code_offsets)
        return frozen(np.searchsorted(filed, np.arange(len(rows) + 1)).astype(np.int64)), frozen(terms)

    def summary(self, rows: Rows) -> np.ndarray:
        """The bits of the textual summary that these subscriptions set."""
        filed, terms = key_terms(rows.code, rows.code_offsets)
        bits = np.sort(summary_positions(filed, terms, rows.boxes, self._extent, SIDE))
        return bits[is_first(bits)]

    def reported(
        self, matches: Matches, rows: Rows, posts: PostColumns, stored: np.ndarray, worker: int, workers: int
    ) -> Matches:
        """Of the pairs that a worker has found those that it reports: each pair is reported by one."""
        if not self.shares or not len(matches.posts):
            return matches
        who = self.reporters(matches, rows, posts, stored, workers)
        own = (who == worker) | (who < 0)
        return Matches(matches.posts[own], matches.rows[own], matches.candidates)

    def reporters(
        self, matches: Matches, rows: Rows, posts: PostColumns, stored: np.ndarray, workers: int
    ) -> np.ndarray:
        """The worker that reports each pair; -1 where only one can have found it."""
        if not self.shares:
            return np.full(len(matches.posts), np.int32(-1))
        return reporters(
            _as(matches.posts, np.int64), _as(matches.rows, np.int64), frozen(self.node_of_leaf[stored]), self._kind,
            self._first, self.owners(workers), posts.terms, posts.offsets, rows.code, rows.code_offsets, self._words,
        )  # fmt: skip

    # -- workers -------------------------------------------------------------------------------------------------------

    def owners(self, workers: int) -> np.ndarray:
        """The worker of each leaf: as the partition has it, or allotted anew by load for another number of workers."""
        return self.crews(workers).owners

    def crews(self, workers: int) -> Crews:
        if workers not in self._crews:
            p = self.partition
            owners = p.owner.astype(np.int32) if workers == p.workers else greedy(p.load, workers)
            matrix = np.zeros((self.nodes, workers), np.bool_)
            matrix[self.node_of_leaf, owners] = True
            starts = np.concatenate([[0], np.cumsum(matrix.sum(axis=1))]).astype(np.int64)
            self._crews[workers] = Crews(owners, starts, np.nonzero(matrix)[1].astype(np.int32), matrix)
        return self._crews[workers]

    def whereabouts(self, leaves: np.ndarray, workers: int) -> np.ndarray:
        """The worker that has stored an earlier copy of each post, if there is one; -1 where any may have."""
        return np.where(self._kind[self.node_of_leaf[leaves]] == BY_POST, np.int32(-1), self.owners(workers)[leaves])

    def is_textual(self, leaves: np.ndarray) -> np.ndarray:
        """Which of some leaves lie in nodes where a duplicate may go to other workers than the first copy."""
        kinds = self._kind[self.node_of_leaf[leaves]]
        return (kinds == BY_QUERY) | (kinds == BY_POST)

    def layout(self, workers: int) -> str:
        """A digest of all that decides who keeps what. Keywords that posts have brought are no part of it."""
        if workers not in self._layouts:
            self._layouts[workers] = self._layout(workers)
        return self._layouts[workers]

    def _layout(self, workers: int) -> str:
        p = self.partition
        digest = hashlib.blake2b(repr((p.extent, self.cells, workers)).encode(), digest_size=8)
        for array in (self._node, self._first, self._kind, self.owners(workers)):
            digest.update(np.ascontiguousarray(array).tobytes())
        if self.shares:
            of = np.repeat(np.arange(self.leaves), self._keyword_counts)
            kept = self._kind[self.node_of_leaf[of]] == BY_QUERY
            digest.update(of[kept].tobytes() + np.asarray(p.keywords, np.uint64)[kept].tobytes())
        return digest.hexdigest()

    @property
    def _keyword_starts(self) -> np.ndarray:
        starts = self.partition.keyword_starts
        return starts if len(starts) > 1 else np.zeros(self.leaves + 1, np.int64)

    # -- what it is made of --------------------------------------------------------------------------------------------

    @cached_property
    def _words(self) -> np.ndarray:
        """The keywords of all leaves, by node and term."""
        leaf = frozen(np.repeat(np.arange(self.leaves, dtype=np.int32), self._keyword_counts))
        keywords = _as(self.partition.keywords, np.uint64)
        return frozen(lay_keywords(keywords, leaf, self.node_of_leaf, self._kind, self._first))

    @cached_property
    def _asked(self) -> np.ndarray:
        """The words that leaves can learn: those that some leaf has, and others that searches were seen to ask for. As
        the table of a single node.
        """
        leaf = np.repeat(np.arange(self.leaves), self._keyword_counts)
        by_post = self._kind[self.node_of_leaf[leaf]] == BY_POST
        words = _as(np.union1d(np.asarray(self.partition.keywords, np.uint64)[by_post], self._asked_too), np.uint64)
        none = frozen(np.zeros(len(words), np.int32))
        one_node = (
            frozen(np.zeros(1, np.int32)),
            frozen(np.array([BY_QUERY], np.uint8)),
            frozen(np.arange(2, dtype=np.int32)),
        )
        return frozen(lay_keywords(words, none, *one_node))

    @cached_property
    def _bands(self) -> GridBands:
        grid = self._node.reshape(self.cells, self.cells)
        fresh = np.ones(self.cells, np.bool_)
        fresh[1:] = (grid[1:] != grid[:-1]).any(axis=1)
        rows = grid[fresh]
        change = np.ones(rows.shape, np.bool_)
        change[:, 1:] = rows[:, 1:] != rows[:, :-1]
        edges = np.append(np.flatnonzero(change), rows.size)
        arrays = np.cumsum(fresh) - 1, rows.reshape(-1), np.repeat(edges[1:], np.diff(edges))
        return GridBands(self._extent, self.cells, *(_as(array, np.int32) for array in arrays))

    def save(self, path: Path) -> int:
        """Write the partition as a bundle; the size of the file."""
        p = self.partition
        arrays = {
            "name": pa.array([p.name], pa.string()), "extent": np.array(p.extent, np.float64),
            "sizes": np.array([p.cells, p.workers], np.int64), "node": self._node, "kind": p.kind.astype(np.uint8),
            "first": self._first, "load": p.load.astype(np.float64), "owner": p.owner.astype(np.int32),
            "keywords": np.asarray(p.keywords, np.uint64),
            "keyword_starts": np.asarray(p.keyword_starts, np.int64),
        }  # fmt: skip
        return write_table(path, bundle_table(arrays))

    @classmethod
    def load(cls, path: Path) -> "RoutingTable":
        if path.suffix != ".arrow":
            raise BadInput(f"{path} was written by an older version of Nearcast: start a new state directory")
        arrays = open_bundle(path)
        cells, workers = np.asarray(arrays["sizes"]).tolist()
        name = str(arrays["name"][0])
        west, south, width, height = np.asarray(arrays["extent"]).tolist()
        names = ("node", "kind", "first", "load", "owner")
        columns = {each: np.asarray(arrays[each]) for each in (*names, "keywords", "keyword_starts")}
        return cls(Partition(name, (west, south, width, height), cells, workers=workers, **columns))


def _as(array: np.ndarray, kind: type) -> np.ndarray:
    """Of one type and read-only, so that each kernel is compiled for one kind of array."""
    return frozen(np.ascontiguousarray(array, kind))


def _posts(terms: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return _as(terms, np.uint64), _as(offsets, np.int64)
