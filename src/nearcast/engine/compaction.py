"""Compaction: what keeps the state small, done by each worker at the end of its task and committed with the batch.

Merging rewrites small segments as larger ones; ended subscriptions move to segments that only late posts look at;
deleted posts leave the disk; expired time slots become Parquet in the archive. At most one merge of a kind a batch,
so that none takes long.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.common.arrays import chunk
from nearcast.common.kinds import codes, kinds
from nearcast.common.op_schema import NEVER
from nearcast.engine.batch import BatchPlan
from nearcast.engine.keyword_lists import merge_learned
from nearcast.engine.segment_rewriter import Rewriting
from nearcast.engine.subscription_compaction import SubscriptionCompaction
from nearcast.engine.task_result import TaskResult
from nearcast.engine.ticks import open_ticking
from nearcast.storage.bundle import bundle_table, open_bundle
from nearcast.storage.compaction_policy import run_to_merge, to_merge
from nearcast.storage.deletes import deletes_for
from nearcast.storage.files import open_table, write_parquet, write_table
from nearcast.storage.manifest import (
    ARCHIVE,
    DELETES,
    ENDS,
    POSTS,
    REJECTS,
    RESULTS,
    TERMS,
    WINDOW,
    SegmentRef,
)
from nearcast.storage.outbox import Results
from nearcast.storage.posts.post_segment import PostSegment, are_deleted, write_posts
from nearcast.storage.term_table import TermTable

FILES_CLEANED = 8  # of the archive, in one batch at most


def compact(plan: BatchPlan, worker: int, result: TaskResult) -> None:
    with result.timed("compaction"):
        Compaction(plan, worker, result).all()


class Compaction(Rewriting):
    def all(self) -> None:
        self.expire_posts()
        self.expire_windows()
        self.merge_posts()
        self.clean_archive()
        SubscriptionCompaction(self.plan, self.worker, self.result).merge_subscriptions()
        if self.worker == 0:
            self.expire_results()
            self.merge_results()
            self.merge_terms()
            self.merge_plain()
            self.merge_keywords()
        for kind in kinds():
            if any(ref.kind in kind.keeps for ref in self.manifest.segments):
                kind.standing.compact(self)

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
        standing = open_ticking(self.plan, self.manifest, codes("windowed"))
        oldest = [
            int((part.following - part.window)[part.following < part.stop].min(initial=NEVER)) for part in standing
        ]
        old = [ref for ref in refs if ref.max_ts <= min(oldest, default=NEVER)]
        self.result.gone += [ref.name for ref in old]

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
            self.result.count(expired=int(expired.sum()))

    def archive(self, table: pa.Table, old: SegmentRef) -> list[SegmentRef]:
        """One Parquet file a slot; any engine reads it."""
        slot = self.plan.settings.slot
        slots = table["ts"].to_numpy() // slot
        refs = []
        for number in np.unique(slots):
            part = archived_table(table.filter(pa.array(slots == number)).drop_columns(["leaf", "terms"]))
            begin = str(np.datetime64(int(number) * slot, "us").astype("datetime64[m]")).replace(":", "")
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

    # -- the rest, by worker 0 -----------------------------------------------------------------------------------------

    def expire_results(self) -> None:
        """Segments of results that `--keep-results` has passed. Sinks had them: they deliver after every commit."""
        limit, clock = self.plan.settings.keep_results, self.manifest.clock
        if limit is None or clock is None:
            return
        old = [ref for ref in self.manifest.of(RESULTS) if ref.max_ts < clock - limit]
        self.result.gone += [ref.name for ref in old]
        self.result.count(expired_results=sum(ref.rows for ref in old))

    def merge_results(self) -> None:
        gone = set(self.result.gone)
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
        old, new = merge_learned(self.plan, self.worker)
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
