"""Merge of the nearest: what the workers found and the answers that stood become the answers that stand.

Between work and commit, each worker merging its share of the answers. An answer is the k best by (distance, id) of
what it was and of the candidates; the net change of the batch goes to the outbox as `leave` and `enter`. The answers
that changed are written whole, as state of their own. An answer that lost a post to a deletion is worked out anew by a
search over the kept posts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.arrays import chunk
from nearcast.common.op_schema import NEVER
from nearcast.engine.batch import BatchPlan, open_segments
from nearcast.engine.task_result import AllWorkers, TaskResult, add_round, files_left, noted
from nearcast.kinds.nearest import KIND
from nearcast.kinds.nearest.index import places, ranks_by
from nearcast.kinds.nearest.kernels.circles import nearest_order
from nearcast.kinds.nearest.nearest_filing import (
    CANDIDATES,
    FORGOTTEN,
    SUPERSEDED,
    answers_of,
    is_searched,
    nearest_refs,
)
from nearcast.kinds.nearest.search import nearest_to
from nearcast.kinds.nearest.state import Answers, AnswerSet
from nearcast.language import decode_code
from nearcast.reader.reader import Reader
from nearcast.storage import deletes as deleting
from nearcast.storage.bundle import bundle_table
from nearcast.storage.files import open_table, write_table
from nearcast.storage.manifest import DELETES, ENDS, NEAREST, RESULTS, SUBSCRIPTIONS, SegmentRef
from nearcast.storage.outbox import ENTER, LEAVE, NEAREST_RESULTS, Results
from nearcast.storage.posts.post_segment import are_deleted, post_fingerprints
from nearcast.storage.posts.post_tables import NO_POSTS, take_posts
from nearcast.storage.posts.question import Question
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_set import EndLog, read_logs


def merge_nearest(plan: BatchPlan, tasks: Sequence[TaskResult], all_workers: AllWorkers) -> list[SegmentRef]:
    """The segments of changed answers and of their `leave` and `enter`; nothing where nothing changed."""
    work = MergeAnswers(
        plan,
        files_left(tasks, CANDIDATES),
        noted(tasks, SUPERSEDED),
        noted(tasks, FORGOTTEN),
        [ref for task in tasks for ref in task.segments if ref.kind in (DELETES, ENDS, SUBSCRIPTIONS)],
    )
    if not work.anything():
        return []
    return [ref for task in add_round(tasks, all_workers(work)) for ref in task.segments]


@dataclass(frozen=True)
class MergeAnswers:
    """The second round of one worker, as a function of its number: it merges every so many-th answer."""

    plan: BatchPlan
    candidates: list[str]
    superseded: list[int]
    forgotten: list[int]
    fresh: list[SegmentRef]

    def anything(self) -> bool:
        """Whether some answer may change."""
        if not self.candidates and not self.plan.manifest.of(NEAREST):
            return False
        return (
            bool(self.candidates or self.superseded or self.forgotten) or len(fresh_deletes(self.plan, self.fresh)) > 0
        )

    def __call__(self, worker: int) -> TaskResult:
        plan, workers = self.plan, self.plan.settings.workers

        def mine(seqs: np.ndarray) -> np.ndarray:
            return np.flatnonzero(seqs % workers == worker)

        done = TaskResult(worker)
        with done.timed("settle"):
            superseded, forgotten = (np.array(seqs, np.int64) for seqs in (self.superseded, self.forgotten))
            superseded, forgotten = superseded[mine(superseded)], forgotten[mine(forgotten)]
            found = [Answers.open(plan.spool / name) for name in self.candidates]
            candidates = [each.pick(mine(each.seq)) for each in found]
            before = AnswerSet.open(plan.state, plan.manifest)
            deletes = fresh_deletes(plan, self.fresh)
            reopened = before.holding(deletes["id"].to_numpy()) if len(deletes) else np.empty(0, np.int64)
            reopened = np.setdiff1d(reopened[mine(reopened)], superseded)
            new = Answers.concat([*candidates, *searched(plan, self.fresh, reopened, mine)])
            touched = np.unique(np.concatenate([new.seq, superseded, reopened]))
            at = before.places(touched)
            change = AnswerChange.of(before.answers(at[at >= 0]), new, superseded, deletes)
            done.segments += write_answers(plan, change, np.concatenate([superseded, forgotten]), worker)
            done.segments += write_results(plan, change, done)
        return done


@dataclass(frozen=True)
class AnswerChange:
    """All posts that are or may be in the answers of some subscriptions (`who`, a row each), and what becomes of them.

    Member i belongs to row `owner[i]` of `who`, is `km[i]` away and is post `post[i]`. `kept` are the members of new
    answers in order, with their `ranks` (from 0); `entered` are the places in `kept` of those that are new; `left` are
    the members that are no more, with the ranks that they had.
    """

    who: Answers
    fresh: np.ndarray  # rows of `who` that had no answer yet
    owner: np.ndarray
    km: np.ndarray
    post: np.ndarray
    posts: pa.Table
    kept: np.ndarray
    ranks: np.ndarray
    entered: np.ndarray
    left: np.ndarray
    left_ranks: np.ndarray

    @classmethod
    def of(cls, old: Answers, new: Answers, superseded: np.ndarray, deletes: pa.Table) -> "AnswerChange":
        both = Answers.concat([old, new])
        seqs, first, who = np.unique(both.seq, return_index=True, return_inverse=True)
        owner = np.repeat(who, np.diff(both.starts))
        post, km = both.post.astype(np.int64), both.km
        was = np.arange(len(owner)) < len(old.km)
        gone = was & np.isin(seqs, superseded)[owner]
        if len(deletes):
            hidden = are_deleted(old.posts["id"].to_numpy(), chunk(old.posts["id_text"]), deletes)
            gone[: len(old.km)] |= hidden[old.post]
        order = best_first(owner, km, post, both.posts, np.flatnonzero(~gone))
        rank = places(owner[order])
        k = both.k[first]
        inside = rank < k[owner[order]]
        kept, ranks = order[inside], rank[inside]
        stays = np.zeros(len(owner), np.bool_)
        stays[kept] = True
        left = np.flatnonzero(was & ~stays)
        head = replace(both, starts=np.zeros(len(both) + 1, np.int64), km=km[:0], post=both.post[:0], posts=NO_POSTS)
        return cls(
            head.take(first), ~np.isin(seqs, old.seq), owner, km, post, both.posts,
            kept, ranks, np.flatnonzero(~was[kept]), left, places(owner[: len(old.km)])[left],
        )  # fmt: skip


def best_first(owner: np.ndarray, km: np.ndarray, post: np.ndarray, posts: pa.Table, picked: np.ndarray) -> np.ndarray:
    """Some members by owner, distance and id; a post that is there twice once, as the one that came first."""
    by_km, tied = nearest_order(owner[picked], km[picked], int(owner.max()) + 1 if len(owner) else 0)
    if not tied:
        return picked[by_km]
    rank = ranks_by(lambda rows: take_posts(posts, rows))(post[picked])
    by_rank = np.lexsort((rank, km[picked], owner[picked]))
    order, rank = picked[by_rank], rank[by_rank]
    same = np.zeros(len(order), np.bool_)
    same[1:] = (owner[order][1:] == owner[order][:-1]) & (km[order][1:] == km[order][:-1]) & (rank[1:] == rank[:-1])
    return order[~same]


def write_answers(plan: BatchPlan, change: AnswerChange, gone: np.ndarray, worker: int) -> list[SegmentRef]:
    """The answers that changed, whole; `gone` are those that are no more."""
    changed = change.fresh.copy()
    changed[change.owner[change.kept[change.entered]]] = True
    changed[change.owner[change.left]] = True
    changed &= ~np.isin(change.who.seq, gone)
    rows = np.flatnonzero(changed)
    members = change.kept[changed[change.owner[change.kept]]]
    sizes = np.bincount(change.owner[members], minlength=len(changed))[rows]
    hit, post = np.unique(change.post[members], return_inverse=True)
    answers = replace(
        change.who.take(rows), batch=np.full(len(rows), plan.batch), km=change.km[members], post=post.astype(np.int32),
        starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), posts=take_posts(change.posts, hit),
    )  # fmt: skip
    if len(gone):
        answers = Answers.concat([answers, no_more(np.unique(gone), plan.batch)])
    if not len(answers):
        return []
    name = plan.state.new_name(NEAREST, plan.batch, worker)
    size = answers.write(plan.state.path(name))
    return [SegmentRef(NEAREST, name, len(answers) + len(answers.km), size, plan.batch)]


def no_more(seqs: np.ndarray, batch: int) -> Answers:
    n = len(seqs)
    nothing = pa.nulls(n, pa.string())
    zeros = np.zeros(n, np.int64)
    return Answers(
        seqs, np.full(n, batch), zeros, zeros, nothing, nothing, np.zeros(n + 1, np.int64), np.empty(0),
        np.empty(0, np.int32), NO_POSTS,
    )  # fmt: skip


def write_results(plan: BatchPlan, change: AnswerChange, done: TaskResult) -> list[SegmentRef]:
    """By subscription first what left, then what entered, nearest first; each with its post."""
    entered = change.kept[change.entered]
    members = np.concatenate([change.left, entered])
    if not len(members):
        return []
    kinds = np.repeat(np.array([LEAVE, ENTER], np.uint8), [len(change.left), len(entered)])
    ranks = np.concatenate([change.left_ranks, change.ranks[change.entered]])
    order = np.lexsort((ranks, kinds == ENTER, change.owner[members]))
    members, kinds, ranks = members[order], kinds[order], ranks[order]
    hit, post = np.unique(change.post[members], return_inverse=True)
    who = pa.array(change.owner[members])
    n = len(members)
    table = pa.table(
        [
            pa.array(change.who.id).take(who), change.who.id_text.take(who), pa.array(kinds),
            pa.array(post.astype(np.int32)), change.who.columns.take(who), pa.nulls(n, pa.string()),
            pa.array(np.full(n, plan.batch)), pa.array((ranks + 1).astype(np.int64)), pa.array(change.km[members]),
        ],
        schema=NEAREST_RESULTS,
    )  # fmt: skip
    results = Results(table, take_posts(change.posts, hit))
    name = plan.state.new_name(RESULTS, plan.batch, done.worker)
    path = plan.state.path(name)
    size = results.write(path)
    if plan.settings.keep == "none":
        prints = {"fingerprints": np.sort(post_fingerprints(results.posts))}
        size += write_table(path.with_suffix(".index.arrow"), bundle_table(prints))
    ts = chunk(results.posts["ts"]).to_numpy()
    done.count(results=n, entered=len(entered), left=len(change.left))
    return [SegmentRef(RESULTS, name, n, size, plan.batch, min_ts=int(ts.min()), max_ts=int(ts.max()))]


# -- searches ----------------------------------------------------------------------------------------------------------


def fresh_deletes(plan: BatchPlan, fresh: Sequence[SegmentRef]) -> pa.Table:
    """The deletions of this batch."""
    tables = [open_table(plan.state.path(ref.name)) for ref in fresh if ref.kind == DELETES]
    table = pa.concat_tables([deleting.SCHEMA.empty_table(), *tables])
    return table.filter(pc.equal(table["batch"], plan.batch)).select(["id", "id_text"])


def searched(
    plan: BatchPlan, fresh: Sequence[SegmentRef], reopened: np.ndarray, mine: Callable[[np.ndarray], np.ndarray]
) -> list[Answers]:
    """The nearest kept posts of the answers that a deletion has opened again, and of new subscriptions that catch up so
    (`is_searched`).
    """
    if plan.settings.keep == "none" or plan.manifest.clock is None:
        return []
    filed = [
        ref.name for ref in fresh if ref.kind == SUBSCRIPTIONS and ref.asks == KIND.code and "folded" not in ref.facts
    ]
    rows, stops = [], []
    logs = [*read_logs(plan.state, plan.manifest).values(), *read_ends(plan, fresh)]
    ends = EndLog.concat(logs)
    first = plan.manifest.first_post
    for name, segment in open_segments(plan, [*(ref.name for ref in nearest_refs(plan.manifest)), *filed]).items():
        if name in filed:
            picked = mine(segment.rows.seq) if is_searched(plan.manifest, segment.rows) else np.empty(0, np.int64)
        else:
            picked = np.flatnonzero(np.isin(segment.rows.seq, reopened))
        if len(picked):
            rows.append(segment.rows.take(picked))
            stops.append(ends.of(segment).applied(segment.rows, picked, NEVER if first is None else first))
    if not rows:
        return []
    deletes = [ref for ref in fresh if ref.kind == DELETES]
    reader = Reader(plan.state, replace(plan.manifest, segments=(*plan.manifest.segments, *deletes)))
    return [
        search_row(reader, part, row, int(stop), plan.batch)
        for part, stop_of in zip(rows, stops, strict=True)
        for row, stop in enumerate(stop_of)
    ]


def read_ends(plan: BatchPlan, refs: Sequence[SegmentRef]) -> list[EndLog]:
    manifest = replace(plan.manifest, segments=tuple(ref for ref in refs if ref.kind == ENDS))
    return list(read_logs(plan.state, manifest).values())


def search_row(reader: Reader, rows: Rows, row: int, stop: int, batch: int) -> Answers:
    """What a search by the conditions of one subscription finds among the posts in its time."""
    code = rows.code[rows.code_offsets[row] : rows.code_offsets[row + 1]]
    question = Question(
        int(rows.kinds[row]), tuple(rows.boxes[row].tolist()),
        rows.shape[rows.shape_offsets[row] : rows.shape_offsets[row + 1]],
        decode_code(code.tolist()), int(rows.start[row]), stop,
        rows.predicates[row].as_py() if len(rows.predicates) else None,
    )  # fmt: skip
    lon, lat, k = rows.points[row].tolist()
    found = nearest_to(reader, question, lon, lat, int(k), None)
    km = found.measures["distance_km"]
    empty = answers_of(rows, np.array([row]), batch)
    count = len(km)
    return replace(
        empty, starts=np.array([0, count]), km=km, post=np.arange(count, dtype=np.int32),
        posts=found.posts,
    )  # fmt: skip
