"""A kind of question of another package is searched and explained as ours are, and no line of `src/` knows it."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nearcast.common import kinds
from nearcast.common.errors import BadInput
from nearcast.common.geo.shapes import Rect
from nearcast.common.queries import Statement
from nearcast.reader.answer import PostRows
from nearcast.reader.current_answer import read_current
from nearcast.reader.explain import explain
from nearcast.reader.reader import Reader
from tests.kinds.first_posts.query import FirstPostsQuery
from tests.reader.searched_state import ARCHIVED, FRESH, SEALED, make_state

NOON, MINUTE = 1_777_636_800_000_000, 60_000_000


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """Three segments with a post in each of ten cells, later ones in later segments."""
    posts = [
        {"id": n, "ts": NOON + n * MINUTE, "lon": 0.5, "lat": n % 10 + 0.5, "text": "rain" if n % 3 else "flood"}
        for n in range(30)
    ]
    parts = [(ARCHIVED, posts[:10]), (SEALED, posts[10:20]), (FRESH, posts[20:])]
    monkeypatch.setenv(kinds.ENVIRONMENT, "tests.kinds.first_posts:KIND")
    kinds.kinds.cache_clear()
    yield Reader(make_state(tmp_path / "state", parts, deleted=[1]))
    monkeypatch.undo()
    kinds.kinds.cache_clear()


def test_its_answer_is_that_of_its_role(reader: Reader) -> None:
    found = reader.answer(FirstPostsQuery(columns=("id",)))
    assert isinstance(found, PostRows) and found.column_names == ("id", "cell_lat")
    # post 1 is deleted, so the cell of latitude 1 begins with post 11
    assert list(found) == [{"id": n, "cell_lat": n % 10} for n in (0, 2, 3, 4, 5, 6, 7, 8, 9, 11)]
    assert found.to_arrow()["id"].to_pylist() == [0, 2, 3, 4, 5, 6, 7, 8, 9, 11]


def test_conditions_are_those_of_all_kinds(reader: Reader) -> None:
    found = reader.answer(FirstPostsQuery(region=Rect(0, 0, 1, 4), columns=("id",)), south=2.0)
    assert [row["id"] for row in found] == [0, 11]


def test_its_options_are_refused_by_others_and_it_takes_none_of_theirs(reader: Reader) -> None:
    with pytest.raises(BadInput, match="first posts of cells"):
        reader.search("SELECT * FROM stream", south=2.0)
    with pytest.raises(BadInput, match="RELEVANCE"):
        reader.answer(FirstPostsQuery(), idf=3)
    with pytest.raises(BadInput, match="no kind of search has an option north"):
        reader.search("SELECT * FROM stream", north=2.0)


def test_explain_has_its_part(reader: Reader) -> None:
    steps = dict(explain(reader, Statement(FirstPostsQuery(), explain=True, sql="")).steps)
    assert steps["cells"] == steps["rows"] == "10" and steps["order"] == "earliest first, ties by id"


def test_a_kind_that_keeps_no_answers_has_no_current_one(reader: Reader) -> None:
    with pytest.raises(BadInput, match="no subscription"):
        read_current(reader, "q")


def test_a_search_imports_the_role_of_its_own_kind_only(reader: Reader) -> None:
    code = f"""
import sys
from nearcast.reader.reader import Reader
list(Reader({str(reader.state.root)!r}).search("SELECT * FROM stream"))
print(sorted(name for name in sys.modules if name.startswith("nearcast.kinds.") and name.endswith(".search")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['nearcast.kinds.range.search']"
