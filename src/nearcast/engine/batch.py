"""What the tasks of a batch must know: small enough to travel with each of them."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from nearcast.common.kernels.grid import SUMMARY_BITS, set_bits
from nearcast.common.kinds import codes
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine.previous_table import PreviousTable
from nearcast.engine.settings import DERIVE, Settings
from nearcast.partitioning.learned_words import ANYWHERE, LearnedWords
from nearcast.partitioning.routing_table import RoutingTable
from nearcast.storage.bundle import bundle_table, open_bundle
from nearcast.storage.directory import StateDirectory
from nearcast.storage.files import write_table
from nearcast.storage.manifest import KEYWORDS, SUBSCRIPTIONS, TERMS, Manifest, SegmentRef
from nearcast.storage.named_regions import Regions
from nearcast.storage.subscriptions.filing import Filing
from nearcast.storage.subscriptions.gi2 import gi2
from nearcast.storage.subscriptions.pyramid import PYRAMID
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Segment
from nearcast.storage.term_table import TermTable, frequencies

EXTENT = "row_extent"  # of the router under which the textual summary of a segment was made


@dataclass(frozen=True)
class BatchPlan:
    """A batch: the state before it, where that lies, and how it is to be worked on. `arrival` is the batch's own
    time.
    """

    root: str
    manifest: Manifest
    settings: Settings
    batch: int = 0
    arrival: int | None = None

    @property
    def state(self) -> StateDirectory:
        return StateDirectory(self.root)

    @property
    def spool(self) -> Path:
        return self.state.spool

    @property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer(keep_accents=self.settings.keep_accents)

    @property
    def regions(self) -> Regions:
        """Those that have a name; what an op was taken to mean stays, whatever the name stands for later."""
        return Regions(self.root)

    @property
    def derives(self) -> tuple[str, ...]:
        """The attributes that are derived of every post and stored with it (`sources.derive`)."""
        return tuple(self.manifest.settings.get(DERIVE, ()))

    @property
    def router(self) -> RoutingTable:
        """The routing table, with what its leaves have learned since it was made."""
        return self._table(self.manifest.router or "")

    @property
    def previous(self) -> PreviousTable | None:
        """The table that older subscriptions still follow, if there is one beside the router."""
        told = self.manifest.previous
        return None if told is None else PreviousTable(self._table(told["router"]), told["before"])

    def _table(self, name: str) -> RoutingTable:
        learned = tuple((ref.name, ref.facts["router"] == name) for ref in self.manifest.of(KEYWORDS))
        return open_taught(self.root, name, learned) if learned else open_router(self.root, name)

    @property
    def layout(self) -> str:
        """What decides which worker has what: posts of the same layout are their owner's alone."""
        layout, previous = layout_of(self.router, self.settings.workers), self.previous
        if previous is None:
            return layout
        return f"{layout}-{layout_of(previous.table, self.settings.workers)}-{previous.before}"

    def keepers(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """A matrix (row, worker) of who keeps a subscription, and its one home worker."""
        kept, previous = self.router.keepers(rows, self.settings.workers), self.previous
        return kept if previous is None else previous.keepers(rows, kept)

    def mine(self, ref: SegmentRef, worker: int) -> bool:
        """Whether a segment of posts may hold some of a worker's leaves."""
        return ref.facts.get("layout") != self.layout or ref.owner == worker

    @property
    def shares(self) -> bool:
        """Whether several workers may have to match one post."""
        return self.router.shares or self.previous is not None

    @property
    def filing(self) -> Filing:
        return gi2(self.router.extent) if self.settings.index == "gi2" else PYRAMID


@lru_cache(maxsize=4)
def open_router(root: str, name: str) -> RoutingTable:
    return RoutingTable.load(Path(root) / name)


@lru_cache(maxsize=4)
def open_taught(root: str, name: str, learned: tuple[tuple[str, bool], ...]) -> RoutingTable:
    """A router and files of keywords, each with whether it was learned by this router's leaves."""
    parts = []
    for file, own in learned:
        part = open_learned(root, file)
        parts.append(part if own else part.take(part.leaf == ANYWHERE))
    return open_router(root, name).taught(LearnedWords.united(parts))


def open_learned(root: str, name: str) -> LearnedWords:
    arrays = open_bundle(StateDirectory(root).path(name))
    return LearnedWords(*(np.asarray(arrays[each]) for each in LearnedWords.names()))


@lru_cache(maxsize=4)
def layout_of(router: RoutingTable, workers: int) -> str:
    return router.layout(workers)


_segments: dict[str, Segment] = {}


def open_segments(plan: BatchPlan, names: list[str], after: Manifest | None = None) -> dict[str, Segment]:
    """Segments of subscriptions by name, mapped once per process and forgotten when they leave the manifest (and that
    which the batch leads to).
    """
    current = {ref.name for ref in (*plan.manifest.of(SUBSCRIPTIONS), *(after.of(SUBSCRIPTIONS) if after else ()))}
    for name in [name for name in _segments if name not in current]:
        del _segments[name]
    for name in names:
        if name not in _segments:
            arrays = open_bundle(plan.state.path(name))
            arrays.pop("summary")
            _segments[name] = Segment.from_arrays(arrays)
    return {name: _segments[name] for name in names}


def write_segment(plan: BatchPlan, segment: Segment, worker: int) -> tuple[str, int]:
    """Write subscriptions with their textual summary; the name and the size of the file."""
    name = plan.state.new_name(SUBSCRIPTIONS, plan.batch, worker)
    router = plan.router
    arrays = {**segment.arrays(), "summary": router.summary(segment.rows), EXTENT: np.array(router.extent)}
    return name, write_table(plan.state.path(name), bundle_table(arrays))


_summaries: dict[tuple[int, ...], tuple[tuple[str, Any], frozenset[str], np.ndarray]] = {}


def placed_summary(plan: BatchPlan) -> np.ndarray:
    """The textual summary of the subscriptions that are placed by leaves."""
    return open_summary(plan, codes("placed"))


def open_summary(plan: BatchPlan, asks: tuple[int, ...]) -> np.ndarray:
    """The textual summary of all leaves: a bit for each (leaf, term) that a subscription is filed under; of those of
    some kinds, by their codes.

    Kept in the process; segments that were added since are added to it, and bits of ended subscriptions stay until it
    is made anew (Tornado §4.6 cleans lazily too). Its cells are those of the router's extent: where a segment was
    written under another, its bits are worked out here.
    """
    refs = plan.manifest.of(SUBSCRIPTIONS)
    names = frozenset(ref.name for ref in refs if ref.asks in asks)
    router = plan.router
    whose = plan.root, router.extent
    before, known, bits = _summaries.get(asks, (None, frozenset(), np.empty(0, np.uint64)))
    if before != whose or not known <= names:
        known, bits = frozenset(), np.zeros(1 << (SUMMARY_BITS - 6), np.uint64)
    for name in sorted(names - known):
        arrays = open_bundle(plan.state.path(name))
        same = EXTENT not in arrays or tuple(np.asarray(arrays[EXTENT]).tolist()) == router.extent
        own = arrays["summary"] if same else router.summary(open_segments(plan, [name])[name].rows)
        set_bits(bits, np.asarray(own))
    _summaries[asks] = (whose, names, bits)
    return bits


_frequencies: tuple[frozenset[str], tuple[np.ndarray, np.ndarray]] | None = None


def open_frequencies(plan: BatchPlan) -> tuple[np.ndarray, np.ndarray]:
    """Sorted terms and in how many posts each was seen; kept in the process while the state has the same tables."""
    global _frequencies
    names = frozenset(ref.name for ref in plan.manifest.of(TERMS))
    if _frequencies is None or _frequencies[0] != names:
        tables = [TermTable.open(plan.state.path(name)) for name in sorted(names)]
        _frequencies = (names, frequencies(tables))
    return _frequencies[1]
