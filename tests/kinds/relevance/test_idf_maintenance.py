"""Versions of term statistics as a stream goes on: the same however it is cut."""

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine.begin import begin
from nearcast.engine.local import run_locally
from nearcast.engine.settings import Settings
from nearcast.kinds.relevance.idf import IdfSet
from nearcast.kinds.relevance.idf_versions import wanted_versions
from nearcast.reader.state import State
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import ARCHIVE, IDF, Manifest
from tests.reader.small_state import MINUTE, NOON, ops, posts

PERIOD = 10 * MINUTE
FIRST = NOON // PERIOD
KEYS = np.array([0, 2**62, 2**63, 2**64 - 1], np.uint64)
WORDS = ("flood", "rain", "coffee")

Stream = list[tuple[int, str]]  # minute and text


def run(root: Path, stream: Stream, cuts: list[int], **chosen: int | str | None) -> Manifest:
    """The state after a stream that came in so many batches."""
    state, choices = StateDirectory(root), Settings(workers=1, idf_period=PERIOD, **chosen)  # type: ignore[arg-type]
    manifest = begin(state, choices)
    bounds = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    for first, last in pairwise(bounds):
        rows: list[tuple[int, int, str, dict[str, Any]]] = [
            (n, minute, text, {}) for n, (minute, text) in enumerate(stream[first:last], first)
        ]
        manifest = run_locally(state, choices, posts=[posts(*rows)])
    return manifest


def statistics(stream: Stream, before: int) -> tuple[int, dict[str, int]]:
    """By definition: how many posts are before a version's moment, and how many of them have each word."""
    counted = [text.split() for minute, text in stream if NOON + minute * MINUTE < before * PERIOD]
    counts = {word: sum(word in text for text in counted) for word in WORDS}
    return len(counted), {word: count for word, count in counts.items() if count}


def spelled(state: StateDirectory, manifest: Manifest, version: int) -> tuple[int, dict[str, int]]:
    idf = IdfSet(state, manifest).at(version)
    terms = {int(Tokenizer().terms(pa.array([word]))[0][0]): word for word in WORDS}
    pairs = zip(idf.term.tolist(), idf.count.tolist(), strict=True)
    return idf.posts, {terms[term]: count for term, count in pairs}


def expected(stream: Stream, clock: int, lateness: int, wanted: int) -> int:
    """The version that an id uses which wants this one: that of the last period with a post until then."""
    passed = (clock - lateness) // PERIOD
    for version in (min(wanted, passed), passed):
        times = [NOON + minute * MINUTE for minute, _ in stream if NOON + minute * MINUTE < version * PERIOD]
        if times:
            return max(times) // PERIOD + 1
    return 0


texts = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)
streams = st.lists(st.tuples(st.integers(0, 75), texts), min_size=1, max_size=12)


@settings(max_examples=12, deadline=None)
@given(streams, st.lists(st.integers(1, 11), max_size=5), st.sampled_from([0, 15]))
def test_versions_are_the_same_however_the_stream_is_cut(stream: Stream, cuts: list[int], late: int) -> None:
    # Times grow, but for posts that are up to `late` minutes behind.
    stream = [(max(0, minute - late * (n % 2)), text) for n, (minute, text) in enumerate(sorted(stream))]
    with TemporaryDirectory() as folder:
        state = StateDirectory(folder)
        manifest = run(state.root, stream, cuts, lateness=late * MINUTE)
        assert manifest.clock is not None
        known = IdfSet(state, manifest)
        used = known.used(KEYS, manifest.clock, PERIOD).tolist()
        wanted = wanted_versions(KEYS, manifest.clock, PERIOD).tolist()
        assert used == [expected(stream, manifest.clock, late * MINUTE, version) for version in wanted]
        for version in known.versions:
            assert spelled(state, manifest, version) == statistics(stream, version)


