"""J against counting by hand, query by query and cell by cell."""

from collections import defaultdict

import numpy as np
import pytest

from nearcast.common.errors import BadInput
from nearcast.common.op_schema import NEVER
from nearcast.partitioning.query_statistics import FOREVER, Statistics
from nearcast.partitioning.router_sample import CKQ, CRQ, CTQ, SKQ, SRQ, STQ, Queries, RouterSample, SampledPosts
from tests.partitioning.routers.twin import HOUR, SHAPES, Asked, Post, conjunctions, make_sample, random_sample

WORLD = (-180.0, -90.0, 360.0, 180.0)
DEPTH, WORD_DEPTH = 5, 2


POST_COLUMNS = ("lon", "lat", "ts", "terms")
QUERY_COLUMNS = ("type", "boxes", "code", "life", "k")


def joined_offsets(offsets: list[np.ndarray]) -> np.ndarray:
    return np.concatenate((offsets[0], offsets[1][1:] + offsets[0][-1]))


def statistics(sample: RouterSample) -> Statistics:
    return Statistics.of(sample, WORLD, DEPTH, WORD_DEPTH)


def columns(west: float, east: float, level: int) -> set[int]:
    n = 1 << level
    at = [min(max(int((lon + 180) / 360 * n), 0), n - 1) for lon in (west, east)]
    return set(range(at[0], at[1] + 1)) if west <= east else set(range(at[0], n)) | set(range(at[1] + 1))


def rows(south: float, north: float, level: int) -> range:
    n = 1 << level
    low, high = (min(max(int((lat + 90) / 180 * n), 0), n - 1) for lat in (south, north))
    return range(low, high + 1)


def touching(sample: RouterSample, kind: int, level: int, x: int, y: int) -> list[int]:
    """The queries of a type whose box touches a cell of the world."""
    out = []
    for row, (west, south, east, north) in enumerate(sample.queries.boxes.tolist()):
        inside = x in columns(west, east, level) and y in rows(south, north, level)
        if sample.queries.type[row] == kind and inside:
            out.append(row)
    return out


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_chances_count_every_query_that_touches_a_cell(shape: str, seed: int) -> None:
    sample = random_sample(np.random.default_rng(seed), 30, 60, shape, types=(SRQ, STQ, CRQ, CTQ))
    j = statistics(sample)
    rng = np.random.default_rng(seed)
    for level in range(DEPTH + 1):
        for x, y in rng.integers(0, 1 << level, (12, 2)):
            for kind in (SRQ, STQ, CRQ, CTQ):
                share = len(touching(sample, kind, level, x, y)) / max((sample.queries.type == kind).sum(), 1)
                assert j.chances(level, x, y)[kind] == pytest.approx(share)


@pytest.mark.parametrize("seed", range(4))
def test_keywords_and_word_counts_are_those_of_the_queries_that_touch_a_cell(seed: int) -> None:
    sample = random_sample(np.random.default_rng(seed), 20, 60, types=(SRQ,), side=30.0)
    j = statistics(sample)
    for level in range(WORD_DEPTH + 1):  # small ones go down to the last level
        for x in range(1 << level):
            for y in range(1 << level):
                words: defaultdict[int, float] = defaultdict(float)
                lengths: defaultdict[int, float] = defaultdict(float)
                for row in touching(sample, SRQ, level, x, y):
                    parts = conjunctions(sample.queries, row)
                    for _, literals in parts:
                        positive = [term for negative, terms in literals if not negative for term in terms]
                        lengths[len(positive)] += 1 / len(parts)
                        for term in positive:
                            words[term] += 1 / len(parts)
                expected = np.array([words[int(word)] for word in j.words.values])
                assert j.keywords(SRQ, level, x, y) == pytest.approx(expected / max(expected.sum(), 1e-9))
                counted = np.array([lengths[n] for n in range(17)])
                assert j.word_counts(SRQ, level, x, y) == pytest.approx(counted / max(counted.sum(), 1e-9))


def test_below_the_last_level_kept_a_cell_has_the_distributions_of_its_ancestor() -> None:
    sample = random_sample(np.random.default_rng(5), 20, 60, types=(SRQ, CRQ), side=30.0)
    j = statistics(sample)
    assert j.keywords(SRQ, DEPTH, 9, 20) == pytest.approx(j.keywords(SRQ, WORD_DEPTH, 9 >> 3, 20 >> 3))
    assert j.life(CRQ, DEPTH, 9, 20) == pytest.approx(j.life(CRQ, WORD_DEPTH, 9 >> 3, 20 >> 3))


def test_a_query_over_the_world_is_counted_once_and_known_everywhere() -> None:
    j = Statistics.of(make_sample([(0.0, 0.0, [])], [(SRQ, (-180, -90, 180, 90), [[4]])]), WORLD, 8, 4)
    assert len(j.words.place) == 1 + 4 + 16  # not the 256 cells of level 4
    assert j.keywords(SRQ, 4, 3, 11).tolist() == [1.0] and j.keywords(SRQ, 8, 3, 200).tolist() == [1.0]
    assert j.chances(8, 255, 0)[SRQ] == 1.0


