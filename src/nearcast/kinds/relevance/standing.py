"""Subscriptions by relevance in a batch (Skype).

In the first round the posts of the batch are noted in the ledger. Then each worker matches them with the subscribers
that it holds (`matching`), and advances the buffers of those whose home it is (`buffer_round`). `merge` is the whole of
the further rounds.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.common.op_schema import BEGINNING
from nearcast.engine.arrivals import Arrivals
from nearcast.engine.batch import BatchPlan
from nearcast.engine.op_resolution import Resolved
from nearcast.engine.roles import Standing, StandingRole
from nearcast.engine.routing_view import RoutingView
from nearcast.engine.segment_rewriter import Rewriting
from nearcast.engine.settings import LEDGER_SINCE, Settings
from nearcast.engine.subscription_compaction import SubscriptionCompaction
from nearcast.engine.task import Task
from nearcast.engine.task_result import AllWorkers, TaskResult, noted
from nearcast.kinds.relevance import KIND
from nearcast.kinds.relevance.compaction import LedgerCompaction
from nearcast.kinds.relevance.idf_maintenance import freeze, sample_version
from nearcast.kinds.relevance.idf_versions import kept_versions
from nearcast.kinds.relevance.ledger_maintenance import note, numbered
from nearcast.kinds.relevance.merge import rank
from nearcast.kinds.relevance.subscribers import file_relevant
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import LEDGER, Manifest, SegmentRef
from nearcast.storage.outbox import Results
from nearcast.storage.subscriptions.rows import Rows


class RelevanceStanding(Standing):
    def match(self, posts: Arrivals) -> list[Results]:
        """Enter this worker's posts in the ledger; the further rounds match them."""
        task, columns = self.task, posts.columns
        with task.result.timed("ledger"):
            ref = note(task.plan, task.worker, posts.posts, columns.terms, columns.offsets, posts.stored)
            task.result.segments += [] if ref is None else [ref]
        return []


class RelevanceStandingRole(StandingRole):
    kind = KIND

    def wants(self, plan: BatchPlan, posts: RoutingView) -> np.ndarray:
        """All posts: a window has all of them."""
        return posts.everything()

    def open(self, task: Task, ops: Resolved | None) -> Standing:
        return RelevanceStanding(self, task, ops)

    def second_round(
        self, plan: BatchPlan, after: Manifest, tasks: Sequence[TaskResult], all_workers: AllWorkers
    ) -> list[SegmentRef]:
        versions = freeze(plan, after)
        after = replace(after, segments=(*after.segments, *versions))
        return [*versions, *rank(plan, after, tasks, all_workers)]

    def begin(self, state: StateDirectory, settings: Settings, sample: pa.Table) -> list[SegmentRef]:
        return [sample_version(state, settings, sample)]

    def number(self, new: list[SegmentRef], known: Sequence[SegmentRef]) -> list[SegmentRef]:
        return numbered(new, known)

    def retain(self, segments: list[SegmentRef]) -> list[SegmentRef]:
        return kept_versions(segments)

    def settings(self, before: Manifest, segments: Sequence[SegmentRef], tasks: Sequence[TaskResult]) -> dict[str, Any]:
        """From which time on the ledger has all posts, where there is one."""
        if not any(ref.kind == LEDGER for ref in segments):
            return {LEDGER_SINCE: None}
        return {LEDGER_SINCE: max(noted(tasks, LEDGER_SINCE), default=before.settings.get(LEDGER_SINCE, BEGINNING))}

    def compact(self, rewriting: Rewriting) -> None:
        if rewriting.worker == 0:
            LedgerCompaction(rewriting.plan, 0, rewriting.result).merge_ledger()

    def dropped(self, compaction: SubscriptionCompaction, rows: Rows, over: np.ndarray, dead: np.ndarray) -> np.ndarray:
        """All that have ended: what they had has left with their end."""
        return over

    def write(self, plan: BatchPlan, rows: Rows, worker: int) -> SegmentRef:
        return file_relevant(plan, rows)


ROLE = RelevanceStandingRole()
