"""Merge of matches: where a post goes to several workers, two versions of one subscription may each be reported by
another, and the outbox has each pair of query and post once.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from nearcast.engine.batch import BatchPlan
from nearcast.engine.match_results import pair_prints
from nearcast.engine.task_result import TaskResult
from nearcast.storage.bundle import bundle_table
from nearcast.storage.files import write_table
from nearcast.storage.manifest import RESULTS
from nearcast.storage.outbox import MATCH, Results
from nearcast.storage.posts.post_segment import post_fingerprints


def drop_repeated(plan: BatchPlan, tasks: Sequence[TaskResult]) -> None:
    """Take out of the results of a batch the pairs that another worker has reported; the lowest worker's stay.

    Only where an id was subscribed again, and a router sends a post to several workers.
    """
    again = plan.manifest.counts.get("again", 0) + sum(task.counts.get("again", 0) for task in tasks)
    if not plan.shares or not again:
        return
    seen = np.empty(0, np.uint64)
    for task in sorted(tasks, key=lambda each: each.worker):
        for at, ref in enumerate(task.segments):
            if ref.kind != RESULTS or "seq" in ref.facts:
                continue
            results = Results.open(plan.state.path(ref.name))
            prints = pair_prints(results, np.ones(len(results), np.bool_))
            new = ~np.isin(prints, seen)
            seen = np.concatenate([seen, prints[new]])
            if not new.all():
                gone = results.table["kind"].to_numpy()[~new]
                name = plan.state.new_name(RESULTS, plan.batch, task.worker)
                kept = Results(results.table.filter(pa.array(new)), results.posts)
                size = kept.write(plan.state.path(name))
                if plan.settings.keep == "none":
                    known = {"fingerprints": np.sort(post_fingerprints(kept.posts))}
                    size += write_table(plan.state.path(name, ".index.arrow"), bundle_table(known))
                task.segments[at] = replace(ref, name=name, rows=len(kept), size=size)
                task.count(results=-len(gone), matches=-int((gone == MATCH).sum()))
