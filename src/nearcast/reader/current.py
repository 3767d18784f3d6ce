"""The answer of a subscription to the nearest as it stands."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.index.arrow import arrow
from nearcast.model.errors import BadInput
from nearcast.reader.reader import Reader
from nearcast.reader.rows import post_rows
from nearcast.reader.subscriptions import Subscriptions
from nearcast.state.standing import AnswerSet


@dataclass(frozen=True)
class Current:
    """Posts nearest first, with their distances; iterates as the rows that a search would give."""

    posts: pa.Table
    distance_km: np.ndarray
    columns: tuple[str, ...] | None

    def __len__(self) -> int:
        return len(self.distance_km)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        rows = post_rows(self.posts, self.columns)
        return ({**row, "distance_km": km} for row, km in zip(rows, self.distance_km.tolist(), strict=True))


def read_current(reader: Reader, query: str | int) -> Current:
    """The current answer of a subscription; a `query` given as text stands for the integer id too: '17' and 17."""
    answers = AnswerSet.open(reader.state, reader.manifest)
    at = _place(answers, query)
    if at is None:
        if any(str(each.id) == str(query) for each in Subscriptions(reader)):
            raise BadInput(f"{query} has no current answer, only results: leave out --current")
        raise BadInput(f"no subscription to the nearest has the id {query}")
    found = answers.answers(np.array([at])).take(np.array([0]))
    columns = found.columns[0].as_py()
    names = None if columns is None else tuple(json.loads(columns))
    return Current(found.posts.take(arrow(found.post.astype(np.int64))), np.asarray(found.km), names)


def _place(answers: AnswerSet, query: str | int) -> int | None:
    """The place of the id's answer: that of the string, if there is one, else that of the number."""
    texts, numbers = [], []
    for i, file in enumerate(answers.files):
        mine = np.flatnonzero(answers.of == i)
        known = file.id_text.take(arrow(answers.row[mine]))
        texts.append(mine[np.asarray(pc.fill_null(pc.equal(known, str(query)), False).to_numpy(False), np.bool_)])
        if str(query).lstrip("-").isdigit():
            same = file.id[answers.row[mine]].astype(object) == int(query)
            numbers.append(mine[same.astype(np.bool_) & known.is_null().to_numpy(zero_copy_only=False)])
    found = np.concatenate([*(texts if isinstance(query, str) else []), *numbers, np.empty(0, np.int64)])
    return int(found[0]) if len(found) else None
