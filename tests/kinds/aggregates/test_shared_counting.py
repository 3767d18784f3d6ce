"""Series counted together have what they have when each is counted alone."""

from collections import Counter
from functools import lru_cache
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.arrays import frozen
from nearcast.common.op_schema import BEGINNING
from nearcast.kinds.aggregates.groups import Shape
from nearcast.kinds.aggregates.interval_counts import CountedPosts, Partials, class_of
from nearcast.kinds.aggregates.series import Series
from nearcast.kinds.aggregates.shared_counting import SharedCounting
from nearcast.storage.posts.coded_columns import coded
from nearcast.storage.posts.values import MISSING, REAL, STRING, WHOLE, string_hashes

MINUTE = 60_000_000
NAMES = ("kind", "price", "n")


def posts_of(rows: list[tuple[int, str | None, float | None, int, list[int]]]) -> CountedPosts:
    ts, kind, price, n, words = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [], [], [])
    table = pa.table({
        "kind:s": pa.array(kind, pa.string()), "price:f": pa.array(price, pa.float64()), "n:i": pa.array(n, pa.int64()),
    })  # fmt: skip
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in words])]).astype(np.int64)
    terms = np.array([term for each in words for term in each], np.uint64)
    column = lru_cache(lambda name: coded(table, name))
    return CountedPosts(np.array(ts, np.int64) * (MINUTE // 2), frozen(terms), frozen(offsets), column)


def facts(partials: Partials) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Everything that is known of each group of each series."""
    out = {}
    for shape, groups in partials.parts.items():
        for row in range(len(groups)):
            terms = [
                (int(groups.term[at]), int(groups.term_posts[at])) for at in np.flatnonzero(groups.term_group == row)
            ]
            key = (shape, *groups.kinds[row].tolist(), *groups.values[row].tolist())
            assert key not in out, "a group is there twice"
            measured = [
                getattr(groups, name)[row].tolist()
                for name in ("counts", "numbers", "sums", "least", "greatest", "seen")
            ]
            out[key] = (int(groups.posts[row]), *measured, sorted(terms))
    return out


def one_by_one(pairs: list[tuple[tuple[Any, ...], Series]]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """The same of each post and series, in plain Python."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for (half, kind, price, n, words), series in pairs:
        ts = half * (MINUTE // 2)
        if ts < series.start:
            continue
        post = {"kind": kind, "price": price, "n": n, "words": set(words)}
        by = [
            key_of(series.number),
            key_of(-(-ts // series.interval)),
            *(key_of(post[name]) for name in series.shape.by),
        ]
        key = (class_of(series.shape), *(each[0] for each in by), *(each[1] for each in by))
        groups.setdefault(key, []).append({"measured": [post[name] for name in series.shape.measured], **post})
    return {key: totals(key[0], posts) for key, posts in groups.items()}


def key_of(value: Any) -> tuple[int, int]:
    if value is None:
        return MISSING, 0
    if isinstance(value, str):
        return STRING, int(string_hashes(pa.array([value]))[0])
    return (WHOLE, int(value)) if value == int(value) else (REAL, int(np.float64(value).view(np.int64)))


def totals(shape: Shape, posts: list[dict[str, Any]]) -> tuple[Any, ...]:
    columns = []
    for at in range(len(shape.measured)):
        there = [post["measured"][at] for post in posts if post["measured"][at] is not None]
        numbers = [value for value in there if not isinstance(value, str)]
        kinds = {STRING if isinstance(each, str) else REAL if isinstance(each, float) else WHOLE for each in there}
        least, greatest = min(numbers, default=inf), max(numbers, default=-inf)
        columns.append((len(there), len(numbers), sum(numbers), least, greatest, sum(1 << kind for kind in kinds)))
    words = Counter(word for post in posts for word in post["words"])
    measured = [list(each) for each in zip(*columns, strict=True)] if columns else [[]] * 6
    return (len(posts), *measured, sorted(words.items()) if shape.terms else [])


@st.composite
def series_of(draw: st.DrawFn) -> list[Series]:
    out = []
    for number in range(draw(st.integers(1, 6))):
        by = tuple(draw(st.permutations(NAMES))[: draw(st.integers(0, 2))])
        measured = tuple(draw(st.permutations(NAMES))[: draw(st.integers(0, 2))])
        reach = draw(st.sampled_from([0, 32 * MINUTE]))
        start = BEGINNING if reach else draw(st.sampled_from([BEGINNING, 3 * MINUTE]))
        shape = Shape(by, measured, draw(st.integers(0, 3)) == 0)
        out.append(Series(100 + number, number, shape, draw(st.sampled_from([1, 2, 3, 5])) * MINUTE, reach, start))
    return out


POSTS = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.sampled_from(["a", "b", None]),
        st.sampled_from([1.0, 2.5, None]),
        st.integers(0, 2),
        st.lists(st.integers(1, 4), max_size=3),
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(series_of(), POSTS, st.data())
def test_counted_together_is_counted_alone(series: list[Series], rows: Any, data: st.DataObject) -> None:
    of = np.array([data.draw(st.integers(0, 2)) for _ in series], np.int64)
    condition = np.unique(of, return_inverse=True)[1].reshape(-1)
    posts = posts_of(rows)
    met = [(p, c) for p in range(len(rows)) for c in range(int(condition.max()) + 1) if data.draw(st.booleans())]
    post, which = (np.array([pair[at] for pair in met], np.int64) for at in range(2))
    together = SharedCounting(series, condition).count(posts, post, which)
    pairs = [(rows[p], series[s]) for p, c in met for s in range(len(series)) if condition[s] == c]
    assert facts(together) == one_by_one(pairs)


def test_series_of_one_condition_are_counted_once_whatever_they_are_grouped_by() -> None:
    shapes = [Shape(("kind",)), Shape(("n", "kind")), Shape((), ("price",))]
    series = [Series(i, i, shape, (1 + i) * MINUTE, 32 * MINUTE, BEGINNING) for i, shape in enumerate(shapes)]
    together = SharedCounting(series, np.zeros(3, np.int64))
    assert [base.shape for base in together.bases] == [Shape(("kind", "n"), ("price",))]
    assert together.bases[0].interval == MINUTE


def test_frequent_terms_are_counted_for_each_group_by_of_its_own() -> None:
    shapes = [Shape(("kind",), terms=True), Shape(("n",), terms=True), Shape(("kind",), terms=True), Shape(("n",))]
    series = [Series(i, i, shape, MINUTE, 32 * MINUTE, BEGINNING) for i, shape in enumerate(shapes)]
    together = SharedCounting(series, np.zeros(4, np.int64))
    assert sorted(map(len, together.members)) == [1, 1, 2]


def test_no_series_and_no_posts_add_nothing() -> None:
    none = np.empty(0, np.int64)
    assert not len(SharedCounting([], none).count(posts_of([]), none, none))
