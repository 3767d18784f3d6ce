"""Versions of term statistics: which are due, which are kept, which of them an id uses, and what they count."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.arrays import frozen
from nearcast.common.errors import BadInput
from nearcast.kinds.relevance.idf import IdfSet, count_lists, count_posts
from nearcast.kinds.relevance.idf_versions import (
    TermStatistics,
    kept_versions,
    next_versions,
    wanted_versions,
    write_version,
)
from nearcast.kinds.relevance.vectors import Idf
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import TERMS, Manifest, SegmentRef
from nearcast.storage.posts.post_segment import PostSegment
from tests.reader.searched_state import Post, table_of, with_words

DAY = 86_400_000_000
keys = st.sampled_from([0, 1, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1)


@given(keys, st.integers(-(2**50), 2**50), st.sampled_from([1_000_000, 7_777_777, DAY, 7 * DAY]))
def test_an_id_takes_versions_up_at_its_own_moment_of_the_period(key: int, clock: int, period: int) -> None:
    exactly = (Fraction(clock) - Fraction(key, 2**64) * period) / period
    assert wanted_versions(np.array([key], np.uint64), clock, period).tolist() == [exactly.__floor__()]


def test_switches_are_spread_over_the_period() -> None:
    ids = np.random.default_rng(1).integers(0, 2**64, 10_000, dtype=np.uint64)
    for tenth in range(10):
        switched = wanted_versions(ids, 40 * DAY + tenth * DAY // 10, DAY) == 40
        assert switched.mean() == pytest.approx(tenth / 10, abs=0.02)


@pytest.mark.parametrize(
    ("before", "clock", "lateness", "due"),
    [
        (None, None, 0, []),
        (None, 25, 0, [1, 2]),  # the first batch: all that lies behind it
        (12, 19, 0, []),
        (12, 20, 0, [2]),  # the moment itself is passed, for posts at it do not count
        (12, 29, 0, [2]),
        (19, 31, 0, [2, 3]),
        (12, 999, 0, [98, 99]),
        (12, 14, 5, []),
        (12, 24, 5, [1]),
        (12, 25, 5, [1, 2]),
        (24, 26, 5, [2]),
        (25, 26, 5, []),
        (-5, 3, 0, [0]),
        (None, -15, 0, [-3, -2]),
    ],
)
def test_versions_are_due_when_the_clock_less_the_lateness_passes(
    before: int | None, clock: int | None, lateness: int, due: list[int]
) -> None:
    assert next_versions(before, clock, lateness, 10) == due


def made(root: Path, *versions: int, sampled: bool = False) -> tuple[StateDirectory, Manifest]:
    """A state with versions, of which V has V posts; and that of a sample."""
    state = StateDirectory(root)
    refs = [
        write_version(state, 0, v, TermStatistics(v, np.array([9], np.uint64), np.array([1])), False) for v in versions
    ]
    if sampled:
        refs.insert(1, write_version(state, 0, 0, TermStatistics(5, np.array([9], np.uint64), np.array([2])), True))
    return state, Manifest(segments=tuple(refs))


def test_the_newest_versions_are_kept(tmp_path: Path) -> None:
    state, manifest = made(tmp_path, -3, 8, 4, 6, sampled=True)
    other = SegmentRef(TERMS, "segments/terms/x", 1, 1, 0)
    kept = kept_versions((*manifest.segments, other))
    assert other in kept and IdfSet(state, replace(manifest, segments=tuple(kept))).versions == (-3, 4, 6, 8)
    assert IdfSet(state, manifest).versions == (0, -3, 4, 6, 8)


@pytest.mark.parametrize(
    ("versions", "sampled", "clock", "early", "late"),
    [
        ((), False, 65, 0, 0),  # of ids that switch early and late in the period
        ((), True, 65, 0, 0),
        ((6,), False, 65, 6, 6),  # the oldest there is
        ((6,), True, 65, 6, 0),
        ((5, 6), True, 65, 6, 5),
        ((2, 6), True, 65, 6, 2),
        ((6, 7), True, 65, 6, 0),
        ((2, 3), False, 65, 3, 3),
        ((-8, -7), True, -61, -7, -8),
        ((-8, -7), True, -85, 0, 0),
    ],
)
def test_an_id_uses_the_newest_version_that_it_has_come_to(
    tmp_path: Path, versions: tuple[int, ...], sampled: bool, clock: int, early: int, late: int
) -> None:
    known = IdfSet(*made(tmp_path, *versions, sampled=sampled))
    assert known.used(np.array([0, 2**64 - 1], np.uint64), clock, 10).tolist() == [early, late]


def test_a_version_is_opened_by_its_number(tmp_path: Path) -> None:
    known = IdfSet(*made(tmp_path, 4, 6, sampled=True))
    assert [known.at(version).posts for version in (0, 4, 6)] == [5, 4, 6]
    assert known.newest().version == 6
    with pytest.raises(BadInput, match="version 5 of the idf is not kept: there is 0, 4, 6"):
        known.at(5)


def test_without_versions_all_words_weigh_the_same(tmp_path: Path) -> None:
    known = IdfSet(*made(tmp_path))
    none = Idf.none()
    assert known.newest().posts == 0 and known.at(0).posts == 0 and none.unknown == 1.0
    with pytest.raises(BadInput, match="not kept: there is 0, before any post was counted"):
        known.at(1)


# -- counting ----------------------------------------------------------------------------------------------------------

WORDS = ["flood", "rain", "#tag", "東京", "a"]


def posts_of(random: Random, count: int) -> list[Post]:
    return [
        {
            "id": n, "ts": 1000 * random.randrange(50), "lon": random.uniform(-180, 180), "lat": 0.0,
            "text": " ".join(random.choices(WORDS, k=random.randrange(5))),
        }
        for n in range(count)
    ]  # fmt: skip


def counted(posts: list[Post]) -> tuple[int, dict[int, int]]:
    table = with_words(table_of(posts)) if posts else None
    terms = [set(each) - {0} for each in table["terms"].to_pylist()] if table is not None else []
    return len(posts), dict(Counter(term for each in terms for term in each))


def as_pairs(counts: TermStatistics) -> tuple[int, dict[int, int]]:
    assert (np.diff(counts.term.astype(np.float64)) > 0).all()
    return counts.posts, dict(zip(counts.term.tolist(), counts.count.tolist(), strict=True))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 999), st.integers(-1, 51), st.integers(-1, 51))
def test_posts_are_counted_by_time_but_the_deleted(seed: int, since: int, until: int) -> None:
    random = Random(seed)
    parts = [posts_of(random, random.choice((1, 30, 300))) for _ in range(random.randrange(3))]
    segments, kept = [], []
    for posts in parts:
        segment = PostSegment.of(with_words(table_of(posts)))
        gone = np.sort(np.array(random.sample(range(len(posts)), len(posts) // random.choice((3, 1000))), np.int64))
        segments.append((segment, frozen(gone)))
        hidden = set(segment.ids(gone).tolist())
        kept += [post for post in posts if post["id"] not in hidden and 1000 * since <= post["ts"] < 1000 * until]
    found = count_posts(segments, 1000 * since, 1000 * until)
    assert as_pairs(found) == counted(kept)
    assert found.latest == max((post["ts"] for post in kept), default=None)


def test_a_word_counts_once_a_text() -> None:
    found = count_lists(np.array([5, 0, 5, 3, 3, 9], np.uint64), np.array([0, 3, 3, 5, 6]))
    assert as_pairs(found) == (4, {3: 1, 5: 1, 9: 1})
    assert as_pairs(count_lists(np.empty(0, np.uint64), np.zeros(1, np.int64))) == (0, {})


def test_statistics_of_parts_add_up() -> None:
    one, two = (
        TermStatistics(2, np.array([1, 3], np.uint64), np.array([1, 2]), 7),
        TermStatistics(1, np.array([3], np.uint64), np.array([1])),
    )
    assert as_pairs(TermStatistics.summed([one, TermStatistics.none(), two])) == (3, {1: 1, 3: 3})
    assert TermStatistics.summed([one, two]).latest == 7 and TermStatistics.summed([]).posts == 0
