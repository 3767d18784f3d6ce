"""Work: what one worker does with its packets of a batch. Reads the state before the batch, writes new files,
reports them.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import chunk
from nearcast.common.kernels.lookup import sorted_members
from nearcast.common.op_schema import BEGINNING
from nearcast.common.post_schema import REJECTS
from nearcast.engine import packets as kinds
from nearcast.engine.apply_ops import Ops
from nearcast.engine.batch import Plan
from nearcast.engine.compaction import do_chores
from nearcast.engine.keyword_lists import words_of_posts, write_learnt
from nearcast.engine.load_notes import observe, watched
from nearcast.engine.match_results import once, results_of
from nearcast.engine.new_words import new_words
from nearcast.engine.op_packets import unpack_ops
from nearcast.engine.op_resolution import Resolved
from nearcast.engine.post_copies import at_home, come_elsewhere, possibly_in, whereabouts
from nearcast.engine.previous_table import LEAF
from nearcast.engine.task_result import Report
from nearcast.engine.ticks import late_pairs, open_standing, reporting_refs
from nearcast.kinds.nearest.standing import Closest
from nearcast.kinds.relevance.ledger_maintenance import note
from nearcast.kinds.relevance.subscribers import relevant_refs
from nearcast.partitioning.learned_words import Learnt
from nearcast.storage.bundle import bundle_table, open_bundle
from nearcast.storage.files import write_table
from nearcast.storage.manifest import ARCHIVE, LEDGER, POSTS, RESULTS, TERMS, WINDOW
from nearcast.storage.manifest import REJECTS as REJECTED
from nearcast.storage.outbox import LATE, MATCH, Results
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.posts.post_segment import Vocabulary, post_fingerprints, write_posts
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Matches
from nearcast.storage.term_table import TermTable

ROUTED = ("wanted", "near", "counted", "tallied", "ranked", "home", "rank", LEAF)  # columns that no segment has


def work(plan: Plan, worker: int, packets: Iterable[bytes]) -> Report:
    """Ops first, then posts: file new subscriptions and let them catch up, match, store, report."""
    task = Task(plan, worker)
    with task.report.timed("decode"):
        tables = kinds.unpack(packets)
    resolved = None
    if kinds.OPS in tables:
        resolved = task.apply(*unpack_ops(tables[kinds.OPS], tables.get(kinds.QUERIES), worker))
    task.open_nearest(resolved)
    rejects = [tables[kinds.REJECTS]] if kinds.REJECTS in tables else []
    found: list[Results] = []
    if resolved is not None:
        found += task.catch_up(resolved)
        task.catch_up_nearest()
        task.catch_up_aggregates(resolved)
        rejects += [resolved.rejects] if worker == 0 else []
    if kinds.SEEN in tables:
        task.count(tables[kinds.SEEN])
    if kinds.POSTS in tables:
        posts, late = task.admit(tables[kinds.POSTS], tables.get(kinds.PRINTS))
        found += task.match(posts, late, resolved)
        found += task.match_nearest(posts, late)
        found += task.miss_reports(posts, late)
        task.count_aggregates(posts, late)
        task.keep(posts, late)
        task.note(posts, late, resolved)
    task.closest.write()
    task.write_aggregates()
    task.write_results(found)
    task.write_rejects(rejects)
    if kinds.POSTS in tables:
        task.observe(posts, late)
    task.write_learnt()
    if plan.settings.merge:
        do_chores(plan, worker, task.report)
    return task.report


class Task(Ops):
    """And the part that concerns posts."""

    # -- posts ---------------------------------------------------------------------------------------------------------

    def count(self, seen: pa.Table) -> None:
        """What the splits have read: posts that nobody wanted count too, and move the clock."""
        self.report.count(posts=sum(seen["posts"].to_pylist()), dropped=sum(seen["dropped"].to_pylist()))
        self.report.clock = max(seen["latest"].to_pylist())

    def admit(self, posts: pa.Table, others: pa.Table | None = None) -> tuple[pa.Table, np.ndarray]:
        """(posts without duplicates, which of them are older than what is kept). `others` tells of posts that other
        workers have got.
        """
        settings, report = self.plan.settings, self.report
        with report.timed("admit"):
            posts = posts.combine_chunks()
            prints = post_fingerprints(posts)
            first = np.zeros(len(posts), np.bool_)
            first[np.unique(prints, return_index=True)[1]] = True
            first &= ~come_elsewhere(prints, posts, others)
            first[first] = ~self._stored(prints[first], *(posts[name].to_numpy()[first] for name in ("ts", "leaf")))
            report.count(duplicates=int((~first & at_home(posts)).sum()))
            if not first.all():
                posts = posts.filter(pa.array(first)).combine_chunks()
            ts = posts["ts"].to_numpy()
            late = ts < (BEGINNING if self.manifest.kept_since is None else self.manifest.kept_since)
            late |= ts <= max((ref.max_ts for ref in self.manifest.of(ARCHIVE)), default=BEGINNING)
            if settings.retention is not None and self.manifest.clock is not None:
                late |= ts < self.manifest.clock - settings.retention
            if settings.retention is not None or late.any():
                report.count(late=int((late & at_home(posts)).sum()))
        return posts, late

    def _stored(self, prints: np.ndarray, ts: np.ndarray, leaves: np.ndarray) -> np.ndarray:
        """Which posts the state has already, by their fingerprints."""
        out = np.zeros(len(prints), np.bool_)
        if not len(prints):
            return out
        kinds_ = (RESULTS, WINDOW, LEDGER) if self.plan.settings.keep == "none" else (POSTS,)
        begin, end = int(ts.min()), int(ts.max())
        where = whereabouts(self.plan, leaves, self.worker)
        for ref in (ref for kind in kinds_ for ref in self.manifest.of(kind)):
            if ref.rows and ref.min_ts <= end and ref.max_ts >= begin:
                path = self.plan.state.path(ref.name, ".index.arrow")
                asked = possibly_in(self.plan, ref, where)
                if asked.any() and path.exists():
                    known = np.asarray(open_bundle(path)["fingerprints"])
                    some = slice(None) if asked.all() else asked
                    out[some] |= sorted_members(known, prints[some])
        return out

    def match(self, posts: pa.Table, late: np.ndarray, resolved: Resolved | None) -> list[Results]:
        report = self.report
        with report.timed("match"):
            own = self.own if resolved is not None else None
            self.columns = columns_of(posts)
            order = self.order = self.columns.z_order()
            wanted = order[posts["wanted"].to_numpy()[order]]
            found = self.standing(more=resolved, own=own).match(self.columns, wanted)
            found = [(rows, self._reported(rows, matches, posts)) for rows, matches in found]
            report.count(candidates=sum(m.candidates for _, m in found), tried=len(wanted))
        with report.timed("results"):
            results = results_of(found, whole_posts(posts), MATCH, self.plan.batch, late)
            again = self.manifest.counts.get("again", 0) + (resolved.counts["again"] if resolved is not None else 0)
            return [once(results) if again else results]

    def _reported(self, rows: Rows, matches: Matches, posts: pa.Table) -> Matches:
        """Of the pairs found those that are this worker's to report."""
        router, former, workers = self.plan.router, self.plan.former, self.plan.settings.workers
        if not self.plan.shares:
            return matches
        stored = posts["leaf"].to_numpy()
        if former is not None:
            leaves = stored, posts[LEAF].to_numpy()
            return former.reported(router, matches, rows, self.columns, leaves, self.worker, workers)
        return router.reported(matches, rows, self.columns, stored, self.worker, workers)

    def keep(self, posts: pa.Table, late: np.ndarray) -> None:
        """Store this worker's posts, and what their words teach; with `--keep none` those that windows need."""
        plan, report = self.plan, self.report
        kind, order = POSTS, self.order
        if plan.settings.keep == "none":
            kind, order = WINDOW, order[posts["counted"].to_numpy()[order]]
        ours = at_home(posts) & ~late
        with report.timed("words"):
            self.learnt.append(words_of_posts(plan, self.columns, posts["leaf"].to_numpy()))
        order = order if ours.all() else order[ours[order]]
        if not len(order):
            return
        with report.timed("store"):
            leaves = posts["leaf"].to_numpy()
            order = order[np.argsort(leaves[order], kind="stable")]
            kept = posts.drop_columns([name for name in ROUTED if name in posts.column_names])
            name = self.new_name(kind)
            size, words = write_posts(plan.state.path(name), kept, order)
            ts = posts["ts"].to_numpy()[order]
            self.add(kind, name, len(order), size, min_ts=int(ts.min()), max_ts=int(ts.max()))
            report.count(stored=len(order), stored_bytes=size)
        with report.timed("words"):
            self._learn(words, posts)

    def note(self, posts: pa.Table, late: np.ndarray, resolved: Resolved | None) -> None:
        """Enter this worker's posts in the ledger, if subscriptions by relevance stand."""
        if not relevant_refs(self.manifest) and (resolved is None or not resolved.rows.relevant.any()):
            return
        with self.report.timed("ledger"):
            whole, columns = whole_posts(posts), self.columns
            ref = note(self.plan, self.worker, whole, columns.terms, columns.offsets, at_home(posts) & ~late)
            self.report.segments += [] if ref is None else [ref]

    def observe(self, posts: pa.Table, late: np.ndarray) -> None:
        """Note what balancing asks for."""
        if watched(self.plan.settings):
            with self.report.timed("observe"):
                stored = self.order[(at_home(posts) & ~late)[self.order]]
                self.report.segments.append(observe(self.plan, self.worker, self.report.counts, self.columns, stored))

    def write_learnt(self) -> None:
        """What routing will know from the next batch on."""
        self.report.segments += write_learnt(self.plan, self.worker, Learnt.united(self.learnt))

    def _learn(self, words: Vocabulary, posts: pa.Table) -> None:
        real = words.terms != 0
        table = TermTable(words.terms[real], words.counts[real], pa.nulls(int(real.sum()), pa.string()))
        fresh = new_words(self.plan, table.term, posts["text"])
        name = self.new_name(TERMS)
        size = TermTable(table.term, table.count, fresh).write(self.plan.state.path(name))
        self.add(TERMS, name, len(table.term), size)

    # -- the nearest ---------------------------------------------------------------------------------------------------

    def open_nearest(self, resolved: Resolved | None) -> None:
        with self.report.timed("nearest"):
            self.closest = Closest(self.plan, self.worker, self.report, resolved, self.first_post)

    def catch_up_nearest(self) -> None:
        """New subscriptions to the nearest look at the posts already kept; deletions of the same batch count."""
        if self.plan.settings.keep != "none" and self.manifest.clock is not None:
            with self.report.timed("catch up"):
                self.closest.catch_up([ref for ref in self.manifest.of(POSTS) if self.mine(ref)])

    def match_nearest(self, posts: pa.Table, late: np.ndarray) -> list[Results]:
        """Offer the posts to the answers of the nearest; those too late to be kept are told of."""
        if not self.closest:
            return []
        with self.report.timed("nearest"):
            order = self.order[(posts["near"].to_numpy() & at_home(posts))[self.order]]
            whole = whole_posts(posts)
            found = []
            if late.any():
                missed = self.closest.late(self.columns, order[late[order]], whole)
                found.append(results_of(missed, whole, LATE, self.plan.batch))
                order = order[~late[order]]
            self.closest.offer(self.columns, order, whole)
            return found

    def miss_reports(self, posts: pa.Table, late: np.ndarray) -> list[Results]:
        """Posts that come after a report was sent that would have counted them."""
        clock = self.manifest.clock
        if clock is None or not reporting_refs(self.manifest):
            return []
        with self.report.timed("reports"):
            some = (late | (self.columns.ts < clock - self.plan.settings.lateness)) & at_home(posts)
            order = self.order[some[self.order]]
            if not len(order):
                return []
            pairs = late_pairs(open_standing(self.plan, self.manifest), self.columns, order, late)
            return [once(results_of(pairs, whole_posts(posts), LATE, self.plan.batch))]

    # -- aggregates ----------------------------------------------------------------------------------------------------

    def catch_up_aggregates(self, resolved: Resolved) -> None:
        with self.report.timed("catch up"):
            self.tally.catch_up(resolved.deletes)

    def count_aggregates(self, posts: pa.Table, late: np.ndarray) -> None:
        """Add the posts that this worker stores to what standing aggregates report."""
        if self.tally:
            with self.report.timed("aggregates"):
                ours = at_home(posts) & ~late
                if "tallied" in posts.column_names:
                    ours &= posts["tallied"].to_numpy()
                self.tally.count(whole_posts(posts), self.columns, np.flatnonzero(ours))

    def write_aggregates(self) -> None:
        with self.report.timed("aggregates"):
            self.tally.write()

    # -- results -------------------------------------------------------------------------------------------------------

    def write_results(self, found: list[Results]) -> None:
        found = [part for part in found if len(part)]
        if not found:
            return
        with self.report.timed("write results"):
            whole = Results.concat(found)
            name = self.new_name(RESULTS)
            path = self.plan.state.path(name)
            size = whole.write(path)
            if self.plan.settings.keep == "none":
                prints = {"fingerprints": np.sort(post_fingerprints(whole.posts))}
                size += write_table(path.with_suffix(".index.arrow"), bundle_table(prints))
            ts = chunk(whole.posts["ts"]).to_numpy()
            bounds = (int(ts.min()), int(ts.max())) if len(ts) else (BEGINNING, BEGINNING)
            self.add(RESULTS, name, len(whole), size, min_ts=bounds[0], max_ts=bounds[1])
            kinds_ = whole.table["kind"].to_numpy()
            self.report.count(results=len(whole), matches=int((kinds_ == MATCH).sum()))

    def write_rejects(self, rejects: list[pa.Table]) -> None:
        table = pa.concat_tables([REJECTS.empty_table(), *rejects])
        if len(table):
            name = self.new_name(REJECTED)
            self.add(REJECTED, name, len(table), write_table(self.plan.state.path(name), table, compression="lz4"))
            self.report.count(rejects=len(table))


def columns_of(posts: pa.Table) -> PostColumns:
    """What matching needs of routed posts."""
    terms = chunk(posts["terms"])
    return PostColumns(
        posts["lon"].to_numpy(), posts["lat"].to_numpy(), posts["ts"].to_numpy(),
        terms.values.to_numpy(), terms.offsets.to_numpy().astype(np.int64),
    )  # fmt: skip


def whole_posts(posts: pa.Table) -> pa.Table:
    """Routed posts as the model has them."""
    return posts.drop_columns([name for name in ("leaf", "terms", *ROUTED) if name in posts.column_names])
