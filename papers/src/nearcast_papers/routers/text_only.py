"""Partitions of the text alone (PS2Stream §VI-B): the words that queries are filed under are dealt out to the workers.

- by frequency: words, the most frequent in posts first, each to the worker with the least frequency so far;
- by hypergraph (Cambazoglu et al., TWEB 2013): words are nodes and posts are nets that join their words. Words are
moved, from the partition by frequency, to where posts reach fewer workers, as long as frequencies stay in balance;
- by metric: as `nearcast.partitioning.text_division` has it.

The papers' details are not in PS2Stream; these are our readings of its one sentence on each.
"""

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.partitioning.partition import Partition
from nearcast.partitioning.router_sample import RouterSample
from nearcast.partitioning.text_division import Divide, FiledWords, by_metric, partition_of
from nearcast.partitioning.worker_load import MEASURED, MOST, LoadCosts, LoadPart, Traffic
from nearcast_papers.routers.kernels.word_parts import by_weight, refine_cut

SLACK, PASSES = 0.1, 8  # of the hypergraph's parts against the average; of moves over all words


def by_frequency(traffic: Traffic, part: LoadPart, parts: int) -> list[LoadPart]:
    at = FiledWords(traffic, part)
    owner = by_weight(at.heaviest_first(at.frequency), frozen(at.frequency), parts)
    return traffic.divided(part, at.words, owner, parts)


def by_hypergraph(traffic: Traffic, part: LoadPart, parts: int) -> list[LoadPart]:
    at = FiledWords(traffic, part)
    owner = by_weight(at.heaviest_first(at.frequency), frozen(at.frequency), parts)
    refine_cut(owner, at.starts, at.posts, len(part.posts), frozen(at.frequency), parts, SLACK, PASSES)
    return traffic.divided(part, at.words, owner, parts)


def build_frequency(sample: RouterSample, workers: int, costs: LoadCosts = MEASURED, most: int = MOST) -> Partition:
    return _build("text-frequency", by_frequency, sample, workers, costs, most)


def build_hypergraph(sample: RouterSample, workers: int, costs: LoadCosts = MEASURED, most: int = MOST) -> Partition:
    return _build("text-hypergraph", by_hypergraph, sample, workers, costs, most)


def build_metric(sample: RouterSample, workers: int, costs: LoadCosts = MEASURED, most: int = MOST) -> Partition:
    return _build("text-metric", by_metric, sample, workers, costs, most)


def _build(name: str, divide: Divide, sample: RouterSample, workers: int, costs: LoadCosts, most: int) -> Partition:
    traffic = Traffic.of(sample, costs, most)
    parts = divide(traffic, traffic.whole(), workers)
    return partition_of(name, traffic, parts, np.arange(workers, dtype=np.int32), workers)
