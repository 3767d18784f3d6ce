"""Compaction of subscriptions: small segments as larger ones, ends folded in, what has ended apart.

At most one rewriting of a kind a batch, so that none takes long.
"""

import numpy as np

from nearcast.common.kinds import Kind, codes, kinds
from nearcast.common.op_schema import BEGINNING, NEVER
from nearcast.engine.batch import open_frequencies, open_segments
from nearcast.engine.segment_rewriter import Rewriting
from nearcast.storage.compaction_policy import to_merge
from nearcast.storage.manifest import ENDS, SUBSCRIPTIONS, SegmentRef
from nearcast.storage.subscriptions.kernels.register import file_codes
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_set import read_logs, standing_ends

MANY_ENDS = 0.3  # of a segment's rows: then it is rewritten alone
LOGGED = 100_000  # ends may wait in any case
SAMPLED = 1_000  # rows of a segment, by which it is told how many have ended


class SubscriptionCompaction(Rewriting):
    def merge_subscriptions(self) -> None:
        """At most one rewriting of each kind; those that are for all workers are worker 0's."""
        refs = self.mine(SUBSCRIPTIONS)
        for kind in kinds():
            some = [ref for ref in refs if ref.asks == kind.code]
            if some:
                self.merge_some(kind, some)

    def merge_some(self, kind: Kind, refs: list[SegmentRef]) -> None:
        for ended in (0, 1):
            old = to_merge([ref for ref in refs if ref.facts.get("ended", 0) == ended])
            if not old and not ended:
                old = self.mostly_ended(refs) or kind.standing.overdue(self, refs)
            if not old and ended:
                old = self.long_over(refs)
            if old:
                self.replace(old, self.rewrite(kind, old))
                return

    def mostly_ended(self, refs: list[SegmentRef]) -> list[SegmentRef]:
        """A segment, if there is one, of which many rows have ended, by themselves or by later ops, or gone to other
        workers; or that keeps old logs of ends from going. A sample of its rows tells.
        """
        clock, first = self.manifest.clock, self.manifest.first_post
        live = [ref for ref in refs if not ref.facts.get("ended")]
        if clock is None or not live:
            return []
        segments = open_segments(self.plan, [ref.name for ref in live])
        ends = standing_ends(segments, read_logs(self.plan.state, self.manifest))
        many = []
        for ref in live:
            rows = segments[ref.name].rows
            sample = np.arange(0, len(rows), 1 + len(rows) // SAMPLED)
            stop = ends[ref.name].applied(rows, sample, NEVER if first is None else first)
            over = (stop <= clock) | self.lost(rows.take(sample), ref)
            if over.mean() > MANY_ENDS:
                many.append(ref)
        logged = sum(log.rows for log in self.manifest.of(ENDS))
        if not many and logged > sum(ref.rows for ref in refs) // 2 + LOGGED:
            many = sorted(live, key=lambda ref: ref.facts.get("folded", ref.batch - 1))
        return many[:1]

    def long_over(self, refs: list[SegmentRef]) -> list[SegmentRef]:
        """A segment, if there is one, of which no subscription can get even a late post any more."""
        retention, clock = self.plan.settings.retention, self.manifest.clock
        if retention is not None and clock is not None:
            for ref in refs:
                if ref.facts.get("ended") and (
                    open_segments(self.plan, [ref.name])[ref.name].latest[0] <= clock - retention
                ):
                    return [ref]
        return []

    def rewrite(self, kind: Kind, old: list[SegmentRef]) -> list[SegmentRef]:
        """Segments as one, ends folded in, words filed by what is frequent now; what has ended apart."""
        segments = open_segments(self.plan, [ref.name for ref in old])
        first = NEVER if self.manifest.first_post is None else self.manifest.first_post
        ends = standing_ends(segments, read_logs(self.plan.state, self.manifest))
        parts = []
        for name, segment in segments.items():
            stop = ends[name].applied(segment.rows, np.arange(len(segment)), first)
            unresolved = (segment.rows.life != NEVER) & (first == NEVER)
            life = np.where(unresolved, segment.rows.life, NEVER)
            parts.append(Rows(**{**segment.rows.__dict__, "end": stop, "life": life}))
        rows = kind.standing.rewrite(self, self.still_mine(Rows.concat(parts), old[0]))
        clock = BEGINNING if self.manifest.clock is None else self.manifest.clock
        retention = self.plan.settings.retention
        over = (rows.end <= clock) | (rows.end <= rows.start)
        dead = (rows.end <= rows.start) | (over & (retention is not None) & (rows.end <= clock - (retention or 0)))
        dead = kind.standing.dropped(self, rows, over, dead)
        refs = []
        for ended, mask in ((0, ~over), (1, over & ~dead)):
            if mask.any():
                some = rows if mask.all() else rows.take(np.flatnonzero(mask))
                refs.append(self.write_subscriptions(kind, some, old, ended))
        return refs

    def still_mine(self, rows: Rows, old: SegmentRef) -> Rows:
        """Without what other workers have taken over: it is cleaned up when it is rewritten (Tornado §4.6)."""
        lost = self.lost(rows, old)
        return rows.take(np.flatnonzero(~lost)) if lost.any() else rows

    def lost(self, rows: Rows, ref: SegmentRef) -> np.ndarray:
        if ref.asks not in codes("placed") or not self.manifest.adjustments or not len(rows):
            return np.zeros(len(rows), np.bool_)
        return ~self.plan.keepers(rows)[0][:, self.worker]

    def write_subscriptions(self, kind: Kind, rows: Rows, old: list[SegmentRef], ended: int) -> SegmentRef:
        if not kind.placed or not self.plan.shares:  # else their words have led them to this worker
            code = file_codes(rows.code, rows.code_offsets, *open_frequencies(self.plan))
            rows = Rows(**{**rows.__dict__, "code": code})
        new = kind.standing.write(self.plan, rows, self.worker)
        facts = {**new.facts, "ended": ended, "folded": self.plan.batch - 1}
        return self.ref(SUBSCRIPTIONS, new.name, len(rows), new.size, old, **facts)
