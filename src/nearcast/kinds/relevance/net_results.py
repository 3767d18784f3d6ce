"""What a batch changed of answers by relevance, as `leave` and `enter` in the outbox."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import chunk
from nearcast.engine.batch import BatchPlan
from nearcast.engine.task_result import TaskResult
from nearcast.kinds.relevance.ledger import Ledger
from nearcast.kinds.relevance.subscribers import Subscribers
from nearcast.storage.bundle import bundle_table
from nearcast.storage.files import write_table
from nearcast.storage.manifest import RESULTS, SegmentRef
from nearcast.storage.outbox import ENTER, LEAVE, RELEVANT_RESULTS, Results
from nearcast.storage.posts.post_segment import post_fingerprints
from nearcast.storage.subscriptions.subscription_set import ids_of


@dataclass(frozen=True)
class Net:
    """Posts that left answers, or entered them (`entered`): by subscriber (its place among all), with the rank (from 0)
    and the score that each had or has, and the version of idf that this comes from.
    """

    at: np.ndarray
    number: np.ndarray
    score: np.ndarray
    rank: np.ndarray
    version: np.ndarray
    entered: np.ndarray

    def __len__(self) -> int:
        return len(self.at)


def write_net(
    plan: BatchPlan, worker: int, net: Net, subscribers: Subscribers, ledger: Ledger, done: TaskResult
) -> None:
    """By subscriber first what left, then what entered, best first; each with its post."""
    if not len(net):
        return
    order = np.lexsort((net.rank, net.entered, net.at))
    at, entered = net.at[order], net.entered[order]
    hit, post = np.unique(net.number[order], return_inverse=True)
    posts = ledger.take(hit)
    assert len(posts) == len(hit), "an answer has a post that the ledger has not"
    rows, n = subscribers.rows, len(order)
    ids, texts = ids_of(rows, at)
    columns = rows.columns.take(pa.array(at)) if len(rows.columns) else pa.nulls(n, pa.string())
    table = pa.table(
        [
            pa.array(ids), texts, pa.array(np.where(entered, ENTER, LEAVE).astype(np.uint8)),
            pa.array(post.astype(np.int32)), columns, pa.nulls(n, pa.string()), pa.array(np.full(n, plan.batch)),
            pa.array(net.rank[order] + 1), pa.array(net.score[order]), pa.array(net.version[order].astype(np.int64)),
        ],
        schema=RELEVANT_RESULTS,
    )  # fmt: skip
    results = Results(table, posts)
    name = plan.state.new_name(RESULTS, plan.batch, worker)
    path = plan.state.path(name)
    size = results.write(path)
    if plan.settings.keep == "none":
        prints = {"fingerprints": np.sort(post_fingerprints(posts))}
        size += write_table(path.with_suffix(".index.arrow"), bundle_table(prints))
    ts = chunk(posts["ts"]).to_numpy()
    done.count(results=n, entered=int(entered.sum()), left=int((~entered).sum()))
    done.segments.append(
        SegmentRef(RESULTS, name, n, size, plan.batch, worker, min_ts=int(ts.min()), max_ts=int(ts.max()))
    )
