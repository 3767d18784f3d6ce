"""Object-based caching (STAR §4.2): posts along the borders of nodes that regions overlap in part.

A node has at most eight caching regions (Definition 4.4): four along its sides, four quarters of a circle about its
corners (in degrees of lon and lat). One is used only where it covers all that a query's region and the node may have in
common; of several, the one with the fewest posts. Which are kept is chosen greedily by the load they take off for the
space they add, in a budget of posts (Definition 4.5): at least 63% of the best choice of the same space (Theorem 4.7).

The posts of a region are kept in the order of their reach, so a query looks only at those as near to the side or corner
as it needs. A larger region then does all that a smaller one within it does, at the same cost, and replaces it; that
is what makes the theorem true of regions that are removed when covered, which its proof does not speak of.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from nearcast.common.arrays import freeze, frozen
from nearcast.common.op_schema import BEGINNING, NEVER
from nearcast.kinds.aggregates.cache.nodes import span
from nearcast.kinds.aggregates.kernels.border_regions import NO_REGION, SLOTS, all_options, gather, reaches
from nearcast.kinds.aggregates.kernels.quadtree import cell_codes, rows_in_nodes
from nearcast.storage.posts.kernels.segment_arrays import SpaceTimeRange
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import NO_CODE, NOTHING, Question

POST_BYTES = 16  # a row number and its reach
EVERYWHERE_ALWAYS = tuple(
    SpaceTimeRange(0, -180.0, -90.0, 180.0, 90.0, frozen(np.empty(0)), np.int64(BEGINNING), np.int64(NEVER))
)


@dataclass(frozen=True)
class Overlap:
    """A node of `posts` posts that a query, asked `times` times, overlaps; each need (slot, reach) would cover it."""

    node: int
    posts: float
    times: float
    needs: tuple[tuple[int, float], ...]


@dataclass(frozen=True, order=True)
class Region:
    node: int
    slot: int
    reach: float


Held = Callable[[Region], float]  # how many posts a region has


def improvement(overlaps: Sequence[Overlap], regions: Sequence[Region], held: Held) -> float:
    """ΔL of a set of regions: the posts that queries need not look at, for those regions cover what they overlap."""
    within = {(each.node, each.slot): 0.0 for each in regions}
    for each in regions:
        within[each.node, each.slot] = max(within[each.node, each.slot], each.reach)
    return sum(overlap.times * _saved(overlap, within, held) for overlap in overlaps)


def _saved(overlap: Overlap, within: dict[tuple[int, int], float], held: Held) -> float:
    usable = [
        held(Region(overlap.node, slot, need))
        for slot, need in overlap.needs
        if within.get((overlap.node, slot), NO_REGION) >= need
    ]
    return max(0.0, overlap.posts - min(usable, default=overlap.posts))


def select(overlaps: Sequence[Overlap], held: Held, budget: float) -> list[Region]:
    """The load-based greedy algorithm of §4.2: regions in `budget` posts, at most one of a slot."""
    by_node: dict[int, list[Overlap]] = {}
    for overlap in overlaps:
        by_node.setdefault(overlap.node, []).append(overlap)
    within: dict[tuple[int, int], float] = {}

    def value(region: Region) -> tuple[float, float]:
        """(minus the load it takes off for a post of space, the space it adds)."""
        key = region.node, region.slot
        before = within.get(key)
        space = held(region) - (held(Region(*key, before)) if before is not None else 0.0)
        more = {**{k: within[k] for k in within if k[0] == region.node}, key: max(region.reach, before or 0.0)}
        gain = sum(o.times * (_saved(o, more, held) - _saved(o, within, held)) for o in by_node[region.node])
        return (-gain / space if space > 0 else -np.inf if gain > 0 else 0.0), max(0.0, space)

    wanted = {Region(o.node, slot, need) for o in overlaps for slot, need in o.needs}
    heap = [(value(each)[0], each, 0) for each in wanted if held(each) <= budget]
    heapq.heapify(heap)
    changed = dict.fromkeys(by_node, 0)  # how often regions of a node were chosen
    left = budget
    while heap:
        worth, region, counted = heapq.heappop(heap)
        if worth >= 0.0:
            break
        if counted < changed[region.node]:
            heapq.heappush(heap, (value(region)[0], region, changed[region.node]))
            continue
        space = value(region)[1]
        if space > left:  # to go on with smaller ones would forfeit the theorem
            break
        left -= space
        within[region.node, region.slot] = region.reach
        changed[region.node] += 1
    return sorted(Region(node, slot, reach) for (node, slot), reach in within.items())


def overlaps_of(nodes: np.ndarray, question: Question) -> list[tuple[int, tuple[tuple[int, float], ...]]]:
    """(node, needs) of the nodes whose overlap with a region some caching region could cover."""
    if not question.kind:
        return []
    at, slots, needs = all_options(nodes, *question.box)
    found: dict[int, list[tuple[int, float]]] = {}
    for i, slot, need in zip(at.tolist(), slots.tolist(), needs.tolist(), strict=True):
        found.setdefault(int(nodes[i]), []).append((slot, need))
    return [(node, tuple(each)) for node, each in found.items()]


@dataclass(frozen=True)
class BorderRows:
    """The posts of all regions in one segment: those of region r are rows[offsets[r] : offsets[r + 1]], by reach."""

    offsets: np.ndarray
    rows: np.ndarray
    reach: np.ndarray

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True)
class Borders:
    """Caching regions: `extents` (node × slot) say how far each reaches, NO_REGION where there is none.

    Posts of a segment are looked up when first wanted. `used` remembers when each region last answered; it may be
    written by several threads at once, which does no harm.
    """

    nodes: np.ndarray
    extents: np.ndarray
    used: np.ndarray
    segments: dict[str, BorderRows] = field(default_factory=dict)

    @classmethod
    def of(cls, regions: Sequence[Region]) -> "Borders":
        nodes = np.array(sorted({each.node for each in regions}), np.int64)
        extents = np.full((len(nodes), SLOTS), NO_REGION)
        for each in regions:
            extents[np.searchsorted(nodes, each.node), each.slot] = each.reach
        return cls(frozen(nodes), frozen(extents), np.zeros(extents.shape, np.int64))

    def __len__(self) -> int:
        return self._regions

    @cached_property
    def _regions(self) -> int:
        return int((self.extents >= 0).sum())

    @property
    def nbytes(self) -> int:
        return sum(POST_BYTES * len(each.rows) for each in list(self.segments.values()))

    def has_any(self, nodes: np.ndarray) -> bool:
        """Whether one of the nodes has a caching region."""
        if not len(self.nodes):
            return False
        at = np.minimum(np.searchsorted(self.nodes, nodes), len(self.nodes) - 1)
        return bool((self.nodes[at] == nodes).any())

    def rows(self, name: str, segment: PostSegment) -> BorderRows:
        found = self.segments.get(name)
        if found is None:
            found = self.segments[name] = _collected(self.nodes, self.extents, segment)
        return found

    def gather(
        self, name: str, segment: PostSegment, nodes: np.ndarray, question: Question, tick: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """(rows that may be in the region, which of the nodes they answer for)."""
        held = self.rows(name, segment)
        where = (held.offsets, held.rows, held.reach, *question.box)
        return gather(nodes, self.nodes, self.extents, self.used, np.int64(tick), *where)

    def within(self, most_bytes: int) -> "Borders":
        """Without the least recently used regions that are too many (§4.2, *Maintaining Caching Regions*)."""
        if self.nbytes <= most_bytes:
            return self
        held = list(self.segments.values())
        sizes = sum((np.diff(each.offsets) for each in held), np.zeros(self.extents.size, np.int64)) * POST_BYTES
        newest_first = np.argsort(-self.used.ravel(), kind="stable")
        kept = newest_first[np.cumsum(sizes[newest_first]) <= most_bytes]
        extents = np.full(self.extents.size, NO_REGION)
        extents[kept] = self.extents.ravel()[kept]
        keep = np.zeros(self.extents.size, np.bool_)
        keep[kept] = True
        shape = self.extents.shape
        fewer = {name: _reduced(each, keep) for name, each in list(self.segments.items())}
        return Borders(self.nodes, frozen(extents.reshape(shape)), self.used.copy(), fewer)


def _collected(nodes: np.ndarray, extents: np.ndarray, segment: PostSegment) -> BorderRows:
    """The posts of the regions in one segment, deleted ones too."""
    rows = posts_of(nodes, segment)
    places = segment.arrays["fixed"], segment.arrays["exact"]
    of = node_of(nodes, cell_codes(*places, rows))
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for slot in range(SLOTS):
        reach = reaches(*places, rows, nodes, of, slot)
        near = reach <= extents[of, slot]
        parts.append((of[near] * SLOTS + slot, rows[near], reach[near]))
    region, rows, reach = (np.concatenate([part[i] for part in parts]) for i in range(3))
    order = np.lexsort((rows, reach, region))
    offsets = np.searchsorted(region[order], np.arange(extents.size + 1))
    return BorderRows(offsets, rows[order], reach[order])


def _reduced(held: BorderRows, keep: np.ndarray) -> BorderRows:
    sizes = np.diff(held.offsets)
    mask = np.repeat(keep, sizes)
    offsets = np.concatenate(([0], np.cumsum(np.where(keep, sizes, 0))))
    return BorderRows(offsets, held.rows[mask], held.reach[mask])


def posts_of(nodes: np.ndarray, segment: PostSegment) -> np.ndarray:
    """The rows in some nodes that do not overlap."""
    rows, _ = rows_in_nodes(
        nodes, len(nodes), len(segment), segment.tree, segment.columns_for_checks, NOTHING, EVERYWHERE_ALWAYS, NO_CODE
    )
    return frozen(rows)


def node_of(nodes: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Which of the nodes, which do not overlap, each code lies in."""
    firsts = np.array([span(node)[0] for node in nodes.tolist()], np.int64)
    order = np.argsort(firsts)
    return frozen(order[np.searchsorted(firsts[order], codes, side="right") - 1])
