"""Query sets as the pipeline would see them."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine.op_encoding import encode_ops, file_ops
from nearcast.engine.op_resolution import resolve
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_set import EndLog, SubscriptionSet

ROW_GROUP = 100_000


def as_ops(queries: pa.Table) -> pa.Table:
    """A query set as raw ops that subscribe."""
    n = len(queries)
    base = {
        "op": pa.array(np.full(n, "subscribe", object), pa.string()), "id": queries["id"],
        "id_text": pa.nulls(n, pa.string()), "ts": pa.nulls(n, pa.int64()), "sql": pa.nulls(n, pa.string()),
    }  # fmt: skip
    return pa.table({**base, **{name: queries[name] for name in queries.column_names if name != "id"}})


def rows_of(queries: pa.Table, sample: tuple[np.ndarray, np.ndarray], next_op: int = 0) -> Rows:
    """A query set as subscriptions that stand, keyed by what is rare in a sample (its terms, their counts)."""
    ops, _ = encode_ops(as_ops(queries), Tokenizer())
    return resolve(file_ops(ops, sample), SubscriptionSet({}, EndLog.empty()), None, next_op).rows


def term_counts(texts: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """The terms of some texts, sorted, and how often each occurs."""
    terms, _ = Tokenizer().terms(texts)
    found, counts = np.unique(terms[terms != 0], return_counts=True)
    return found, counts


def write_parquet(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=ROW_GROUP)
