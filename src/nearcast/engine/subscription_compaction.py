"""Chores of subscriptions: small segments as larger ones, ends folded in, what has ended apart; and their answers.

At most one rewriting of a kind a batch, so that none takes long.
"""

import numpy as np

from nearcast.common.op_schema import AGGREGATES, BEGINNING, NEVER, RANGE, RELEVANT
from nearcast.common.op_schema import NEAREST as NEAREST_ASKED
from nearcast.common.op_schema import TERMS as TERMS_ASKED
from nearcast.engine.batch import open_frequencies, open_reach, open_segments, write_closest, write_segment
from nearcast.engine.segment_rewriter import Rewriting
from nearcast.engine.ticks import ON_A_BEAT
from nearcast.kinds.nearest.index import MANY, NOWHERE, Part, filed, place_order
from nearcast.kinds.nearest.standing import is_nearest
from nearcast.kinds.nearest.state import Answers, AnswerSet
from nearcast.kinds.relevance.subscribers import file_relevant
from nearcast.storage.compaction_policy import to_merge
from nearcast.storage.manifest import ENDS, NEAREST, SUBSCRIPTIONS, SegmentRef
from nearcast.storage.subscriptions.kernels.register import file_codes
from nearcast.storage.subscriptions.pyramid import PYRAMID
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Ends, Segment
from nearcast.storage.subscriptions.subscription_set import read_logs, standing_ends

MANY_ENDS = 0.3  # of a segment's rows: then it is rewritten alone
LOGGED = 100_000  # ends may wait in any case
SAMPLED = 1_000  # rows of a segment, by which it is told how many have ended


class SubscriptionChores(Rewriting):
    def merge_subscriptions(self) -> None:
        """At most one rewriting of those to ranges; and of the others, which are worker 0's."""
        refs = self.mine(SUBSCRIPTIONS)
        for asks in (RANGE, NEAREST_ASKED, TERMS_ASKED, AGGREGATES, RELEVANT):
            some = [ref for ref in refs if ref.asks == asks]
            if some:
                self.merge_some(some)

    def merge_some(self, refs: list[SegmentRef]) -> None:
        for ended in (0, 1):
            old = to_merge([ref for ref in refs if ref.facts.get("ended", 0) == ended])
            if not old and not ended:
                old = self.mostly_ended(refs) or self.mostly_shrunk(refs)
            if not old and ended:
                old = self.long_over(refs)
            if old:
                self.replace(old, self.rewrite(old, bool(ended)))
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

    def mostly_shrunk(self, refs: list[SegmentRef]) -> list[SegmentRef]:
        """A segment of subscriptions to the nearest, if there is one, whose circles have become much smaller than they
        are filed, or larger.
        """
        for ref in refs:
            if is_nearest(ref):
                (segment,) = open_segments(self.plan, [ref.name]).values()
                limits = self.answers.limits(segment.rows.seq, NOWHERE)
                part = Part(segment, Ends.none(len(segment)), limits, open_reach(self.plan, ref.name))
                if part.stale() + int((part.limits > part.reach).sum()) > MANY * len(part):
                    return [ref]
        return []

    @property
    def answers(self) -> AnswerSet:
        return AnswerSet.open(self.plan.state, self.manifest)

    def merge_answers(self) -> None:
        """Files of answers as one; all of them, where most that they know are no more."""
        refs = self.manifest.of(NEAREST)
        old = to_merge(refs)
        if not old and refs and len(self.answers.known) >= 2 * len(self.answers):
            old = refs
        if old:
            some = AnswerSet([Answers.open(self.plan.state.path(ref.name)) for ref in old])
            merged = some.merged(tombstones=len(old) < len(refs))
            name, new = self.name(NEAREST), []
            if len(merged):
                size = merged.write(self.plan.state.path(name))
                new = [self.ref(NEAREST, name, len(merged) + len(merged.km), size, old)]
            self.replace(old, new)

    def rewrite(self, old: list[SegmentRef], ended: bool) -> list[SegmentRef]:
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
        rows = self.still_mine(Rows.concat(parts), old[0])
        nearest = is_nearest(old[0])
        if nearest:  # what others have taken over from
            rows = rows.take(np.flatnonzero(self.answers.places(rows.seq) >= 0))
        clock = BEGINNING if self.manifest.clock is None else self.manifest.clock
        retention = self.plan.settings.retention
        over = (rows.end <= clock) | (rows.end <= rows.start)
        dead = (rows.end <= rows.start) | (over & (retention is not None) & (rows.end <= clock - (retention or 0)))
        if old[0].asks == RELEVANT:  # what they had has left with their end
            dead = over
        if nearest:
            never = rows.end <= rows.start  # what they had leaves, and nobody else would tell of it
            self.report.superseded += rows.seq[never].tolist()
            self.report.forgotten += rows.seq[dead & ~never].tolist()
        refs = []
        for kind, mask in ((0, ~over), (1, over & ~dead)):
            if mask.any():
                some = rows if mask.all() else rows.take(np.flatnonzero(mask))
                refs.append(self.write_subscriptions(some, old, kind))
        return refs

    def still_mine(self, rows: Rows, old: SegmentRef) -> Rows:
        """Without what other workers have taken over: it is cleaned up when it is rewritten (Tornado §4.6)."""
        lost = self.lost(rows, old)
        return rows.take(np.flatnonzero(~lost)) if lost.any() else rows

    def lost(self, rows: Rows, ref: SegmentRef) -> np.ndarray:
        if ref.asks != RANGE or not self.manifest.adjustments or not len(rows):
            return np.zeros(len(rows), np.bool_)
        return ~self.plan.keepers(rows)[0][:, self.worker]

    def write_subscriptions(self, rows: Rows, old: list[SegmentRef], ended: int) -> SegmentRef:
        if old[0].asks == RELEVANT:
            new = file_relevant(self.plan, rows)
            facts = {**new.facts, "ended": ended, "folded": self.plan.batch - 1}
            return self.ref(SUBSCRIPTIONS, new.name, len(rows), new.size, old, **facts)
        code = rows.code
        if is_nearest(old[0]) or not self.plan.shares:  # else their words have led them to this worker
            code = file_codes(rows.code, rows.code_offsets, *open_frequencies(self.plan))
        if is_nearest(old[0]):
            rows = Rows(**{**rows.__dict__, "code": code})
            rows = rows.take(place_order(rows))
            reach = self.answers.limits(rows.seq, NOWHERE)
            name, size = write_closest(self.plan, filed(rows, reach), reach, self.worker)
            facts = {"ended": ended, "folded": self.plan.batch - 1, "asks": NEAREST_ASKED}
            return self.ref(SUBSCRIPTIONS, name, len(rows), size, old, **facts)
        reporting = old[0].asks in ON_A_BEAT
        segment = Segment.build(Rows(**{**rows.__dict__, "code": code}), PYRAMID if reporting else self.plan.filing)
        name, size = write_segment(self.plan, segment, self.worker)
        facts = {"ended": ended, "folded": self.plan.batch - 1} | ({"asks": old[0].asks} if reporting else {})
        return self.ref(SUBSCRIPTIONS, name, len(rows), size, old, **facts)
