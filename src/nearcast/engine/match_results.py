"""Pairs of query and post as results, of which the outbox has each once."""

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import chunk, frozen
from nearcast.common.kernels.mix import id_keys
from nearcast.engine.task import Task
from nearcast.storage import outbox as outbox
from nearcast.storage.manifest import RESULTS
from nearcast.storage.outbox import LATE, MATCH, Results
from nearcast.storage.posts.post_segment import post_fingerprints
from nearcast.storage.subscriptions.pair_predicates import predicates_hold
from nearcast.storage.subscriptions.rows import Rows, is_text
from nearcast.storage.subscriptions.subscription_segment import Matches
from nearcast.storage.subscriptions.subscription_set import ids_of


def results_of(
    found: list[tuple[Rows, Matches]], posts: pa.Table, kind: int, batch: int, late: np.ndarray | None = None
) -> Results:
    """Matches as results: predicates applied, in order of (time, id), each with its post."""
    parts, at = [], []
    for rows, matches in found:
        keep = predicates_hold(rows, matches, posts)
        picked, pairs = matches.rows[keep], matches.posts[keep]
        ids, texts = ids_of(rows, picked)
        columns = rows.columns.take(pa.array(picked)) if len(rows.columns) else pa.nulls(len(picked), pa.string())
        parts.append((ids, texts, columns))
        at.append(pairs)
    post = np.concatenate([np.empty(0, np.int64), *at])
    hit, row = np.unique(post, return_inverse=True)
    order = np.lexsort((post, posts["id"].to_numpy()[post], posts["ts"].to_numpy()[post]))
    kinds_ = np.full(len(post), kind, np.uint8)
    if late is not None:
        kinds_[late[post]] = LATE
    texts = pa.concat_arrays([pa.array([], pa.string()), *(part[1] for part in parts)])
    columns = pa.concat_arrays([pa.array([], pa.string()), *(part[2] for part in parts)])
    ids = np.concatenate([np.empty(0, np.int64), *(part[0] for part in parts)])
    index = pa.array(order)
    table = pa.table(
        [
            pa.array(ids[order]), texts.take(index), pa.array(kinds_[order]), pa.array(row[order].astype(np.int32)),
            columns.take(index), pa.nulls(len(order), pa.string()), pa.array(np.full(len(order), batch)),
        ],
        schema=outbox.RESULTS,
    )  # fmt: skip
    return Results(table, posts.take(pa.array(hit)))


def ids_as_arrays(results: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """The query ids of results, and which of them are strings."""
    texts = chunk(results["query_text"])
    return chunk(results["query"]).to_numpy(), is_text(texts, len(texts))


def pair_prints(results: Results, picked: np.ndarray) -> np.ndarray:
    """A fingerprint of query and post for some of the results."""
    keys = id_keys(*ids_as_arrays(results.table))[picked]
    post = post_fingerprints(results.posts)[results.table["post"].to_numpy()[picked]]
    return id_keys(frozen((keys ^ post).view(np.int64)), frozen(np.zeros(len(keys), np.bool_)))


def once(results: Results) -> Results:
    """Each pair of query and post once: two subscriptions of one id, of which the later began in the past, may want
    one.
    """
    first = np.sort(np.unique(pair_prints(results, np.ones(len(results), np.bool_)), return_index=True)[1])
    return results if len(first) == len(results) else Results(results.table.take(pa.array(first)), results.posts)


def not_yet_told(task: Task, found: list[Results], again: np.ndarray) -> list[Results]:
    """Results of new subscriptions without what an earlier one of the same id (`again`, by their keys) has had already:
    the outbox has each pair of query and post once.
    """
    found = [part for part in found if len(part)]
    if not found or not len(again):
        return found
    whole = Results.concat(found)
    repeated = np.isin(id_keys(*ids_as_arrays(whole.table)), again)
    if not repeated.any():
        return found
    since = int(chunk(whole.posts["ts"]).to_numpy().min())
    known = [np.empty(0, np.uint64)]
    for ref in task.manifest.of(RESULTS):
        if ref.max_ts >= since:
            results = Results.open(task.plan.state.path(ref.name))
            of_them = np.isin(id_keys(*ids_as_arrays(results.table)), again)
            known.append(pair_prints(results, of_them & (results.table["kind"].to_numpy() == MATCH)))
    new = ~repeated
    new[repeated] = ~np.isin(pair_prints(whole, repeated), np.concatenate(known))
    return [Results(whole.table.filter(pa.array(new)), whole.posts)]
