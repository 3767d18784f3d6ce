"""Aggregates over real states, held to the oracle on random queries, and to DuckDB on real posts.

States have sealed, fresh and archived segments with deletions; attributes have values of several kinds.
"""

import math
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from nearcast.common.errors import QueryError
from nearcast.common.queries import Query
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine.begin import begin
from nearcast.engine.local import run_locally
from nearcast.engine.settings import Settings
from nearcast.kinds.aggregates.cache import plan as answer
from nearcast.kinds.aggregates.cache import selection
from nearcast.kinds.aggregates.query import AggregateQuery
from nearcast.kinds.range.query import RangeQuery
from nearcast.language import parse
from nearcast.language.grammar import NUMBER
from nearcast.reader.reader import Reader
from nearcast.reader.row_format import iso
from nearcast.reader.state import State
from nearcast.sources.records import normalise
from nearcast.storage.directory import StateDirectory
from tests.oracles.aggregate_cases import Post, aggregates, conditions, random_posts, sql_of
from tests.oracles.aggregates import EPOCH, MICROSECOND, aggregate, meets
from tests.oracles.duck import Duck
from tests.oracles.test_aggregates import REAL
from tests.reader.searched_state import ARCHIVED, FRESH, SEALED, make_state
from tests.reader.small_state import ops

TOKENIZER = Tokenizer()


class Searched:
    """A state, and the posts in it that are not deleted. (A dataclass would be printed whole with each failure.)"""

    def __init__(self, reader: Reader, posts: list[Post]) -> None:
        self.reader, self.posts = reader, posts

    @property
    def clock(self) -> int:
        return self.reader.manifest.clock or 0


STATES: dict[str, tuple[list[tuple[str, int]], bool]] = {
    "sealed": ([(SEALED, 300)], False),
    "all kinds": ([(ARCHIVED, 60), (SEALED, 150), (SEALED, 50), (FRESH, 40), (FRESH, 1)], False),
    "numbers that doubles cannot add up": ([(SEALED, 80), (FRESH, 80), (FRESH, 30)], True),
    "one post": ([(FRESH, 1)], False),
    "nothing": ([], False),
}


