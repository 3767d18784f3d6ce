"""Partitions of the text alone (seed 001 §VI-B): the words that queries are filed under are dealt out to the workers.

- by frequency: words, the most frequent in posts first, each to the worker with the least frequency so far;
- by hypergraph (Cambazoglu et al., TWEB 2013): words are nodes and posts are nets that join their words. Words are
moved, from the partition by frequency, to where posts reach fewer workers, as long as frequencies stay in balance;
- by metric (after the load-balancing placement of words in S³-TM, VLDB Journal 2015): words, the heaviest first, each
to the worker whose load by Definition 1 is least once it has it, counting a post once however many of its words are
there.

The papers' details are not in seed 001; these are the readings of its one sentence on each.
"""

from collections.abc import Callable

import numpy as np

from nearcast.index.rows import frozen
from nearcast.kernels.partition_text import by_load, by_weight, postings, refine_cut
from nearcast.routing.load import MEASURED, MOST, Costs, Part, Traffic
from nearcast.routing.partition import BY_QUERY, SPACE, Partition
from nearcast.routing.sample import Sample
from nearcast.routing.tally import CELLS

SLACK, PASSES = 0.1, 8  # of the hypergraph's parts against the average; of moves over all words

Divide = Callable[[Traffic, Part, int], list[Part]]


class _Words:
    """The words that a part's queries are filed under, and where they occur in its posts."""

    def __init__(self, traffic: Traffic, part: Part) -> None:
        keys = traffic.pairs(part.queries)[1]
        self.words, self.filed = np.unique(keys, return_counts=True)
        if part.words is not None:
            mine = np.isin(self.words, part.words)
            self.words, self.filed = self.words[mine], self.filed[mine]
        slot_of = np.full(len(traffic.vocabulary), -1, np.int64)
        slot_of[self.words] = np.arange(len(self.words))
        starts, posts = postings(part.posts, traffic.offsets, traffic.words, slot_of, len(self.words))
        self.starts, self.posts = frozen(starts), frozen(posts)
        self.frequency = np.diff(starts).astype(np.float64)

    def heaviest_first(self, weight: np.ndarray) -> np.ndarray:
        return frozen(np.argsort(-weight, kind="stable"))


def by_frequency(traffic: Traffic, part: Part, parts: int) -> list[Part]:
    at = _Words(traffic, part)
    owner = by_weight(at.heaviest_first(at.frequency), frozen(at.frequency), parts)
    return traffic.divided(part, at.words, owner, parts)


def by_hypergraph(traffic: Traffic, part: Part, parts: int) -> list[Part]:
    at = _Words(traffic, part)
    owner = by_weight(at.heaviest_first(at.frequency), frozen(at.frequency), parts)
    refine_cut(owner, at.starts, at.posts, len(part.posts), frozen(at.frequency), parts, SLACK, PASSES)
    return traffic.divided(part, at.words, owner, parts)


def by_metric(traffic: Traffic, part: Part, parts: int) -> list[Part]:
    at = _Words(traffic, part)
    costs = traffic.costs
    alone = costs.c1 * at.frequency * at.filed + costs.c2 * at.frequency + costs.query * at.filed
    held = int(traffic.wordless[part.queries].sum()) if part.first else 0
    owner = by_load(
        at.heaviest_first(alone),
        at.starts,
        at.posts,
        len(part.posts),
        frozen(at.filed.astype(np.float64)),
        parts,
        held,
        costs.c1,
        costs.c2,
        costs.query,
    )
    return traffic.divided(part, at.words, owner, parts)


def build_frequency(sample: Sample, workers: int, costs: Costs = MEASURED, most: int = MOST) -> Partition:
    return _build("text-frequency", by_frequency, sample, workers, costs, most)


def build_hypergraph(sample: Sample, workers: int, costs: Costs = MEASURED, most: int = MOST) -> Partition:
    return _build("text-hypergraph", by_hypergraph, sample, workers, costs, most)


def build_metric(sample: Sample, workers: int, costs: Costs = MEASURED, most: int = MOST) -> Partition:
    return _build("text-metric", by_metric, sample, workers, costs, most)


def _build(name: str, divide: Divide, sample: Sample, workers: int, costs: Costs, most: int) -> Partition:
    traffic = Traffic.of(sample, costs, most)
    parts = divide(traffic, traffic.whole(), workers)
    return partition_of(name, traffic, parts, np.arange(workers, dtype=np.int32), workers)


def partition_of(name: str, traffic: Traffic, parts: list[Part], owner: np.ndarray, workers: int) -> Partition:
    """The partition with these leaves, those of one rectangle following each other, the first of them first."""
    node_of = np.zeros((CELLS, CELLS), np.int32)
    first: list[int] = []
    for number, part in enumerate(parts):
        if part.first:
            x0, y0, x1, y1 = part.rectangle
            node_of[y0:y1, x0:x1] = len(first)
            first.append(number)
    first.append(len(parts))
    kinds = np.where(np.diff(first) > 1, BY_QUERY, SPACE).astype(np.uint8)
    textual = bool((kinds == BY_QUERY).any())
    shared = np.repeat(kinds == BY_QUERY, np.diff(first))
    none = np.empty(0, np.int64)
    words = [p.words if cut and p.words is not None else none for p, cut in zip(parts, shared, strict=True)]
    starts = np.r_[0, np.cumsum([len(each) for each in words])] if textual else np.zeros(1)
    return Partition(
        name=name,
        extent=traffic.extent,
        cells=CELLS,
        node=node_of.reshape(-1),
        kind=kinds,
        first=np.array(first, np.int32),
        load=np.array([part.load for part in parts]),
        owner=owner.astype(np.int32),
        workers=workers,
        keywords=traffic.vocabulary[np.concatenate(words)].astype(np.uint64),
        keyword_starts=starts.astype(np.int64),
    )
