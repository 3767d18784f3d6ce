"""`results --current`: the answer of a subscription as it stands. Only some kinds keep one: the kinds are asked."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.errors import BadInput
from nearcast.common.kinds import kinds
from nearcast.reader.answer import Measures, measured_names, measured_rows
from nearcast.reader.reader import Reader
from nearcast.reader.subscription_list import Subscriptions


@dataclass(frozen=True)
class CurrentAnswer:
    """Posts, best first, with what they are ordered by: their distances, or scores and the version of idf of these.
    Iterates as the rows that a search would give.
    """

    posts: pa.Table
    measures: Measures
    columns: tuple[str, ...] | None

    def __len__(self) -> int:
        return len(self.posts)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return measured_rows(self.posts, self.columns, self.measures)

    @property
    def column_names(self) -> tuple[str, ...]:
        return measured_names(self.posts, self.columns, self.measures)


def read_current(reader: Reader, query_id: str | int) -> CurrentAnswer:
    """The current answer of a subscription; an id given as text stands for the integer too: '17' and 17."""
    for kind in kinds():
        answer = kind.search.current(reader, query_id)
        if answer is not None:
            return answer
    if any(str(each.id) == str(query_id) for each in Subscriptions(reader)):
        raise BadInput(f"{query_id} has no current answer, only results: leave out --current")
    raise BadInput(f"no subscription that keeps an answer has the id {query_id}")


def has_id(ids: np.ndarray, texts: pa.StringArray, query_id: str | int) -> tuple[np.ndarray, np.ndarray]:
    """Which ids are the string that was asked for, and which are the number."""
    none = np.zeros(len(ids), np.bool_)
    by_text, by_number = none, none
    if isinstance(query_id, str):
        by_text = np.asarray(pc.fill_null(pc.equal(texts, query_id), False).to_numpy(zero_copy_only=False), np.bool_)
    if str(query_id).lstrip("-").isdigit():
        numbers = (ids.astype(object) == int(query_id)).astype(np.bool_)
        by_number = numbers & texts.is_null().to_numpy(zero_copy_only=False)
    return by_text, by_number


def selected_columns(columns: str | None) -> tuple[str, ...] | None:
    """The columns of a SELECT as a subscription has them, None for all."""
    return None if columns is None else tuple(json.loads(columns))