def test_what_has_gone_to_the_archive_counts(tmp_path: Path) -> None:
    stream = [(minute, "flood") for minute in range(0, 50, 2)]
    manifest = run(tmp_path, stream, list(range(1, 25)), retention=2 * MINUTE, slot=MINUTE)
    assert manifest.of(ARCHIVE)
    state = StateDirectory(tmp_path)
    assert IdfSet(state, manifest).versions == tuple(FIRST + n for n in (1, 2, 3, 4))
    assert spelled(state, manifest, FIRST + 4) == (20, {"flood": 20})


def test_a_period_without_posts_makes_no_version(tmp_path: Path) -> None:
    manifest = run(tmp_path, [(1, "flood"), (42, "rain"), (55, "rain")], [1, 2])
    assert IdfSet(StateDirectory(tmp_path), manifest).versions == (FIRST + 1, FIRST + 5)


def test_four_versions_are_kept(tmp_path: Path) -> None:
    manifest = run(tmp_path, [(10 * n, "flood") for n in range(8)], list(range(1, 8)))
    assert IdfSet(StateDirectory(tmp_path), manifest).versions == tuple(FIRST + n for n in (4, 5, 6, 7))


def test_deleted_posts_do_not_count(tmp_path: Path) -> None:
    state, choices = StateDirectory(tmp_path), Settings(workers=2, idf_period=PERIOD)
    begin(state, choices)
    run_locally(state, choices, posts=[posts((1, 0, "flood", {}), (2, 1, "rain", {}))])
    run_locally(state, choices, ops=ops({"op": "delete", "id": 2}))
    manifest = run_locally(state, choices, posts=[posts((3, 12, "coffee", {}))])
    assert spelled(state, manifest, FIRST + 1) == (1, {"flood": 1})


def test_a_state_begins_with_the_statistics_of_a_sample(tmp_path: Path) -> None:
    state, choices = StateDirectory(tmp_path), Settings(workers=1, idf_period=PERIOD)
    manifest = begin(state, choices, posts((1, 0, "flood flood rain", {}), (2, 1, "flood", {})))
    assert spelled(state, manifest, 0) == (2, {"flood": 2, "rain": 1})
    manifest = run_locally(state, choices, posts=[posts((1, 0, "coffee", {}), (2, 15, "flood", {}))])
    known = IdfSet(state, manifest)
    assert known.versions == (0, FIRST + 1)
    assert spelled(state, manifest, FIRST + 1) == (1, {"coffee": 1})  # a sample is no part of the stream


@pytest.mark.parametrize("keep", ["posts", "none"])
def test_where_no_posts_are_kept_there_are_no_versions(tmp_path: Path, keep: str) -> None:
    manifest = run(tmp_path, [(1, "flood"), (42, "rain")], [1], keep=keep)
    assert bool(manifest.of(IDF)) == (keep == "posts")


def test_the_period_is_that_which_a_state_was_made_with(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    begin(state, Settings(workers=1, idf_period=PERIOD))
    assert state.newest().settings["idf_period"] == PERIOD
    other = Settings(workers=1)
    manifest = run_locally(state, other, posts=[posts((1, 1, "flood", {}), (2, 15, "rain", {}))])
    assert IdfSet(state, manifest).versions == (FIRST + 1,)


def test_a_search_of_the_stream_answers_with_scores(tmp_path: Path) -> None:
    state, choices = StateDirectory(tmp_path), Settings(workers=2, idf_period=PERIOD)
    begin(state, choices)
    run_locally(state, choices, posts=[posts((1, 0, "flood", {}), (2, 1, "flood and rain", {}), (3, 12, "coffee", {}))])
    sql = "SELECT id FROM stream ORDER BY RELEVANCE(POINT(-74, 40.5), 'flood', 0.5) DESC LIMIT 5 WINDOW 4 HOURS"
    run_locally(state, choices, ops=ops({"op": "search", "id": 4, "id_text": "s1", "sql": sql}))
    (answer,) = State(tmp_path).results("s1")
    assert [row["id"] for row in answer["rows"]] == [1, 2] and answer["rows"][0]["score"] == 1.0
    assert answer["rows"] == list(State(tmp_path).search(sql))
