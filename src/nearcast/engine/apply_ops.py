"""Ops in work: new subscriptions are filed where they are kept, and catch up with the posts that came before them."""

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import chunk
from nearcast.common.kernels.mix import id_keys
from nearcast.common.op_schema import AGGREGATES, NEVER, RANGE
from nearcast.common.op_schema import TERMS as TERMS_ASKED
from nearcast.engine.batch import Plan, open_segments, write_segment
from nearcast.engine.keyword_lists import words_of_searches
from nearcast.engine.match_results import ids_as_arrays, pair_prints, results_of
from nearcast.engine.noted_searches import note_searches
from nearcast.engine.op_packets import HOME, KEEPS, STORES, Share
from nearcast.engine.op_resolution import Resolved, resolve
from nearcast.engine.post_copies import own_posts
from nearcast.engine.task_result import Report
from nearcast.engine.ticks import file_reporting
from nearcast.kinds.aggregates.standing import Tally
from nearcast.kinds.relevance.subscribers import file_relevant
from nearcast.partitioning.learned_words import Learnt
from nearcast.storage.bundle import bundle_table
from nearcast.storage.deletes import SCHEMA as DELETED
from nearcast.storage.deletes import deletes_for
from nearcast.storage.files import write_table
from nearcast.storage.manifest import DELETES, ENDS, POSTS, RESULTS, SUBSCRIPTIONS, SegmentRef
from nearcast.storage.outbox import MATCH, Results
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Matches, Segment
from nearcast.storage.subscriptions.subscription_set import EndLog, SubscriptionSet, read_logs


