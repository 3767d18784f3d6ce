"""Subscriptions to the first post of each cell. A worker leaves what it has found for the second round, which compares
it with the first posts known so far; a post that is earlier than all before it, in its cell, is a result.
"""

import uuid
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from nearcast.engine.arrivals import Arrivals
from nearcast.engine.batch import BatchPlan
from nearcast.engine.match_results import results_of
from nearcast.engine.op_resolution import Resolved
from nearcast.engine.roles import Standing, StandingRole
from nearcast.engine.task import Task
from nearcast.engine.task_result import AllWorkers, TaskResult, files_left
from nearcast.storage.files import open_table, write_table
from nearcast.storage.manifest import RESULTS, Manifest, SegmentRef
from nearcast.storage.outbox import MATCH, Results
from nearcast.storage.subscriptions.pyramid import PYRAMID
from nearcast.storage.subscriptions.subscription_segment import Segment
from tests.kinds.first_posts import FIRSTS, KIND

CANDIDATES = "first posts"  # files in the spool


class FirstPosts(Standing):
    def __init__(self, role: StandingRole, task: Task, ops: Resolved | None) -> None:
        self.found: list[Results] = []
        super().__init__(role, task, ops)

    def fresh(self) -> dict[str, Segment]:
        """The subscriptions that the batch adds, by a name: what is written counts from the next batch on."""
        return {"new": Segment.build(self.new, PYRAMID)} if self.new is not None and len(self.new) else {}

    def catch_up(self) -> list[Results]:
        for new in self.fresh().values():
            assert self.ops is not None
            for segment, rows in self.task.kept_posts(int(new.rows.start.min()), self.ops.deletes):
                matches = new.match(segment.columns(rows), self.ops.ends.of(new), self.task.first_post)
                self.found.append(results_of([(new.rows, matches)], segment.take(rows), MATCH, self.task.plan.batch))
        return []

    def match(self, posts: Arrivals) -> list[Results]:
        wanted = posts.in_order(posts.marked(KIND) & posts.stored)
        pairs = self.subscriptions(self.fresh()).match(posts.columns, wanted)
        self.found.append(results_of(pairs, posts.posts, MATCH, self.task.plan.batch))
        return []

    def write(self) -> None:
        found = [part for part in self.found if len(part)]
        if found:
            name = f"firsts-{uuid.uuid4().hex}"
            Results.concat(found).write(self.task.plan.spool / name)
            self.task.result.leave(CANDIDATES, name)


class FirstPostsRole(StandingRole):
    kind = KIND

    def open(self, task: Task, ops: Resolved | None) -> Standing:
        return FirstPosts(self, task, ops)

    def second_round(
        self, plan: BatchPlan, after: Manifest, tasks: Sequence[TaskResult], all_workers: AllWorkers
    ) -> list[SegmentRef]:
        names = files_left(tasks, CANDIDATES)
        if not names:
            return []
        whole = Results.concat([Results.open(plan.spool / name) for name in names])
        old = plan.manifest.of(FIRSTS)
        known = {tuple(row.values()) for ref in old for row in open_table(plan.state.path(ref.name)).to_pylist()}
        firsts = {row[:4]: row[4:] for row in sorted(known)}
        new: dict[tuple[object, ...], int] = {}
        for at, row in sorted(enumerate(rows_of(whole)), key=lambda each: each[1][4:]):
            if row[:4] not in firsts or row[4:] < firsts[row[:4]]:
                firsts[row[:4]] = row[4:]
                new[row[:4]] = at
        results = Results(whole.table.take(pa.array(sorted(new.values()), pa.int64())), whole.posts)
        tasks[0].gone += [ref.name for ref in old]
        tasks[0].count(results=len(results), matches=len(results))
        return [write_firsts(plan, firsts), *write_results(plan, results)]


def rows_of(results: Results) -> list[tuple[object, ...]]:
    """(query, its name, cell, time, id) of each result."""
    posts = results.posts.take(results.table["post"].combine_chunks())
    cells = (np.floor(posts[name].to_numpy()).astype(np.int64).tolist() for name in ("lon", "lat"))
    query = (results.table["query"].to_pylist(), [name or "" for name in results.table["query_text"].to_pylist()])
    return list(zip(*query, *cells, posts["ts"].to_pylist(), posts["id"].to_pylist(), strict=True))


def write_firsts(plan: BatchPlan, firsts: dict[tuple[object, ...], tuple[object, ...]]) -> SegmentRef:
    columns = zip(*((*key, *first) for key, first in firsts.items()), strict=True)
    table = pa.table([pa.array(column) for column in columns], names=["query", "name", "lon", "lat", "ts", "id"])
    name = plan.state.new_name(FIRSTS, plan.batch, 0)
    return SegmentRef(FIRSTS, name, len(table), write_table(plan.state.path(name), table), plan.batch)


def write_results(plan: BatchPlan, results: Results) -> list[SegmentRef]:
    if not len(results):
        return []
    name = plan.state.new_name(RESULTS, plan.batch, 998)
    ts = results.posts["ts"].to_numpy()
    size = results.write(plan.state.path(name))
    return [SegmentRef(RESULTS, name, len(results), size, plan.batch, min_ts=int(ts.min()), max_ts=int(ts.max()))]


ROLE = FirstPostsRole()
