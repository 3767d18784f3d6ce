"""The answer of a subscription to the nearest, as it stands."""

import numpy as np

from nearcast.common.arrays import arrow
from nearcast.kinds.nearest.state import AnswerSet
from nearcast.reader.current_answer import CurrentAnswer, has_id, selected_columns
from nearcast.reader.reader import Reader


def current_nearest(reader: Reader, query_id: str | int) -> CurrentAnswer | None:
    """Nearest first; None if no subscription to the nearest has the id."""
    answers = AnswerSet.open(reader.state, reader.manifest)
    at = _place(answers, query_id)
    if at is None:
        return None
    nearest = answers.answers(np.array([at])).take(np.array([0]))
    posts = nearest.posts.take(arrow(nearest.post.astype(np.int64)))
    columns = selected_columns(nearest.columns[0].as_py())
    return CurrentAnswer(posts, {"distance_km": np.asarray(nearest.km)}, columns)


def _place(answers: AnswerSet, query_id: str | int) -> int | None:
    """The place of the id's answer: that of the string, if there is one, else that of the number."""
    texts, numbers = [], []
    for i, file in enumerate(answers.files):
        mine = np.flatnonzero(answers.of == i)
        rows = answers.row[mine]
        by_text, by_number = has_id(file.id[rows], file.id_text.take(arrow(rows)), query_id)
        texts.append(mine[by_text])
        numbers.append(mine[by_number])
    places = np.concatenate([*texts, *numbers, np.empty(0, np.int64)])
    return int(places[0]) if len(places) else None
