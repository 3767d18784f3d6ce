"""Dividing the words that queries are filed under among parts of a rectangle, and the partition that this makes.

By metric (after the load-balancing placement of words in S³-TM, VLDB Journal 2015; PS2Stream §VI-B): words, the
heaviest first, each to the part whose load by Definition 1 is least once it has it, counting a post once however many
of its words are there. PS2Stream has one sentence on it; this is our reading.
"""

from collections.abc import Callable

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.partitioning.kernels.word_division import by_load, postings
from nearcast.partitioning.partition import BY_QUERY, SPACE, Partition
from nearcast.partitioning.sample_tally import CELLS
from nearcast.partitioning.worker_load import LoadPart, Traffic

Divide = Callable[[Traffic, LoadPart, int], list[LoadPart]]


class FiledWords:
    """The words that a part's queries are filed under, and where they occur in its posts."""

    def __init__(self, traffic: Traffic, part: LoadPart) -> None:
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


def by_metric(traffic: Traffic, part: LoadPart, parts: int) -> list[LoadPart]:
    at = FiledWords(traffic, part)
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


def partition_of(name: str, traffic: Traffic, parts: list[LoadPart], owner: np.ndarray, workers: int) -> Partition:
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