def test_lives_are_averaged_by_cell_and_one_without_end_counts_as_a_week() -> None:
    west, east = (-170.0, 10.0, -160.0, 20.0), (100.0, 10.0, 110.0, 20.0)
    queries: list[Asked] = [(CRQ, west, []), (CRQ, west, []), (CRQ, east, []), (CTQ, east, [])]
    j = statistics(make_sample([], queries, life=[24 * HOUR, 72 * HOUR, NEVER, 10 * HOUR]))
    assert j.life(CRQ, 1, 0, 1) == pytest.approx(48 * 3600, rel=0.01)
    assert j.life(CRQ, 1, 1, 1) == FOREVER
    assert j.life(CTQ, 1, 1, 1) == pytest.approx(10 * 3600, rel=0.01)
    assert j.life(CKQ, 1, 1, 1) == 0.0


def test_posts_arrive_as_they_did_in_the_sample() -> None:
    posts: list[Post] = [(-100.0, 10.0, []), (-100.0, 10.0, []), (100.0, -10.0, [])]
    j = statistics(make_sample(posts, [], times=[0, HOUR, 2 * HOUR]))
    assert j.arrivals(0, 0, 0) == pytest.approx(3 / 7200)
    assert j.arrivals(1, 0, 1) == pytest.approx(2 / 7200)
    assert j.arrivals(DEPTH, 7, 17) == pytest.approx(2 / 7200)


def test_a_nearest_query_touches_the_square_in_which_k_posts_are_expected() -> None:
    # 64 posts spread evenly over the western half, half of them with word 1: 16 of them need half of that half
    posts: list[Post] = [(-180.0 + 22.5 * (i % 8) + 1, -90.0 + 22.5 * (i // 8) + 1, [1 + i % 2]) for i in range(64)]
    at = (-90.0, 0.0, -90.0, 0.0)
    j = statistics(make_sample(posts, [(SKQ, at, [[1]]), (CKQ, at, [[1], [2]])], k=16))
    touched = [x for x in range(32) if j.chances(5, x, 16)[SKQ]]
    wide = 22.6 * 8  # degrees: half of the world, times the root of 16 / 32
    assert len(touched) * 360 / 32 == pytest.approx(wide, abs=30)
    assert 8 in touched and 31 not in touched
    fewer = [x for x in range(32) if j.chances(5, x, 16)[CKQ]]
    assert 0 < len(fewer) < len(touched)  # any word: k of them are nearer


@pytest.mark.parametrize("seed", range(3))
def test_statistics_of_parts_merge_to_those_of_the_whole(seed: int) -> None:
    types = (SRQ, STQ, CRQ, CTQ)  # what a nearest query touches depends on the posts
    parts = [random_sample(np.random.default_rng(10 * seed + i), 20, 30, types=types) for i in range(2)]
    a, b = (statistics(part) for part in parts)
    whole = RouterSample(
        SampledPosts(
            **{name: np.concatenate([getattr(p.posts, name) for p in parts]) for name in POST_COLUMNS},
            offsets=joined_offsets([p.posts.offsets for p in parts]),
        ),
        Queries(
            **{name: np.concatenate([getattr(p.queries, name) for p in parts]) for name in QUERY_COLUMNS},
            code_offsets=joined_offsets([p.queries.code_offsets for p in parts]),
        ),
    )
    expected, merged = statistics(whole), a.merged(b)
    for name, array in expected.arrays().items():
        if name != "frame":
            assert merged.arrays()[name] == pytest.approx(array), name
    assert merged.span == a.span + b.span and a.merged(b, same_time=True).span == max(a.span, b.span)


def test_ageing_changes_weights_and_no_probability() -> None:
    sample = random_sample(np.random.default_rng(3), 30, 50)
    j = statistics(sample)
    old = j.aged(0.5)
    assert old.totals == pytest.approx(j.totals / 2)
    assert old.chances(2, 1, 1) == pytest.approx(j.chances(2, 1, 1))
    assert old.arrivals(0, 0, 0) == pytest.approx(j.arrivals(0, 0, 0))
    assert old.keywords(SRQ, 1, 0, 0) == pytest.approx(j.keywords(SRQ, 1, 0, 0))
    assert len(j.aged(1e-3).words.place) == 0  # words of long ago are forgotten
    fresh = make_sample([], [(SRQ, (0, 0, 1, 1), [[99]])] * 50)
    after = j.aged(0.1).merged(statistics(fresh))
    assert after.keywords(SRQ, 0, 0, 0)[after.words.values == 99] > 0.8


def test_statistics_survive_as_arrays() -> None:
    j = statistics(random_sample(np.random.default_rng(4), 30, 50))
    again = Statistics.from_arrays(j.arrays())
    assert again.extent == j.extent and again.depth == j.depth and again.span == j.span
    assert all(np.array_equal(again.arrays()[name], array) for name, array in j.arrays().items())


def test_an_empty_sample_has_no_chances_and_no_words() -> None:
    j = statistics(make_sample([], []))
    assert not j.chances(0, 0, 0).any() and not j.mix.any() and j.arrivals(0, 0, 0) == 0
    assert j.keywords(SRQ, 0, 0, 0).tolist() == [] and j.life(CRQ, 0, 0, 0) == 0.0


def test_statistics_over_different_extents_do_not_merge() -> None:
    sample = make_sample([], [])
    with pytest.raises(BadInput, match="different extents"):
        statistics(sample).merged(Statistics.of(sample, (0.0, 0.0, 1.0, 1.0), DEPTH))
