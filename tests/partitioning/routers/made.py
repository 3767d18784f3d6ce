"""Partitions made by hand, with nodes of every kind: what a routing table must cope with, whichever router makes it."""

from collections.abc import Sequence

import numpy as np

from nearcast.partitioning.partition import BY_POST, BY_QUERY, SPACE, Partition
from nearcast.partitioning.router_sample import RouterSample
from nearcast.partitioning.routers.uniform_grid import WORLD

Cut = tuple[int, list[list[int]]]  # the kind of a node, and the keywords of each of its leaves


def partition(
    node: Sequence[int],
    cuts: Sequence[Cut],
    workers: int,
    extent: tuple[float, float, float, float] = WORLD,
    name: str = "made",
) -> Partition:
    """Cells row by row from the south-west, and how each node is cut."""
    keywords = [sorted(set(words)) for _, leaves in cuts for words in leaves]
    count = len(keywords)
    return Partition(
        name,
        extent,
        round(len(node) ** 0.5),
        np.array(node, np.int32),
        np.array([kind for kind, _ in cuts], np.uint8),
        np.cumsum([0, *(len(leaves) for _, leaves in cuts)]).astype(np.int32),
        np.ones(count),
        (np.arange(count) * 7 % workers).astype(np.int32),
        workers,
        np.array([word for words in keywords for word in words], np.uint64),
        np.cumsum([0, *(len(words) for words in keywords)]).astype(np.int64),
    )


def words_of(sample: RouterSample) -> list[int]:
    """The distinct words of the posts, in no order that means anything."""
    return sorted(set(sample.posts.terms.tolist()) - {0}, key=lambda term: term * 0x9E3779B97F4A7C15 % 2**64)


def by_query(sample: RouterSample, workers: int) -> Partition:
    """All by the queries' words; every other word is assigned, the rest goes by its hash."""
    words = words_of(sample)[::2]
    return partition([0], [(BY_QUERY, [words[leaf::5] for leaf in range(5)])], workers)


def by_post(sample: RouterSample, workers: int) -> Partition:
    """All by the posts' words, of which leaves share some, and one has none."""
    words = words_of(sample)
    return partition([0], [(BY_POST, [words[leaf::3] + words[leaf::7] for leaf in range(4)] + [[]])], workers)


def mixed(sample: RouterSample, workers: int) -> Partition:
    """Four by four cells over a part of the world, nodes of every kind, one of them in two pieces."""
    words = words_of(sample)
    some = [words[leaf::3] for leaf in range(3)]
    node = [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 4, 2, 2, 0, 4]
    cuts = [(BY_QUERY, some), (BY_POST, some), (SPACE, [[]]), (BY_POST, [[], []]), (BY_QUERY, [[], []])]
    return partition(node, cuts, workers, (-20.0, -10.0, 60.0, 75.0))


MADE = {"by_query": by_query, "by_post": by_post, "mixed": mixed}