def searched_state(root: Path, parts: list[tuple[str, int]], nasty: bool) -> Searched:
    random = Random(len(parts))
    made = []
    for number, (kind, count) in enumerate(parts):
        posts = random_posts(random, count, nasty)
        for post in posts:
            post["id"] = f"{post['id']}/{number}" if isinstance(post["id"], str) else 1000 * number + post["id"]
        made.append((kind, posts))
    everything = [post for _, posts in made for post in posts]
    gone = set(random.sample([post["id"] for post in everything], len(everything) // 10))
    reader = Reader(make_state(root, made, sorted(gone, key=str)))
    return Searched(reader, [post for post in everything if post["id"] not in gone])


@pytest.fixture(scope="module", params=STATES)
def searched(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Searched:
    return searched_state(tmp_path_factory.mktemp("aggregated") / "state", *STATES[request.param])


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    return searched_state(tmp_path_factory.mktemp("everything") / "state", *STATES["all kinds"])


# -- comparing ---------------------------------------------------------------------------------------------------------


def check(found: Iterable[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """The same rows in the same order, with the same columns in the same order."""
    rows = list(found)
    assert [list(row) for row in rows] == [list(row) for row in expected]
    assert [{name: told(value, row[name]) for name, value in each.items()} for each, row in
            zip(rows, expected, strict=True)] == expected  # fmt: skip


def told(value: Any, meant: Any) -> Any:
    """`meant`, if that is what `value` says: in a column of several kinds everything is text, in one of whole and other
    numbers all are doubles, the nearest, and a mean may be rounded twice.
    """
    if isinstance(value, str) and not isinstance(meant, str):
        return meant if is_text_of(value, meant) else value
    if isinstance(value, bool) != isinstance(meant, bool):
        return f"{value!r} is no {meant!r}"
    doubles = isinstance(value, float) and isinstance(meant, int | float)
    return meant if doubles and math.isclose(value, meant, rel_tol=3e-16) else value


def is_text_of(text: str, value: Any) -> bool:
    match value:
        case bool():
            return text == str(value).lower()
        case datetime():
            return text == iso((value - EPOCH) // MICROSECOND)
        case int() | float():
            return re.fullmatch(NUMBER, text) is not None and (text == str(value) or float(text) == float(value))
    return False


# -- the oracle --------------------------------------------------------------------------------------------------------


@given(where=conditions())
def test_conditions_mean_the_same_to_a_range_search(searched: Searched, where: dict[str, Any]) -> None:
    found = sorted(str(row["id"]) for row in searched.reader.answer(RangeQuery(**where, columns=("id",))))
    asked = Query(**where)
    assert found == sorted(str(p["id"]) for p in searched.posts if meets(p, asked, searched.clock, TOKENIZER))


@given(query=aggregates(), stop_words=st.sampled_from([None, None, ("the", "FLOOD")]))
def test_an_aggregate_is_what_looking_at_every_post_gives(
    searched: Searched, query: AggregateQuery, stop_words: Any
) -> None:
    note(sql_of(query))
    expected = aggregate(searched.posts, query, searched.clock, TOKENIZER, stop_words or ())
    check(searched.reader.answer(query, stop_words=stop_words), expected)


@given(query=aggregates(known=True))
def test_so_is_its_text(everything: Searched, query: AggregateQuery) -> None:
    note(sql_of(query))
    try:
        found = everything.reader.search(sql_of(query))
    except QueryError as error:  # a condition that is true of no post
        assert "is not compared with this" in str(error)
        assert not any(meets(post, query, everything.clock, TOKENIZER) for post in everything.posts)
        return
    check(found, aggregate(everything.posts, query, everything.clock, TOKENIZER))
    assert found.to_arrow().column_names == [output.name for output in query.outputs]
    assert len(found.to_arrow()) == len(list(found))


@given(queries=st.lists(aggregates(known=True), min_size=1, max_size=4))
def test_a_cache_changes_nothing(everything: Searched, queries: list[AggregateQuery]) -> None:
    """Asked before views are chosen for just these queries, and after."""
    with pytest.MonkeyPatch.context() as eager:
        eager.setattr(selection, "OPENING", -1e6)  # every view pays
        eager.setattr(answer, "OPENING", -1e6)
        eager.setattr(answer, "WORTH", math.inf)
        state = State(everything.reader.state.root, cache="1 MB")
        assert state.cache is not None
        state.cache.background = False
        for _ in range(2):
            for query in queries:
                note(sql_of(query))
                expected = aggregate(everything.posts, query, everything.clock, TOKENIZER)
                check(state.search(sql_of(query)), expected)
            state.cache.choose(state.reader.posts)


# -- beside DuckDB -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REAL)
def test_duckdb_says_the_same_of_real_posts(shared_data: Path, tmp_path: Path, name: str) -> None:
    """Through the pipeline: three batches of posts, then some are deleted."""
    table = pq.read_table(shared_data / f"{name}.parquet").slice(0, 5000)
    state, options = StateDirectory(tmp_path / "state"), Settings(workers=2)
    begin(state, options, None)
    for start, stop in ((0, 3500), (3500, 4900), (4900, 5000)):
        run_locally(state, options, posts=[normalise(table.slice(start, stop - start))[0]])
    gone = set(table["id"].to_pylist()[::50])
    run_locally(state, options, ops=ops(*({"op": "delete", "id": each} for each in sorted(gone))))
    times = table["ts"].cast(pa.int64())
    posts = table.set_column(table.schema.get_field_index("ts"), "ts", times).to_pylist()
    duck = Duck([post for post in posts if post["id"] not in gone], TOKENIZER)
    reader = Reader(state)
    assert reader.manifest.clock == max(times.to_pylist())
    for sql in REAL[name]:
        query = parse(sql, TOKENIZER).query
        assert isinstance(query, AggregateQuery)
        check(reader.search(sql), duck.rows(query, reader.manifest.clock or 0))
