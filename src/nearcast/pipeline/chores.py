"""Chores: what keeps the state small, done by each worker at the end of its task and committed with the batch.

Merging rewrites small segments as larger ones; ended subscriptions move to segments that only late posts look at;
deleted posts leave the disk; expired time slots become Parquet in the archive. At most one merge of a kind a batch,
so that none takes long.
"""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.index.closest import MANY, NOWHERE, Part, filed, place_order
from nearcast.index.posts import PostSegment, are_deleted, chunk, write_posts
from nearcast.index.pyramid import PYRAMID
from nearcast.index.rows import Rows
from nearcast.index.segment import Ends, Segment
from nearcast.index.subscriptions import read_logs, standing_ends
from nearcast.kernels.register import file_codes
from nearcast.model.ops import AGGREGATES, BEGINNING, NEVER, RANGE
from nearcast.model.ops import NEAREST as NEAREST_ASKED
from nearcast.model.ops import TERMS as TERMS_ASKED
from nearcast.pipeline.beats import ON_A_BEAT, open_standing
from nearcast.pipeline.closest import is_nearest
from nearcast.pipeline.lists import merge_learnt
from nearcast.pipeline.partials import needed, read_partials, spent
from nearcast.pipeline.plan import Plan, open_frequencies, open_reach, open_segments, write_closest, write_segment
from nearcast.pipeline.report import Report
from nearcast.state.bundle import bundle_table, open_bundle
from nearcast.state.deletes import deletes_for
from nearcast.state.files import open_table, write_parquet, write_table
from nearcast.state.manifest import (
    ARCHIVE,
    DELETES,
    ENDS,
    NEAREST,
    PARTIALS,
    POSTS,
    REJECTS,
    RESULTS,
    SUBSCRIPTIONS,
    TERMS,
    WINDOW,
    SegmentRef,
)
from nearcast.state.merging import run_to_merge, to_merge
from nearcast.state.results import Results
from nearcast.state.standing import Answers, AnswerSet
from nearcast.state.terms import TermTable

FILES_CLEANED = 8  # of the archive, in one batch at most
MANY_ENDS = 0.3  # of a segment's rows: then it is rewritten alone
LOGGED = 100_000  # ends may wait in any case
SAMPLED = 1_000  # rows of a segment, by which it is told how many have ended


def do_chores(plan: Plan, worker: int, report: Report) -> None:
    with report.timed("chores"):
        Chores(plan, worker, report).all()


