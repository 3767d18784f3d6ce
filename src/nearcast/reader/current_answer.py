"""The answer of a subscription to the nearest, or to the most relevant, as it stands."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.arrays import arrow
from nearcast.common.errors import BadInput
from nearcast.kinds.nearest.state import AnswerSet
from nearcast.kinds.relevance.buffers import SHARE, SHARES, Change, Thresholds, gathered, in_order
from nearcast.kinds.relevance.ledger import Ledger
from nearcast.reader.reader import Reader
from nearcast.reader.row_format import post_rows
from nearcast.reader.subscription_list import Subscriptions
from nearcast.storage.manifest import BUFFERS
from nearcast.storage.subscriptions.rows import Rows


@dataclass(frozen=True)
class Current:
    """Posts, best first, with what they are ordered by: their distances, or scores and the version of idf of these.
    Iterates as the rows that a search would give.
    """

    posts: pa.Table
    measures: dict[str, np.ndarray]
    columns: tuple[str, ...] | None

    def __len__(self) -> int:
        return len(self.posts)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        rows = post_rows(self.posts, self.columns)
        values = zip(*(column.tolist() for column in self.measures.values()), strict=True)
        return ({**row, **dict(zip(self.measures, each, strict=True))} for row, each in zip(rows, values, strict=True))


def read_current(reader: Reader, query: str | int) -> Current:
    """The current answer of a subscription; a `query` given as text stands for the integer id too: '17' and 17."""
    found = _relevant(reader, query)
    if found is not None:
        return found
    answers = AnswerSet.open(reader.state, reader.manifest)
    at = _place(answers, query)
    if at is None:
        if any(str(each.id) == str(query) for each in Subscriptions(reader)):
            raise BadInput(f"{query} has no current answer, only results: leave out --current")
        raise BadInput(f"no subscription to the nearest or the most relevant has the id {query}")
    nearest = answers.answers(np.array([at])).take(np.array([0]))
    posts = nearest.posts.take(arrow(nearest.post.astype(np.int64)))
    return Current(posts, {"distance_km": np.asarray(nearest.km)}, _columns(nearest.columns[0].as_py()))


def _columns(asked: str | None) -> tuple[str, ...] | None:
    return None if asked is None else tuple(json.loads(asked))


def _place(answers: AnswerSet, query: str | int) -> int | None:
    """The place of the id's answer: that of the string, if there is one, else that of the number."""
    texts, numbers = [], []
    for i, file in enumerate(answers.files):
        mine = np.flatnonzero(answers.of == i)
        picked = arrow(answers.row[mine])
        by_text, by_number = _asked(file.id[answers.row[mine]], file.id_text.take(picked), query)
        texts.append(mine[by_text])
        numbers.append(mine[by_number])
    found = np.concatenate([*texts, *numbers, np.empty(0, np.int64)])
    return int(found[0]) if len(found) else None


def _asked(ids: np.ndarray, texts: pa.StringArray, query: str | int) -> tuple[np.ndarray, np.ndarray]:
    """Which ids are the string that was asked for, and which are the number."""
    none = np.zeros(len(ids), np.bool_)
    by_text, by_number = none, none
    if isinstance(query, str):
        by_text = np.asarray(pc.fill_null(pc.equal(texts, query), False).to_numpy(zero_copy_only=False), np.bool_)
    if str(query).lstrip("-").isdigit():
        by_number = (ids.astype(object) == int(query)).astype(np.bool_) & texts.is_null().to_numpy(zero_copy_only=False)
    return by_text, by_number


# -- the most relevant -------------------------------------------------------------------------------------------------


def _relevant(reader: Reader, query: str | int) -> Current | None:
    """The k best of what came to the buffer of a subscription and is in its window; None if there is no such one."""
    newest: tuple[int, Rows, int] | None = None
    for rows, stop in Subscriptions(reader).parts:
        texts = rows.id_text if len(rows.id_text) else pa.nulls(len(rows), pa.string())
        by_text, by_number = _asked(rows.id, texts, query)
        clock = reader.manifest.clock
        stands = (
            rows.having("scoring") & (stop > clock) & (rows.start <= clock)
            if clock is not None
            else rows.having("scoring")
        )
        for row in np.flatnonzero((by_text | by_number) & stands).tolist():
            if newest is None or rows.seq[row] > newest[0]:
                newest = int(rows.seq[row]), rows, row
    if newest is None:
        return None
    seq, rows, row = newest
    return _answer(reader, seq, rows, row)


def _answer(reader: Reader, seq: int, rows: Rows, row: int) -> Current:
    refs = [ref for ref in in_order(reader.manifest.of(BUFFERS)) if seq % ref.facts[SHARES] == ref.facts[SHARE]]
    changes = [Change.open(reader.state, ref) for ref in refs]
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
    found = ledger.take(numbers[order][by_number])
    if len(order):
        found = found.take(arrow(np.argsort(by_number)))
    columns = _columns(rows.columns[row].as_py()) if len(rows.columns) else None
    return Current(found, {"score": scores[order], "idf": np.full(len(order), version)}, columns)
