"""The answer of a subscription to the most relevant, as it stands."""

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import arrow
from nearcast.kinds.relevance.buffers import SHARE, SHARES, BufferChange, Thresholds, gathered, in_order
from nearcast.kinds.relevance.ledger import Ledger
from nearcast.kinds.relevance.query import RelevantQuery
from nearcast.reader.current_answer import CurrentAnswer, has_id, selected_columns
from nearcast.reader.reader import Reader
from nearcast.reader.subscription_list import Subscriptions
from nearcast.storage.manifest import BUFFERS
from nearcast.storage.subscriptions.rows import Rows


def current_relevant(reader: Reader, query_id: str | int) -> CurrentAnswer | None:
    """The k best of what came to the buffer of a subscription and is in its window; None if there is no such one."""
    newest: tuple[int, Rows, int] | None = None
    for part in Subscriptions(reader).parts:
        if part.kind.name != RelevantQuery.kind:
            continue
        rows, stop = part.rows, part.end
        texts = rows.id_text if len(rows.id_text) else pa.nulls(len(rows), pa.string())
        by_text, by_number = has_id(rows.id, texts, query_id)
        clock = reader.manifest.clock
        stands = (stop > clock) & (rows.start <= clock) if clock is not None else np.ones(len(rows), np.bool_)
        for row in np.flatnonzero((by_text | by_number) & stands).tolist():
            if newest is None or rows.seq[row] > newest[0]:
                newest = int(rows.seq[row]), rows, row
    if newest is None:
        return None
    seq, rows, row = newest
    return _answer(reader, seq, rows, row)


def _answer(reader: Reader, seq: int, rows: Rows, row: int) -> CurrentAnswer:
    refs = [ref for ref in in_order(reader.manifest.of(BUFFERS)) if seq % ref.facts[SHARES] == ref.facts[SHARE]]
    changes = [BufferChange.open(reader.state, ref) for ref in refs]
    mine = np.array([seq])
    _, numbers, scores = gathered(changes, mine)
    known = Thresholds.none().after(changes)
    at = np.flatnonzero(known.seq == seq)
    theta, version = (float(known.theta[at[0]]), int(known.version[at[0]])) if len(at) else (0.0, 0)
    ledger = Ledger.open(reader.state, reader.manifest)
    posts, length = (rows.scoring[[row], column].astype(np.int64) for column in (5, 6))
    numbers, first = np.unique(numbers, return_index=True)
    scores = scores[first]
    place = numbers - ledger.base
    there = (place >= 0) & (place < len(ledger.order)) & (scores >= theta) & ~np.isin(numbers, ledger.deleted)
    there[there] = ledger.order[place[there]] >= ledger.bounds(posts, length)[0]
    numbers, scores, place = numbers[there], scores[there], place[there]
    order = np.lexsort((ledger.order[place], -ledger.ts[place], -scores))[: int(rows.scoring[row, 2])]
    by_number = np.argsort(numbers[order])
    best = ledger.take(numbers[order][by_number])
    if len(order):
        best = best.take(arrow(np.argsort(by_number)))
    columns = selected_columns(rows.columns[row].as_py()) if len(rows.columns) else None
    return CurrentAnswer(best, {"score": scores[order], "idf": np.full(len(order), version)}, columns)
