"""Searches that came with the stream, answered in their batch: the rows a search would give on the state before its
posts.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from nearcast.common.errors import NearcastError
from nearcast.common.post_schema import BASE_FIELDS
from nearcast.engine.batch import BatchPlan
from nearcast.engine.task_result import TaskResult
from nearcast.reader.reader import Reader
from nearcast.reader.row_format import json_row
from nearcast.storage.manifest import DELETES, SegmentRef
from nearcast.storage.manifest import RESULTS as RESULTS_KIND
from nearcast.storage.outbox import ANSWER, RESULTS, Results


def answer_searches(plan: BatchPlan, tasks: Sequence[TaskResult]) -> list[SegmentRef]:
    """The answers as one segment of the outbox, or nothing. Deletions of the same batch count."""
    searches = [search for task in tasks for search in task.searches]
    if not searches:
        return []
    fresh = [ref for task in tasks for ref in task.segments if ref.kind == DELETES]
    manifest = replace(plan.manifest, segments=(*plan.manifest.segments, *fresh))
    reader = Reader(plan.state, manifest)
    rows = []
    for search in searches:
        try:
            rows.append(json.dumps([json_row(row) for row in reader.search(search["sql"])], ensure_ascii=False))
        except NearcastError as error:  # it parsed when it was routed; what it asks may still not be had
            rows.append(json.dumps([{"error": str(error)}], ensure_ascii=False))
    n = len(searches)
    table = pa.table(
        [
            pa.array([s["id"] for s in searches], pa.int64()), pa.array([s["id_text"] for s in searches], pa.string()),
            pa.array(np.full(n, ANSWER, np.uint8)), pa.array(np.full(n, -1, np.int32)), pa.nulls(n, pa.string()),
            pa.array(rows, pa.string()), pa.array(np.full(n, plan.batch)),
        ],
        schema=RESULTS,
    )  # fmt: skip
    name = plan.state.new_name(RESULTS_KIND, plan.batch, 999)
    size = Results(table, pa.schema(BASE_FIELDS).empty_table()).write(plan.state.path(name))
    now = plan.manifest.clock or 0
    return [SegmentRef(RESULTS_KIND, name, n, size, plan.batch, min_ts=now, max_ts=now)]
