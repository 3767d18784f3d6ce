"""The most relevant posts against the oracle, over sealed, fresh and archived segments with deletions."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.errors import BadInput
from nearcast.common.geo.shapes import Circle
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.kinds.relevance import segment_search as search_relevant
from nearcast.kinds.relevance.idf import count_lists
from nearcast.kinds.relevance.idf_versions import write_version
from nearcast.kinds.relevance.query import HALF_WORLD_KM, RelevantQuery
from nearcast.kinds.relevance.search import RelevantRows
from nearcast.reader.reader import Reader
from nearcast.reader.state import State
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import commit
from tests.oracles import relevance as oracle
from tests.oracles.searches import matching, row
from tests.reader.searched_state import ARCHIVED, FRESH, SEALED, Post, make_state
from tests.reader.test_searches import COMMON, MINUTE, NOON, RARE, conditions, lats, lons, random_posts

TOKENIZER = Tokenizer()
SHARE = {0: 0.3, 7: 1.0}  # of the posts, that a version counts


@dataclass(frozen=True)
class Searched:
    reader: Reader = field(repr=False)
    everything: list[Post] = field(repr=False)
    gone: set[int | str] = field(repr=False)
    statistics: dict[int, oracle.Statistics] = field(repr=False)

    @cached_property
    def ranked(self) -> tuple[list[Post], list[oracle.Post]]:
        """The posts by id, and as the oracle has them."""
        posts = sorted(self.everything, key=lambda post: (isinstance(post["id"], str), post["id"]))
        own = [
            oracle.Post(rank, each["ts"], each["lon"], each["lat"], terms_of(each["text"]))
            for rank, each in enumerate(posts)
        ]
        return posts, own


class Counted(oracle.Statistics):
    """The same, with the counts at hand."""

    @cached_property
    def by_term(self) -> dict[int, int]:
        return dict(self.counts)

    def idf(self, term: int) -> float:
        return log((1.0 + self.posts) / (1.0 + self.by_term.get(term, 0))) + 1.0


def terms_of(text: str | None) -> tuple[int, ...]:
    terms, _ = TOKENIZER.terms(pa.array([text or ""]))
    return tuple(term for term in terms.tolist() if term)


def words_of(*words: str) -> tuple[int, ...]:
    return tuple(sorted({term for word in words for term in terms_of(word)}))


def with_versions(root: Path, posts: list[Post]) -> dict[int, oracle.Statistics]:
    """Give a state versions 0 and 7 of the idf; their statistics."""
    state = StateDirectory(root)
    manifest, refs = state.newest(), []
    found: dict[int, oracle.Statistics] = {}
    for version, share in SHARE.items():
        texts = [post["text"] or "" for post in posts[: int(share * len(posts))]]
        counts = count_lists(*TOKENIZER.terms(pa.array(texts, pa.string())))
        refs.append(write_version(state, 0, version, counts, sampled=version == 0))
        pairs = zip(counts.term.tolist(), counts.count.tolist(), strict=True)
        found[version] = Counted(counts.posts, tuple(pairs))
    commit(state.manifests, manifest, replace(manifest, segments=(*manifest.segments, *refs)))
    return found


STATES = {
    "sealed": ([(SEALED, 700)], True),
    "listed": ([(FRESH, 2100), (FRESH, 30)], False),
    "all kinds": ([(ARCHIVED, 100), (SEALED, 300), (SEALED, 200), (FRESH, 100), (FRESH, 1)], False),
    "nothing": ([], False),
}


@pytest.fixture(scope="module", params=STATES)
def searched(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Searched:
    parts, exact = STATES[request.param]
    random = Random(request.param)
    made = [
        (kind, random_posts(random, count, 10_000 * number, NOON + 10 * number * MINUTE, exact))
        for number, (kind, count) in enumerate(parts)
    ]
    everything = [post for _, posts in made for post in posts]
    deleted = random.sample([post["id"] for post in everything], len(everything) // 20)
    root = make_state(tmp_path_factory.mktemp("relevant") / "state", made, deleted)
    statistics = with_versions(root, everything)
    return Searched(Reader(root), everything, set(deleted), statistics)


@contextmanager
def long_lists(are: bool) -> Iterator[None]:
    """As if all lists of words were long ones."""
    before = search_relevant.LONG, search_relevant.SEEDED
    if are:
        search_relevant.LONG = search_relevant.SEEDED = 0
    yield
    search_relevant.LONG, search_relevant.SEEDED = before


def expected(searched: Searched, query: RelevantQuery, version: int = 7) -> list[dict[str, Any]]:
    """The rows that the definition gives."""
    clock = searched.reader.manifest.clock or 0
    ranks, posts = searched.ranked
    profile = oracle.Taste(
        query.lon, query.lat, frozenset(query.words), query.alpha, query.reach_km, query.k, query.window_posts,
        query.window,
    )  # fmt: skip
    inside = {post.id for post in oracle.window(posts, profile, clock)}
    asked = {id(post) for post in matching(ranks, query, clock, TOKENIZER)}
    few = [
        posts[rank]
        for rank, post in enumerate(ranks)
        if rank in inside and id(post) in asked and post["id"] not in searched.gone
    ]
    found = oracle.best(few, replace(profile, posts=None, length=None), clock, searched.statistics[version])
    return [{**row(ranks[post.id], query.columns), "score": score} for score, post in found]


def plain(found: Any) -> list[dict[str, Any]]:
    """Rows without the attributes that a post lacks."""
    return [{name: value for name, value in each.items() if value is not None or name == "text"} for each in found]


asked_words = st.lists(st.sampled_from([*COMMON, *RARE[:8], "unheard"]), min_size=1, max_size=4)
reaches = st.sampled_from([1.0, 50.0, 3000.0, HALF_WORLD_KM])
alphas = st.sampled_from([0.0, 1.0, 0.5]) | st.floats(0, 1)
windows = st.sampled_from([{}, {}, {"window": 25 * MINUTE}]) | st.builds(
    lambda n: {"window_posts": n}, st.sampled_from([1, 7, 1500]) | st.integers(1, 3000)
)
profiles = st.builds(
    lambda lon, lat, words, alpha, reach, k: dict(
        lon=lon, lat=lat, words=words_of(*words), alpha=alpha, reach_km=reach, k=k
    ),
    lons, lats, asked_words, alphas, reaches, st.sampled_from([1, 2, 10, 5000]),
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(profiles, windows, conditions, st.booleans(), st.booleans())
def test_the_most_relevant_are_those_of_the_definition(
    searched: Searched, profile: dict[str, Any], window: dict[str, Any], where: dict[str, Any], bare: bool, long: bool
) -> None:
    if window:
        where = {name: value for name, value in where.items() if name not in ("after", "since", "until")}
    query = RelevantQuery(**profile, **window, **({} if bare else where))
    with long_lists(long):
        found = searched.reader.answer(query)
    assert isinstance(found, RelevantRows) and found.idf == 7
    assert plain(found) == plain(expected(searched, query))


def test_a_search_takes_the_version_that_it_is_given(searched: Searched) -> None:
    query = RelevantQuery(lon=-74.0, lat=40.7, words=words_of("flood", "coffee"), alpha=0.3, k=20)
    for version in SHARE:
        found = searched.reader.answer(query, idf=version)
        assert isinstance(found, RelevantRows) and found.idf == version
        assert plain(found) == plain(expected(searched, query, version))


def test_bounds_leave_out_most_candidates(searched: Searched) -> None:
    flood = RelevantQuery(lon=-74.0, lat=40.7, words=words_of("flood", "rain"), alpha=0.5, reach_km=500.0, k=3)
    for _ in range(2):  # the second knows the lengths of vectors
        found = searched.reader.answer(flood)
    if len(searched.everything) > 500:
        having = sum(bool({*terms_of(post["text"])} & {*flood.words}) for post in searched.everything)
        assert 0 < found.candidates_checked < having / 4


# -- ties, windows, versions, by hand ----------------------------------------------------------------------------------


def post(id_: int | str, minute: int, text: str, lon: float = 0.0) -> Post:
    return {"id": id_, "ts": NOON + minute * MINUTE, "lon": lon, "lat": 0.0, "text": text}


def ids(found: Any) -> list[int | str]:
    return [each["id"] for each in found]


def test_ties_go_to_the_later_post_then_to_the_lower_id(tmp_path: Path) -> None:
    posts = [post(5, 1, "tea"), post(9, 2, "tea"), post(3, 2, "tea"), post("a", 2, "tea"), post(1, 0, "tea")]
    root = make_state(tmp_path / "state", [(SEALED, posts[:3]), (FRESH, posts[3:])])
    query = RelevantQuery(lon=0.0, lat=0.0, words=words_of("tea"), alpha=0.5, k=4)
    assert ids(Reader(root).answer(query)) == [3, 9, "a", 5]


@pytest.mark.parametrize(
    ("count", "inside"), [(1, [4]), (2, [4, 3]), (3, [4, 3]), (4, [4, 3, 1]), (5, [4, 3, 1]), (99, [4, 3, 1])]
)
def test_a_window_of_posts_counts_the_deleted(tmp_path: Path, count: int, inside: list[int]) -> None:
    # minute  0: 0 (no tea)   1: 1, 2 (deleted)   2: 3   3: 4
    posts = [post(0, 0, "milk"), post(1, 1, "tea"), post(2, 1, "tea"), post(3, 2, "tea"), post(4, 3, "tea")]
    root = make_state(tmp_path / "state", [(ARCHIVED, posts[:2]), (SEALED, posts[2:4]), (FRESH, posts[4:])], [2])
    query = RelevantQuery(lon=0.0, lat=0.0, words=words_of("tea"), alpha=0.5, k=9, window_posts=count)
    assert ids(Reader(root).answer(query)) == inside


@pytest.mark.parametrize("count", range(1, 6))
def test_a_window_of_posts_cuts_through_a_moment_by_id(tmp_path: Path, count: int) -> None:
    posts = [post(7, 1, "tea"), post("b", 1, "tea"), post(-2, 1, "tea"), post("a", 1, "tea"), post(3, 1, "tea")]
    root = make_state(tmp_path / "state", [(ARCHIVED, posts[:2]), (SEALED, posts[2:])])
    query = RelevantQuery(lon=0.0, lat=0.0, words=words_of("tea"), alpha=0.5, k=9, window_posts=count)
    assert ids(Reader(root).answer(query)) == [-2, 3, 7, "a", "b"][-count:]


def test_words_weigh_the_same_before_any_post_was_counted(tmp_path: Path) -> None:
    root = make_state(tmp_path / "state", [(SEALED, [post(1, 0, "tea tea milk"), post(2, 1, "tea milk")])])
    found = Reader(root).answer(RelevantQuery(lon=0.0, lat=0.0, words=words_of("tea"), alpha=0.0, k=9))
    assert isinstance(found, RelevantRows) and found.idf == 0
    assert [(each["id"], each["score"]) for each in found] == [(1, 2 / np.sqrt(5)), (2, 1 / np.sqrt(2))]


def test_a_version_that_is_not_kept_is_told(searched: Searched) -> None:
    query = RelevantQuery(lon=0.0, lat=0.0, words=words_of("tea"), alpha=0.5, k=1)
    with pytest.raises(BadInput, match="version 3 of the idf is not kept: there is 0, 7"):
        searched.reader.answer(query, idf=3)


def test_columns_and_arrow_have_the_score_last(searched: Searched) -> None:
    near = Circle(180.0, 10.0, 2000.0)
    query = RelevantQuery(
        lon=180.0, lat=10.0, region=near, words=words_of("flood"), alpha=0.5, k=5, columns=("id", "price")
    )
    found = searched.reader.answer(query)
    assert isinstance(found, RelevantRows)
    assert found.to_arrow().column_names == ["id", "price", "score"]
    assert all(list(each) == ["id", "price", "score"] for each in found)


def test_explain_tells_what_each_score_is_made_of(searched: Searched) -> None:
    sql = "SELECT * FROM stream ORDER BY RELEVANCE(POINT(-74, 40.7), 'flood rain', 0.25, 900 km) DESC LIMIT 3"
    state = State(searched.reader.state.root)
    rows = list(state.search(sql))
    told = {each["step"]: each["detail"] for each in state.search(f"EXPLAIN {sql}")}
    assert told["idf"].startswith("version 7")
    for each in rows:
        parts = told[f"score of {each['id']}"]
        assert parts.startswith(f"{each['score']:.6f} = 0.25 × nearness")
        shared = {word for word in ("flood", "rain") if {*words_of(word)} & {*terms_of(each["text"])}}
        assert shared == {word for word in ("flood", "rain") if f"{word} 0." in parts}
        near, alike = map(float, re.findall("(?:nearness|cosine) ([0-9.]+)", parts))
        assert each["score"] == pytest.approx(0.25 * near + 0.75 * alike, abs=2e-6)
