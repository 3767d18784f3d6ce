"""Pairs of query and post as results, of which the outbox has each once."""

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import chunk, frozen
from nearcast.common.kernels.mix import id_keys
from nearcast.storage import outbox as outbox
from nearcast.storage.outbox import LATE, Results
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