class Chores:
    def __init__(self, plan: Plan, worker: int, report: Report) -> None:
        self.plan = plan
        self.worker = worker
        self.report = report
        self.manifest = plan.manifest

    def all(self) -> None:
        self.expire_posts()
        self.expire_windows()
        self.merge_posts()
        self.clean_archive()
        self.merge_subscriptions()
        if self.worker == 0:
            self.expire_results()
            self.merge_results()
            self.merge_terms()
            self.merge_answers()
            self.merge_partials()
            self.merge_plain()
            self.merge_keywords()

    def mine(self, kind: str) -> list[SegmentRef]:
        """Segments that are this worker's to rewrite and that this task has not rewritten yet."""
        workers = self.plan.settings.workers
        gone = set(self.report.gone)
        return [s for s in self.manifest.of(kind) if s.owner % workers == self.worker and s.name not in gone]

    def replace(self, old: list[SegmentRef], new: list[SegmentRef]) -> None:
        self.report.gone += [ref.name for ref in old]
        self.report.segments += new
        self.report.count(merges=1, merged_rows=sum(ref.rows for ref in new))

    def ref(self, kind: str, name: str, rows: int, size: int, old: list[SegmentRef], **facts: int | None) -> SegmentRef:
        same = {ref.facts.get("layout") for ref in old} == {self.plan.layout}
        shared = {"layout": self.plan.layout} if same else {}
        bounds = min(ref.min_ts for ref in old), max(ref.max_ts for ref in old)
        return SegmentRef(kind, name, rows, size, self.plan.batch, self.worker, *bounds, facts={**shared, **facts})

    def name(self, kind: str) -> str:
        return self.plan.state.new_name(kind, self.plan.batch, self.worker)

    # -- posts ---------------------------------------------------------------------------------------------------------

    def merge_posts(self) -> None:
        for kind in (POSTS, WINDOW):
            old = to_merge(self.mine(kind))
            if old:
                table = pa.concat_tables([self.read_posts(ref) for ref in old], promote_options="default")
                self.replace(old, self.write_posts(table.combine_chunks(), old))

    def expire_windows(self) -> None:
        """What is kept for windows only goes when no window reaches back to it."""
        refs, clock = self.mine(WINDOW), self.manifest.clock
        if not refs or clock is None:
            return
        standing = open_standing(self.plan, self.manifest, (TERMS_ASKED,))
        oldest = [
            int((part.following - part.window)[part.following < part.stop].min(initial=NEVER)) for part in standing
        ]
        old = [ref for ref in refs if ref.max_ts <= min(oldest, default=NEVER)]
        self.report.gone += [ref.name for ref in old]

    def read_posts(self, ref: SegmentRef) -> pa.Table:
        """All posts of a segment but the deleted ones."""
        segment = PostSegment(self.plan.state.path(ref.name))
        table = segment.all()
        return table.filter(pa.array(~segment.deleted(deletes_for(self.plan.state, self.manifest, ref))))

    def write_posts(self, table: pa.Table, old: list[SegmentRef]) -> list[SegmentRef]:
        if not len(table):
            return []
        kind = old[0].kind
        name = self.name(kind)
        size, _ = write_posts(self.plan.state.path(name), table)
        ts = table["ts"].to_numpy()
        ref = self.ref(kind, name, len(table), size, old, cleaned=self.plan.batch - 1)
        return [replace(ref, min_ts=int(ts.min()), max_ts=int(ts.max()))]

    def expire_posts(self) -> None:
        """Whole time slots that retention has passed go to the archive."""
        settings, clock = self.plan.settings, self.manifest.clock
        if settings.retention is None or clock is None:
            return
        horizon = (clock - settings.retention - settings.lateness) // settings.slot * settings.slot
        for ref in self.mine(POSTS):
            if ref.min_ts // settings.slot * settings.slot >= horizon:
                continue
            table = self.read_posts(ref)
            expired = table["ts"].to_numpy() < horizon
            archived = self.archive(table.filter(pa.array(expired)), ref)
            kept = table.filter(pa.array(~expired))
            self.replace([ref], self.write_posts(kept.combine_chunks(), [ref]) + archived)
            self.report.count(expired=int(expired.sum()))

    def archive(self, table: pa.Table, old: SegmentRef) -> list[SegmentRef]:
        """One Parquet file a slot; any engine reads it."""
        slot = self.plan.settings.slot
        slots = table["ts"].to_numpy() // slot
        refs = []
        for number in np.unique(slots):
            part = archived_table(table.filter(pa.array(slots == number)).drop_columns(["leaf", "terms"]))
            begin = datetime.fromtimestamp(int(number) * slot / 1e6, UTC).strftime("%Y-%m-%dT%H%M")
            name = f"archive/slot={begin}/{self.name(POSTS).rsplit('/', 1)[1]}"
            size = write_parquet(self.plan.state.path(name, ".parquet"), part)
            ts = part["ts"].cast(pa.int64()).to_numpy()
            ref = self.ref(ARCHIVE, name, len(part), size, [old], cleaned=self.plan.batch - 1)
            refs.append(replace(ref, min_ts=int(ts.min()), max_ts=int(ts.max())))
        return refs

    def clean_archive(self) -> None:
        """Deleted posts leave the archive too, a few files a batch, those first that were cleaned longest ago."""
        if not self.manifest.of(DELETES):
            return
        pending = [(ref, deletes_for(self.plan.state, self.manifest, ref)) for ref in self.mine(ARCHIVE)]
        pending = sorted(((r, d) for r, d in pending if len(d)), key=lambda each: each[0].facts.get("cleaned", -1))
        for ref, deletes in pending[:FILES_CLEANED]:
            table = pq.read_table(self.plan.state.path(ref.name, ".parquet"), partitioning=None).combine_chunks()
            gone = are_deleted(table["id"].to_numpy(), chunk(table["id_text"]), deletes)
            facts = {**ref.facts, "cleaned": self.plan.batch - 1}
            if not gone.any():
                self.replace([ref], [replace(ref, facts=facts)])
                continue
            kept, new = table.filter(pa.array(~gone)), []
            if len(kept):
                name = f"{ref.name.rsplit('/', 1)[0]}/{self.name(POSTS).rsplit('/', 1)[1]}"
                size = write_parquet(self.plan.state.path(name, ".parquet"), kept)
                new = [replace(ref, name=name, rows=len(kept), size=size, batch=self.plan.batch, facts=facts)]
            self.replace([ref], new)

    # -- subscriptions -------------------------------------------------------------------------------------------------

    def merge_subscriptions(self) -> None:
        """At most one rewriting of those to ranges; and of the others, which are worker 0's."""
        refs = self.mine(SUBSCRIPTIONS)
        for asks in (RANGE, NEAREST_ASKED, TERMS_ASKED, AGGREGATES):
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
        if nearest:
            never = rows.end <= rows.start  # what they had leaves, and nobody else would tell of it
            self.report.superseded += rows.seq[never].tolist()
            self.report.forgotten += rows.seq[dead & ~never].tolist()
        refs = []
        for kind, mask in ((0, ~over), (1, over & ~dead)):
            if mask.any():
                refs.append(self.write_subscriptions(rows.take(np.flatnonzero(mask)), old, kind))
        return refs

    def still_mine(self, rows: Rows, old: SegmentRef) -> Rows:
        """Without what other workers have taken over: it is cleaned up when it is rewritten (seed 002 §4.6)."""
        lost = self.lost(rows, old)
        return rows.take(np.flatnonzero(~lost)) if lost.any() else rows

    def lost(self, rows: Rows, ref: SegmentRef) -> np.ndarray:
        if ref.asks != RANGE or not self.manifest.adjustments or not len(rows):
            return np.zeros(len(rows), np.bool_)
        return ~self.plan.router.keepers(rows, self.plan.settings.workers)[0][:, self.worker]

    def write_subscriptions(self, rows: Rows, old: list[SegmentRef], ended: int) -> SegmentRef:
        code = rows.code
        if is_nearest(old[0]) or not self.plan.router.shares:  # else their words have led them to this worker
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

    # -- the rest, by worker 0 -----------------------------------------------------------------------------------------

    def merge_partials(self) -> None:
        """What was counted for standing aggregates, without what no report will need."""
        refs = self.manifest.of(PARTIALS)
        gone = spent(self.plan, refs) if refs else []
        if gone:
            self.report.gone += [ref.name for ref in gone]
            refs = [ref for ref in refs if ref not in gone]
        old = refs if any(ref.facts.get("replaced") for ref in refs) else to_merge(refs)
        if not old:
            return
        merged = needed(self.plan, read_partials(self.plan.state, old))
        name, new = self.name(PARTIALS), []
        if len(merged):
            size = merged.write(self.plan.state.path(name))
            new = [self.ref(PARTIALS, name, len(merged), size, old)]
        self.replace(old, new)

    def expire_results(self) -> None:
        """Segments of results that `--keep-results` has passed. Sinks had them: they deliver after every commit."""
        limit, clock = self.plan.settings.keep_results, self.manifest.clock
        if limit is None or clock is None:
            return
        old = [ref for ref in self.manifest.of(RESULTS) if ref.max_ts < clock - limit]
        self.report.gone += [ref.name for ref in old]
        self.report.count(expired_results=sum(ref.rows for ref in old))

    def merge_results(self) -> None:
        gone = set(self.report.gone)
        kept = [ref for ref in self.manifest.of(RESULTS) if ref.name not in gone]
        old = run_to_merge(sorted(kept, key=lambda ref: ref.facts["seq"]))
        if not old:
            return
        whole = Results.concat([Results.open(self.plan.state.path(ref.name)) for ref in old])
        name = self.name(RESULTS)
        path = self.plan.state.path(name)
        size = whole.write(path)
        prints = []
        for ref in old:
            index = self.plan.state.path(ref.name, ".index.arrow")
            if index.exists():
                prints.append(np.asarray(open_bundle(index)["fingerprints"]))
        if prints:
            arrays = {"fingerprints": np.unique(np.concatenate(prints))}
            size += write_table(path.with_suffix(".index.arrow"), bundle_table(arrays))
        self.replace(old, [self.ref(RESULTS, name, len(whole), size, old, seq=old[0].facts["seq"], layout=None)])

    def merge_terms(self) -> None:
        old = to_merge(self.manifest.of(TERMS))
        if old:
            merged = TermTable.merged([TermTable.open(self.plan.state.path(ref.name)) for ref in old])
            name = self.name(TERMS)
            size = merged.write(self.plan.state.path(name))
            self.replace(old, [self.ref(TERMS, name, len(merged.term), size, old)])

    def merge_keywords(self) -> None:
        old, new = merge_learnt(self.plan, self.worker)
        if old:
            self.replace(old, new)

    def merge_plain(self) -> None:
        """Ends, deletes and rejects: small tables, joined end to end."""
        for kind in (ENDS, DELETES, REJECTS):
            old = to_merge(self.manifest.of(kind))
            if not old:
                continue
            name = self.name(kind)
            path = self.plan.state.path(name)
            if kind == ENDS:
                bundles = [open_bundle(self.plan.state.path(ref.name)) for ref in old]
                arrays = {key: np.concatenate([np.asarray(b[key]) for b in bundles]) for key in ("key", "seq", "end")}
                rows, size = len(arrays["key"]), write_table(path, bundle_table(arrays))
            else:
                table = pa.concat_tables([open_table(self.plan.state.path(ref.name)) for ref in old])
                rows, size = len(table), write_table(path, table, compression="lz4" if kind == REJECTS else None)
            ref = self.ref(kind, name, rows, size, old)
            self.replace(old, [replace(ref, batch=max(each.batch for each in old))])


def archived_table(table: pa.Table) -> pa.Table:
    """Posts as anyone would expect to find them in Parquet: times as times."""
    ts = table["ts"].cast(pa.timestamp("us", tz="UTC"))
    return table.set_column(table.schema.get_field_index("ts"), "ts", ts)
