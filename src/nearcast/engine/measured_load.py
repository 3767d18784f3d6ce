"""What balancing knows: the notes of the last batches (`engine.load_notes`) and the subscriptions that stand."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.common.kinds import codes
from nearcast.engine.batch import BatchPlan, open_segments, placed_summary
from nearcast.engine.noted_searches import joined, open_searches
from nearcast.engine.samples import few_of, spread_out
from nearcast.partitioning.kernels.cell_sums import box_rectangles
from nearcast.partitioning.moves import Loads
from nearcast.partitioning.partition import Partition
from nearcast.partitioning.query_statistics import Statistics
from nearcast.partitioning.router_sample import CRQ, TYPES, Queries, RouterSample, SampledPosts
from nearcast.partitioning.routing_table import EVERYTHING
from nearcast.partitioning.sample_tally import cells_of
from nearcast.storage.bundle import Arrays, open_bundle
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import STATISTICS, SUBSCRIPTIONS, SegmentRef
from nearcast.storage.subscriptions.rows import take_lists

HALF_LIFE = 4  # batches, in which the weight of what was seen halves
MOST_ROWS = 20_000  # subscriptions that are looked at
FEW_ROWS = 5_000  # and whose words are
DEPTH = 6  # of J


@dataclass(frozen=True)
class LeafWork:
    """Microseconds of each worker, a batch on average, the newer batches counting for more: for carrying posts, and for
    checking and writing. `batches` is how many were seen since the partition is as it is.
    """

    carrying: np.ndarray
    checking: np.ndarray
    batches: int

    @property
    def loads(self) -> np.ndarray:
        return self.carrying + self.checking

    @classmethod
    def of(cls, plan: BatchPlan) -> "LeafWork":
        """From the manifest alone."""
        refs, workers = _recent(plan), plan.settings.workers
        age = _ages(refs)
        weight = 0.5 ** (age / HALF_LIFE)
        total = max(float((0.5 ** (np.unique(age) / HALF_LIFE)).sum()), 1e-300)
        owner = np.array([ref.owner for ref in refs], np.int64)
        parts = [
            np.bincount(owner, weight * np.array([ref.facts[name] for ref in refs], np.float64), workers) / total
            for name in ("carrying", "checking")
        ]
        return cls(parts[0], parts[1], len(np.unique(age)))


class Measured:
    """`partition` is the router's, with the workers that there are. What is costly is worked out when it is asked."""

    def __init__(self, plan: BatchPlan) -> None:
        self.plan = plan
        self.work = LeafWork.of(plan)
        workers = plan.settings.workers
        self.partition: Partition = replace(plan.router.partition, owner=plan.router.owners(workers), workers=workers)

    @cached_property
    def _posts(self) -> tuple[SampledPosts, np.ndarray]:
        """Posts since the partition is as it is, and how many a batch each stands for."""
        return _sampled(self.plan, _recent(self.plan))

    @cached_property
    def _rows(self) -> tuple[Queries, float]:
        """Some of the subscriptions to ranges, each once, and how many each stands for."""
        refs = [
            ref
            for ref in self.plan.manifest.of(SUBSCRIPTIONS)
            if ref.asks in codes("placed") and not ref.facts.get("ended")
        ]
        step = max(1, -(-sum(ref.rows for ref in refs) // MOST_ROWS))
        parts, numbers = [], [np.empty(0, np.int64)]
        for segment in open_segments(self.plan, [ref.name for ref in refs]).values():
            picked = np.flatnonzero(segment.rows.seq % step == 0)
            parts.append(few_of(segment.rows, picked))
            numbers.append(segment.rows.seq[picked])
        once = np.unique(np.concatenate(numbers), return_index=True)[1]  # several workers may have one
        rows = few_of(joined(parts), np.sort(once))
        offsets = frozen(rows.code_offsets.astype(np.uint32))  # as segments have them: nothing is compiled twice
        return replace(rows, boxes=frozen(rows.boxes), code=frozen(rows.code), code_offsets=offsets), float(step)

    @cached_property
    def _summary(self) -> np.ndarray:
        return placed_summary(self.plan) if self.plan.router.shares else EVERYTHING

    @cached_property
    def leaf_posts(self) -> np.ndarray:
        """Posts a batch that each leaf has to match."""
        router, (posts, weight) = self.plan.router, self._posts
        prints = frozen(np.random.default_rng(0).integers(0, 1 << 63, len(posts)).astype(np.uint64))
        stored = router.store(posts.lon, posts.lat, posts.terms, posts.offsets, prints)
        starts, leaves = router.match(posts.lon, posts.lat, posts.terms, posts.offsets, stored, self._summary)
        return np.bincount(leaves, np.repeat(weight, np.diff(starts)), router.leaves)

    @cached_property
    def leaf_queries(self) -> np.ndarray:
        """Subscriptions that each leaf keeps."""
        rows, scale = self._rows
        return np.bincount(self.plan.router.leaves_of(rows)[1], minlength=self.plan.router.leaves) * scale

    @cached_property
    def leaf_load(self) -> np.ndarray:
        """What the workers did, by leaf: their carrying by posts, their checking by L_g = n_o · n_q (PS2Stream,
        Def. 3).
        """
        owner = self.partition.owner
        carrying = _shared(self.work.carrying, owner, self.leaf_posts)
        checking = _shared(self.work.checking, owner, self.leaf_posts * self.leaf_queries, self.leaf_posts)
        return carrying + checking

    @cached_property
    def loads(self) -> Loads:
        partition, (posts, weight), (rows, scale) = self.partition, self._posts, self._rows
        cells = partition.cells
        at = cells_of(posts, partition.extent, cells)
        cell_posts = np.bincount(at, weight, cells * cells)
        touched, spread = np.zeros((cells + 1, cells + 1), np.int32), 1.0
        if len(rows):
            _, r = box_rectangles(frozen(rows.boxes), frozen(np.array(partition.extent)), cells)
            x0, y0, x1, y1 = r.T
            for x, y, sign in ((x0, y0, 1), (x1, y0, -1), (x0, y1, -1), (x1, y1, 1)):
                np.add.at(touched, (y, x), np.int32(sign))
            np.cumsum(np.cumsum(touched, axis=0, out=touched), axis=1, out=touched)
            spread = max(1.0, float(((x1 - x0) * (y1 - y0)).sum()) / len(rows))
        queries = touched[:cells, :cells].reshape(-1) * scale
        carrying = float(self.work.carrying.sum() / max(self.work.loads.sum(), 1e-300))
        return Loads(cell_posts, queries, self.leaf_load, spread, carrying)

    @cached_property
    def sample(self) -> RouterSample:
        """Posts of all that is kept, fewer of the older ones, and subscriptions."""
        posts, weight = _sampled(self.plan, self.plan.manifest.of(STATISTICS))
        kept = np.zeros(0, np.int64)
        if len(posts):
            chance = np.random.default_rng(0).random(len(posts))
            kept = np.flatnonzero(chance * weight.max() < weight)
        terms, offsets = take_lists(posts.terms, posts.offsets, kept)
        rows = self._rows[0]
        return RouterSample(
            SampledPosts(posts.lon[kept], posts.lat[kept], posts.ts[kept], frozen(terms), frozen(offsets)),
            few_of(rows, spread_out(len(rows), FEW_ROWS)),
        )

    @cached_property
    def asked(self) -> tuple[RouterSample, np.ndarray]:
        """The sample with the searches of late, and by type of query how many each of them stands for."""
        searches, weight = open_searches(self.plan)
        standing, (rows, scale) = self.sample.queries, self._rows
        factors = np.ones(len(TYPES))
        if len(rows):
            factors[CRQ:] = scale * len(rows) / len(standing)
        counted = np.bincount(searches.type, minlength=len(TYPES))
        factors[:CRQ] = (np.bincount(searches.type, weight, len(TYPES)) / np.maximum(counted, 1))[:CRQ]
        return RouterSample(self.sample.posts, joined([standing, searches])), factors

    @cached_property
    def statistics(self) -> Statistics:
        """J of SSTD §4.1.1, of subscriptions and searches."""
        sample, factors = self.asked
        return Statistics.of(sample, self.partition.extent, DEPTH).weighted(factors)


@lru_cache(maxsize=256)
def open_note(root: str, name: str) -> Arrays:
    """A worker's notes of a batch."""
    return open_bundle(StateDirectory(root).path(name))


def _recent(plan: BatchPlan) -> list[SegmentRef]:
    """The notes since the partition is as it is."""
    since = max((int(each["batch"]) for each in plan.manifest.adjustments), default=-1)
    refs = plan.manifest.of(STATISTICS)
    return [ref for ref in refs if ref.facts["layout"] == plan.layout and ref.batch > since]


def _ages(refs: Sequence[SegmentRef]) -> np.ndarray:
    """How many batches with posts came after that of each."""
    batches = np.array([ref.batch for ref in refs], np.int64)
    known = np.unique(batches)
    return len(known) - 1 - np.searchsorted(known, batches)


def _sampled(plan: BatchPlan, refs: Sequence[SegmentRef]) -> tuple[SampledPosts, np.ndarray]:
    """The posts of some notes, and how many a batch each stands for."""
    refs = [ref for ref in refs if ref.rows]
    age = _ages(refs)
    total = max(float((0.5 ** (np.unique(age) / HALF_LIFE)).sum()), 1e-300)
    parts = [open_note(plan.root, ref.name) for ref in refs]
    weight = [
        np.full(ref.rows, 0.5 ** (each / HALF_LIFE) / total * ref.facts["posts"] / ref.rows)
        for ref, each in zip(refs, age, strict=True)
    ]
    empty = {"lon": np.float64, "lat": np.float64, "ts": np.int64, "terms": np.uint64}
    columns = {
        name: frozen(np.concatenate([np.empty(0, kind), *(np.asarray(part[name]) for part in parts)]))
        for name, kind in empty.items()
    }
    sizes = np.concatenate([np.empty(0, np.int64), *(np.diff(np.asarray(part["offsets"])) for part in parts)])
    offsets = frozen(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))
    return SampledPosts(**columns, offsets=offsets), np.concatenate([np.empty(0), *weight])


def _shared(work: np.ndarray, owner: np.ndarray, *weights: np.ndarray) -> np.ndarray:
    """The work of each worker dealt out to its leaves, by the first weight of which it has any, or evenly."""
    out, left = np.zeros(len(owner)), work.astype(np.float64)
    for weight in (*weights, np.ones(len(owner))):
        total = np.bincount(owner, weight, len(work))
        share = np.where(total > 0, left / np.where(total > 0, total, 1.0), 0.0)
        out += weight * share[owner]
        left = np.where(total > 0, 0.0, left)
    return out
