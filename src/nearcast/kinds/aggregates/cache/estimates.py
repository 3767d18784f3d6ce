"""How large a view would be, from a sample of posts: only what is kept depends on it, never an answer."""

from dataclasses import dataclass, field

import numpy as np

from nearcast.kinds.aggregates.cache.snapshot import Snapshot
from nearcast.kinds.aggregates.cache.views import A_GROUP, MINUTE, NO_TERMS, SUMMARY, Spec
from nearcast.kinds.aggregates.group_by import aggregate, merge, nothing
from nearcast.kinds.aggregates.groups import Groups, Shape
from nearcast.storage.posts.post_segment import ATTRIBUTE_BLOCK
from nearcast.storage.posts.question import words_in

BLOCKS = 16  # of posts, a segment
KEY_BYTES, GROUP_BYTES, MEASURE_BYTES, TERM_BYTES = 9, 8, 49, 24
TERMS_A_POST = 10


@dataclass(frozen=True)
class Size:
    """Entries, and the bytes of a view: those of its parts by segment, and of their sum."""

    entries: float
    space: float


@dataclass
class Estimates:
    snapshot: Snapshot
    _distinct: dict[tuple[str, ...], float] = field(default_factory=dict)

    def size(self, spec: Spec, posts: float) -> Size:
        """Of a view over a node of so many posts."""
        share = self.share(spec)
        held = max(1.0, posts * share)
        groups = _met(self.distinct(spec.attributes), held)
        words = 0.0
        if spec.terms != NO_TERMS:
            vocabulary = max((len(each.segment.terms) for each in self.snapshot.sources), default=1)
            each = _met(vocabulary, TERMS_A_POST * held / groups)
            words = groups * (min(spec.counters, each) if spec.terms == SUMMARY else each)
        width = KEY_BYTES * len(spec.attributes) + GROUP_BYTES + MEASURE_BYTES * len(spec.measured)
        copies = 1 if len(self.snapshot.sources) == 1 else 2
        return Size(groups + words / A_GROUP, copies * (groups * width + words * TERM_BYTES) + 500)

    def share(self, spec: Spec) -> float:
        """The part of all posts that have the words."""
        if not spec.words or not self.snapshot.posts:
            return 1.0
        found = sum(words_in(spec.question, each.segment).frequency for each in self.snapshot.sources)
        return min(1.0, found / self.snapshot.posts)

    def distinct(self, attributes: tuple[str, ...]) -> float:
        """How many groups there are of all posts.

        What occurs once in the sample stands for √(posts / sample) others, what occurs twice for itself: the estimate
        whose worst case is least (Charikar et al.: GEE). Minutes are counted by the clock.
        """
        found = self._distinct.get(attributes)
        if found is None:
            others = tuple(name for name in attributes if name != MINUTE)
            sample = self._sampled(others)
            size = max(1, int(sample.posts.sum()))
            once = int((sample.posts == 1).sum())
            found = np.sqrt(max(1.0, self.snapshot.posts / size)) * once + len(sample) - once
            if MINUTE in attributes:
                found *= max(1.0, (self.snapshot.last - self.snapshot.first) / 60_000_000)
            found = self._distinct[attributes] = float(max(1.0, found))
        return found

    def _sampled(self, attributes: tuple[str, ...]) -> Groups:
        shape = Shape(attributes)
        parts = [aggregate(each.segment, _blocks(len(each.segment)), shape) for each in self.snapshot.sources]
        return merge([nothing(shape), *parts])


def _met(kinds: float, draws: float) -> float:
    """How many different ones are met, on average, in so many draws of equally likely kinds."""
    return float(max(1.0, kinds * -np.expm1(-draws / kinds)))


def _blocks(posts: int) -> np.ndarray:
    """Rows of some blocks of posts, evenly spread."""
    blocks = -(-posts // ATTRIBUTE_BLOCK)
    chosen = np.unique(np.linspace(0, max(0, blocks - 1), min(BLOCKS, max(1, blocks))).astype(np.int64))
    rows = (chosen[:, None] * ATTRIBUTE_BLOCK + np.arange(ATTRIBUTE_BLOCK)).ravel()
    return rows[rows < posts]
