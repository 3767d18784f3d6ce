"""The quadtree that views and cached borders hang on (STAR §4.1.1, §4.1.3).

Its nodes are cells of lon and lat (`kinds.aggregates.kernels.quadtree` says how they are numbered); how far they are
divided depends on how many posts they hold, by a sample. Answers never depend on the sample, only what they cost.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.kinds.aggregates.kernels.quadtree import cell_codes, cover, node_box, node_span, posts_in
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import Question

ROOT = 1
SAMPLE = 1_000_000  # posts
LEAF_POSTS = 1_024  # a node of fewer is not divided
LEAVES = 1 << 13  # nor are all posts divided into many more leaves than this

Box = tuple[float, float, float, float]  # west, south, east, north: closed


@dataclass(frozen=True)
class Cover:
    """A region as nodes: the largest it covers, and leaves that it overlaps in part, or may; none overlaps another.
    And about how many posts are in them.
    """

    inside: np.ndarray
    meeting: np.ndarray
    posts_inside: float
    posts_meeting: float

    @property
    def posts(self) -> float:
        return self.posts_inside + self.posts_meeting


@dataclass(frozen=True)
class Quadtree:
    """`codes` are the cells of sampled posts, sorted; each stands for `weight` posts."""

    codes: np.ndarray
    weight: float

    @classmethod
    def of(cls, segments: Iterable[PostSegment], sample: int = SAMPLE) -> "Quadtree":
        segments = [segment for segment in segments if len(segment)]
        total = sum(map(len, segments))
        step = max(1, -(-total // sample))
        rows = [frozen(np.arange(0, len(each), step)) for each in segments]
        parts = [
            cell_codes(each.arrays["fixed"], each.arrays["exact"], r) for each, r in zip(segments, rows, strict=True)
        ]
        codes = np.sort(np.concatenate([np.empty(0, np.uint32), *parts]))
        return cls(frozen(codes), total / max(1, len(codes)))

    @property
    def leaf(self) -> int:
        """The most sampled posts of a leaf."""
        return int(max(LEAF_POSTS / max(1.0, self.weight), len(self.codes) / LEAVES))

    def posts(self, node: int) -> float:
        """About how many posts lie in a node."""
        return float(posts_in(self.codes, np.int64(node))) * self.weight

    def cover(self, question: Question) -> Cover:
        inside, meeting, covered, overlapped = cover(*(self.codes, self.leaf, *question.place))
        return Cover(inside, meeting, covered * self.weight, overlapped * self.weight)

    def largest(self, covered: Cover) -> int | None:
        """The node n_q of §4.1.1: the largest that the region covers, of equal ones that with most posts."""
        nodes = covered.inside.tolist()
        return max(nodes, key=lambda node: (-depth(node), self.posts(node), -node), default=None)


def depth(node: int) -> int:
    return (node.bit_length() - 1) // 2


def box(node: int) -> Box:
    """The node as a closed rectangle that holds just its places."""
    out = np.empty(4, np.float64)
    node_box(np.int64(node), out)
    west, south, east, north = out.tolist()
    return west, south, east, north


def span(node: int) -> tuple[int, int]:
    """The codes of a node: the first, and past the last."""
    first, end = node_span(np.int64(node))
    return int(first), int(end)
