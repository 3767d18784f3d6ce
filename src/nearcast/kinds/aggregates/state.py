"""What has been counted for standing aggregates, by series and interval, as a manifest has it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nearcast.engine.batch import BatchPlan
from nearcast.engine.segment_rewriter import Rewriting
from nearcast.kinds.aggregates.counting import open_aggregates
from nearcast.kinds.aggregates.group_by import merge, nothing
from nearcast.kinds.aggregates.groups import Groups, Shape
from nearcast.kinds.aggregates.interval_counts import Partials
from nearcast.kinds.aggregates.time_layers import ANY, SERIES, Layers, added_up
from nearcast.storage.compaction_policy import to_merge
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import PARTIALS, Manifest, SegmentRef
from nearcast.storage.posts.question import NOTHING

_opened: dict[str, Partials] = {}  # files by their names: they never change


@dataclass(frozen=True)
class StoredCounts:
    """What has been counted, as it lies in files; `again` is what they have together of the series that were counted
    again after a deletion, which is to be asked instead of them.
    """

    files: Sequence[Partials]
    again: Partials
    recounted: np.ndarray

    def added_up(
        self, shape: Shape, series: np.ndarray, first: np.ndarray, last: np.ndarray
    ) -> tuple[np.ndarray, Groups]:
        """As `kinds.aggregates.time_layers.added_up`, of series of one class."""
        numbers, parts, known = np.full(len(series), -1, np.int64), [nothing(shape)], 0
        special = np.isin(series, self.recounted)
        for rows, layers in ((~special, self._layers(shape)), (special, self._layers_again(shape))):
            if layers and rows.any():
                found, groups = added_up(layers, series[rows], first[rows], last[rows], shape)
                numbers[rows] = np.where(found < 0, -1, found + known)
                values = groups.values.copy()
                values[:, SERIES] += known
                parts.append(replace(groups, values=values))
                known += int(found.max(initial=-1)) + 1
        return numbers, merge(parts, ANY)

    def intervals(self, shape: Shape, series: int) -> np.ndarray:
        """Those of a series that have posts, ascending."""
        layers = self._layers_again(shape) if series in self.recounted else self._layers(shape)
        return np.unique(np.concatenate([NOTHING, *(each.intervals(series) for each in layers)]))

    def _layers(self, shape: Shape) -> list[Layers]:
        return [each.layers[shape] for each in self.files if shape in each.layers]

    def _layers_again(self, shape: Shape) -> list[Layers]:
        return [Layers.of(self.again.parts[shape])] if shape in self.again.parts else []


def open_counts(state: StateDirectory, manifest: Manifest) -> StoredCounts:
    """All that has been counted for standing aggregates."""
    refs = manifest.of(PARTIALS)
    current = {str(state.path(ref.name)) for ref in refs}
    for name in [name for name in _opened if name not in current]:
        del _opened[name]
    files = list(_files(state, refs))
    recounted = np.unique(np.concatenate([NOTHING, *(each.replaced[:, 0] for each in files)]))
    again = Partials.merged(each.of(recounted) for each in files) if len(recounted) else Partials({})
    return StoredCounts(files, again, recounted)


def read_partials(state: StateDirectory, refs: Sequence[SegmentRef]) -> Partials:
    return Partials.merged(_files(state, refs))


def _files(state: StateDirectory, refs: Sequence[SegmentRef]) -> Iterable[Partials]:
    """In the order in which they were written: what replaces comes last of its batch."""
    for ref in sorted(refs, key=lambda ref: (ref.batch, bool(ref.facts.get("replaced")))):
        path = state.path(ref.name)
        if str(path) not in _opened:
            _opened[str(path)] = Partials.open(path)
        yield _opened[str(path)]


def spent(plan: BatchPlan, refs: Sequence[SegmentRef]) -> list[SegmentRef]:
    """Files that no report to come will count anything of."""
    clock = plan.manifest.clock
    reach = [each.reach for part in open_aggregates(plan, plan.manifest) for each in part.series]
    if clock is None or 0 in reach:
        return []
    oldest = clock - plan.settings.lateness - max(reach, default=0)
    return [ref for ref in refs if not reach or (ref.max_ts <= oldest and not ref.facts.get("replaced"))]


def needed(plan: BatchPlan, partials: Partials) -> Partials:
    """Without what no report to come will count; what an aggregate without a window has counted becomes one interval.

    Reports to come are of beats that the clock, less the lateness, has not passed.
    """
    clock = plan.manifest.clock
    if clock is None:
        return partials
    horizon = clock - plan.settings.lateness
    series = {each.number: each for part in open_aggregates(plan, plan.manifest) for each in part.series}
    numbers = np.array(sorted(series), np.int64)
    if not len(numbers):
        return Partials({})
    lengths = np.array([series[number].interval for number in numbers.tolist()], np.int64)
    reach = np.array([series[number].reach for number in numbers.tolist()], np.int64)
    partials = partials.of(numbers)

    def wanted(values: np.ndarray) -> np.ndarray:
        at = np.searchsorted(numbers, values[:, 0])
        return (reach[at] == 0) | (values[:, 1] * lengths[at] > horizon - reach[at])

    def told(values: np.ndarray) -> np.ndarray:
        at = np.searchsorted(numbers, values[:, 0])
        done = horizon // lengths[at]
        return np.where((reach[at] == 0) & (values[:, 1] < done), done, values[:, 1])

    return partials.picked(wanted).relabelled(told)


def merge_partials(rewriting: Rewriting) -> None:
    """What was counted for standing aggregates in fewer files, without what no report will need."""
    plan, refs = rewriting.plan, rewriting.manifest.of(PARTIALS)
    gone = spent(plan, refs) if refs else []
    if gone:
        rewriting.result.gone += [ref.name for ref in gone]
        refs = [ref for ref in refs if ref not in gone]
    old = refs if any(ref.facts.get("replaced") for ref in refs) else to_merge(refs)
    if not old:
        return
    merged = needed(plan, read_partials(plan.state, old))
    name, new = rewriting.name(PARTIALS), []
    if len(merged):
        size = merged.write(plan.state.path(name))
        new = [rewriting.ref(PARTIALS, name, len(merged), size, old)]
    rewriting.replace(old, new)