class Ops:
    """The part of a worker's task that concerns ops. What they mean is worked out alike by every worker."""

    def __init__(self, plan: Plan, worker: int) -> None:
        self.plan = plan
        self.worker = worker
        self.report = Report(worker)
        self.manifest = plan.manifest
        self.looking: Segment | None = None
        self.tally = Tally(plan, worker, self.report)
        self.learnt: list[Learnt] = []
        self.first_post = NEVER if self.manifest.first_post is None else self.manifest.first_post

    def mine(self, ref: SegmentRef) -> bool:
        """Whether a segment of posts may hold some of this worker's leaves."""
        return self.plan.mine(ref, self.worker)

    def add(self, kind: str, name: str, rows: int, size: int, **more: int) -> None:
        facts = {"layout": self.plan.layout}
        ref = SegmentRef(kind, name, rows, size, self.plan.batch, self.worker, facts=facts, **more)
        self.report.segments.append(ref)

    def new_name(self, kind: str) -> str:
        return self.plan.state.new_name(kind, self.plan.batch, self.worker)

    def standing(
        self, all_workers: bool = False, more: Resolved | None = None, own: Segment | None = None
    ) -> SubscriptionSet:
        """The subscriptions of this worker (or of all), and those that this batch adds."""
        refs = self.manifest.of(SUBSCRIPTIONS)
        names = [ref.name for ref in refs if all_workers or (ref.owner == self.worker and ref.asks == RANGE)]
        segments = open_segments(self.plan, names)
        logs = read_logs(self.plan.state, self.manifest)
        if own is not None:
            segments = {**segments, self.own_name: own}
        ends = EndLog.empty() if more is None else more.ends
        return SubscriptionSet(segments, ends, self.first_post, logs)

    def apply(self, ops: pa.Table, share: Share) -> Resolved:
        """Work out what the ops mean and write this worker's share of the result."""
        report, plan = self.report, self.plan
        with report.timed("ops"):
            everyone = self.standing(all_workers=True)
            resolved = resolve(ops, everyone, self.manifest.clock, self.manifest.next_op, share)
            report.ops = len(ops)
            rows = resolved.rows
            ranges = np.flatnonzero(~(rows.nearest | rows.reporting | rows.relevant))
            if rows.aggregating.any():
                self.tally = Tally(plan, self.worker, report, rows.take(np.flatnonzero(rows.aggregating)))
            self.own = self._file(rows if len(ranges) == len(rows) else rows.take(ranges), resolved.roles[ranges])
        if self.worker == 0:
            for asks, mask in ((TERMS_ASKED, rows.reporting & ~rows.aggregating), (AGGREGATES, rows.aggregating)):
                if mask.any():
                    some = rows.take(np.flatnonzero(mask))
                    if asks == AGGREGATES and self.tally.new is not None:
                        some = self.tally.new
                    report.segments.append(file_reporting(plan, some, asks))
                    report.count(filed=len(some))
            if rows.relevant.any():
                report.segments.append(file_relevant(plan, rows.take(np.flatnonzero(rows.relevant))))
                report.count(filed=report.segments[-1].rows)
            report.count(**resolved.counts)
            report.searches = [dict(row) for row in resolved.searches.to_pylist()]
            self.learnt.append(words_of_searches(plan, share.ops))
            report.segments += note_searches(plan, share.ops)
            if len(resolved.ends):
                arrays = {"key": resolved.ends.key, "seq": resolved.ends.seq, "end": resolved.ends.end}
                name = self.new_name(ENDS)
                self.add(ENDS, name, len(resolved.ends), write_table(plan.state.path(name), bundle_table(arrays)))
            if len(resolved.deletes):
                name = self.new_name(DELETES)
                batch = pa.array(np.full(len(resolved.deletes), plan.batch))
                table = resolved.deletes.append_column("batch", batch).cast(DELETED)
                self.add(DELETES, name, len(table), write_table(plan.state.path(name), table))
        return resolved

    def _file(self, rows: Rows, roles: np.ndarray) -> Segment | None:
        """Index and write the new subscriptions that concern this worker's leaves."""
        mine, looking = np.flatnonzero(roles & KEEPS), np.flatnonzero(roles & STORES)
        if len(looking):  # at posts that this worker stores, whoever keeps the subscriptions
            self.looking = Segment.build(rows, self.plan.filing, looking)
        if not len(mine):
            return None
        rows = Rows(**{**rows.__dict__, "home": (roles & HOME != 0).astype(np.uint8)})
        segment = Segment.build(rows, self.plan.filing, mine)
        name, size = write_segment(self.plan, segment, self.worker)
        self.own_name = name
        self.add(SUBSCRIPTIONS, name, len(segment), size)
        self.report.count(filed=len(segment))
        return segment

    def catch_up(self, resolved: Resolved) -> list[Results]:
        """Results of new subscriptions among the posts already kept; deletions of the same batch count."""
        own = self.own if self.looking is None else self.looking
        if own is None or self.plan.settings.keep == "none" or self.manifest.clock is None:
            return []
        found = []
        with self.report.timed("catch up"):
            since = int(own.rows.start.min())
            ends = resolved.ends.of(own)
            for ref in self.manifest.of(POSTS):
                if ref.max_ts < since or not self.mine(ref):
                    continue
                segment = PostSegment(self.plan.state.path(ref.name))
                rows = own_posts(self.plan, ref, segment, np.flatnonzero(segment.ts >= since), self.worker)
                deletes = deletes_for(self.plan.state, self.manifest, ref).select(["id", "id_text"])
                deletes = pa.concat_tables([deletes, resolved.deletes.cast(deletes.schema)])
                rows = rows[~segment.deleted(deletes)[rows]]
                columns = segment.columns(rows)
                matches = own.match(columns, ends, self.first_post)
                if len(matches.posts):
                    hit, back = np.unique(matches.posts, return_inverse=True)
                    pairs = Matches(back, matches.rows, matches.candidates)
                    found.append(results_of([(own.rows, pairs)], segment.take(rows[hit]), MATCH, self.plan.batch))
            found = [part for part in found if len(part)]
            return self._news(found, resolved) if found and len(resolved.again) else found

    def _news(self, found: list[Results], resolved: Resolved) -> list[Results]:
        """Without what an earlier subscription of the same id has had already: the outbox has each pair once."""
        whole = Results.concat(found)
        again = np.isin(id_keys(*ids_as_arrays(whole.table)), resolved.again)
        if not again.any():
            return found
        since = int(chunk(whole.posts["ts"]).to_numpy().min())
        known = [np.empty(0, np.uint64)]
        for ref in self.manifest.of(RESULTS):
            if ref.max_ts >= since:
                results = Results.open(self.plan.state.path(ref.name))
                of_them = np.isin(id_keys(*ids_as_arrays(results.table)), resolved.again)
                known.append(pair_prints(results, of_them & (results.table["kind"].to_numpy() == MATCH)))
        new = ~again
        new[again] = ~np.isin(pair_prints(whole, again), np.concatenate(known))
        return [Results(whole.table.filter(pa.array(new)), whole.posts)]
