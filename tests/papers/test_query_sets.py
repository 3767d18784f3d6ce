"""The papers' query sets: what each of them promises about places, sides and words."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from nearcast.common.errors import BadInput
from nearcast.sources.world import World
from nearcast.sources.world.geography import KM_PER_DEGREE
from nearcast_papers.query_sets import (
    DELETE,
    INSERT,
    SCHEMA,
    PostSample,
    churn,
    kernel_posts,
    kernel_queries,
    kernel_word,
    q1,
    q2,
    q3,
    sstd,
    updates,
)
from nearcast_papers.query_sets.ps2stream_queries import region_of, regions_like_q2

COUNT = 40_000
Set = Callable[..., pa.Table]


@pytest.fixture(scope="module")
def sample() -> PostSample:
    return PostSample.of(World().posts(0, 50_000))


def words_of(queries: pa.Table) -> list[list[str]]:
    return [text.split(" ") for text in pc.coalesce(queries["text"], queries["overlaps"]).to_pylist()]


def ranks(sample: PostSample, queries: pa.Table) -> list[list[int]]:
    number = {word: rank for rank, word in enumerate(sample.words.to_pylist())}
    return [[number[word] for word in words] for words in words_of(queries)]


def sides(queries: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """(width, height) in degrees."""
    west, south, east, north = (queries[name].to_numpy() for name in ("min_lon", "min_lat", "max_lon", "max_lat"))
    return (east - west) % 360, north - south


def middle_of(queries: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    width, height = sides(queries)
    lon = (queries["min_lon"].to_numpy() + width / 2 + 180) % 360 - 180
    return lon, queries["min_lat"].to_numpy() + height / 2


@pytest.mark.parametrize("make", [q1, q2, q3, sstd])
def test_a_set_is_the_same_however_it_is_cut(make: Set, sample: PostSample) -> None:
    whole = make(sample, COUNT, seed=5)
    assert whole.schema.equals(SCHEMA)
    assert make(sample, 5_000, seed=5, first=30_000).equals(whole.slice(30_000, 5_000))
    assert not make(sample, 100, seed=6)["min_lon"].equals(whole["min_lon"].slice(0, 100))


@pytest.mark.parametrize("make", [q1, q2, q3])
def test_ps2stream_queries_have_one_to_three_distinct_words_joined_by_and_or_or(make: Set, sample: PostSample) -> None:
    queries = make(sample, COUNT)
    sizes = [len(words) for words in words_of(queries)]
    assert all(len(set(words)) == size for words, size in zip(words_of(queries), sizes, strict=True))
    assert np.bincount(sizes)[1:].tolist() == pytest.approx([COUNT / 3] * 3, rel=0.05)
    all_of, any_of = (queries[name].is_valid().to_numpy() for name in ("text", "overlaps"))
    assert (all_of ^ any_of).all()
    assert any_of.mean() == pytest.approx(1 / 3, abs=0.02)  # half of those with more than one word
    assert make(sample, 1000, or_share=0.0)["overlaps"].null_count == 1000


@pytest.mark.parametrize(("make", "largest"), [(q1, 50), (q2, 100)])
def test_ps2stream_queries_are_squares_about_posts(make: Set, largest: int, sample: PostSample) -> None:
    queries = make(sample, COUNT)
    width, height = sides(queries)
    lon, lat = middle_of(queries)
    side_km = height * KM_PER_DEGREE
    assert side_km.min() >= 1 - 1e-9 and side_km.max() <= largest + 1e-9
    assert side_km.mean() == pytest.approx((1 + largest) / 2, rel=0.02)
    assert np.allclose(width * np.cos(np.radians(lat)), height, rtol=1e-6)
    places = set(zip(sample.lon.round(4).tolist(), sample.lat.round(4).tolist(), strict=True))
    found = [place in places for place in zip(lon[:500].round(4).tolist(), lat[:500].round(4).tolist(), strict=True)]
    assert np.mean(found) > 0.95  # all but for rounding


def test_words_of_q1_are_as_frequent_as_in_the_posts(sample: PostSample) -> None:
    in_posts = np.bincount(sample.terms, minlength=len(sample.words)) / len(sample.terms)
    singles = [row[0] for row in ranks(sample, q1(sample, 4 * COUNT)) if len(row) == 1]
    in_queries = np.bincount(singles, minlength=len(sample.words)) / len(singles)
    assert in_queries[:10] == pytest.approx(in_posts[:10], rel=0.12)
    assert in_queries[: sample.top].sum() == pytest.approx(in_posts[: sample.top].sum(), abs=0.01)


def test_a_query_of_q2_has_a_word_outside_the_top_hundredth(sample: PostSample) -> None:
    assert sample.top == len(sample.words) // 100
    assert all(max(row) >= sample.top for row in ranks(sample, q2(sample, COUNT)))
    assert not all(max(row) >= sample.top for row in ranks(sample, q1(sample, COUNT)))


def test_q3_has_regions_like_q1_and_regions_like_q2(sample: PostSample) -> None:
    queries = q3(sample, COUNT, seed=2)
    lon, lat = middle_of(queries)
    like_q2 = regions_like_q2(2, 0)[region_of(sample, lon, lat)]
    assert regions_like_q2(2, 0).sum() == 50
    height = sides(queries)[1] * KM_PER_DEGREE
    assert height[~like_q2].max() < 51 < 95 < height[like_q2].max()
    rare = np.array([max(row) >= sample.top for row in ranks(sample, queries)])
    assert rare[like_q2].all() and not rare[~like_q2].all()


def test_a_tenth_of_the_regions_of_q3_switch(sample: PostSample) -> None:
    assert [(regions_like_q2(2, n) ^ regions_like_q2(2, n + 1)).sum() for n in range(4)] == [10, 10, 10, 10]
    late = q3(sample, 1000, seed=2, switch_every=100, first=300)
    assert not late.equals(q3(sample, 1000, seed=2, first=300))


def test_a_query_of_sstd_covers_its_share_of_the_space_and_has_words_of_its_post(sample: PostSample) -> None:
    world_area = 360 * 180
    for share, scale in ((0.0001, 1.0), (0.000001, 1.0), (0.0001, 0.1)):
        width, height = sides(sstd(sample, 2000, area_share=share, side_scale=scale))
        assert np.median(width * height) / world_area == pytest.approx(share * scale**2)
    posts = World().posts(0, 2000)
    small = PostSample.of(posts)
    known = {
        (round(lon, 5), round(lat, 5)): set(small.words.take(pa.array(small.terms[begin:end])).to_pylist())
        for lon, lat, begin, end in zip(small.lon, small.lat, small.start, small.start[1:], strict=False)
    }
    queries = sstd(small, 500, words=(1, 3))
    sizes = set()
    for lon, lat, words in zip(*middle_of(queries), words_of(queries), strict=True):
        assert len(set(words)) == len(words)
        assert set(words) <= known.get((round(lon, 5), round(lat, 5)), set(words))
        sizes.add(len(words))
    assert sizes == {1, 2, 3}
    assert {len(words) for words in words_of(sstd(small, 500))} == {1}


def test_a_box_may_cross_the_antimeridian_but_not_the_poles() -> None:
    text = pa.array([f"w{i} w{i + 1} w{i + 2}" for i in range(400)])
    edge = pa.table({"lon": np.full(400, 179.9), "lat": np.full(400, 89.9), "text": text})
    first = sstd(edge, 1).to_pylist()[0]
    assert first["min_lon"] > 0 > first["max_lon"]
    assert first["max_lat"] == 90.0


def test_the_kernel_set_is_as_the_speed_target_says() -> None:
    queries, posts = kernel_queries(COUNT), kernel_posts(COUNT)
    width, height = sides(queries)
    assert np.allclose(width, height) and width.min() >= 0.1 - 1e-9 and width.max() <= 1.0 + 1e-9
    flat = pc.list_flatten(posts["ranks"]).to_numpy().reshape(-1, 8)
    assert all(len(set(row)) == 8 for row in flat[:2000].tolist())
    assert flat.min() == 1 and 40_000 < flat.max() < 50_000
    singles = np.array([row[0] for row in queries["ranks"].to_pylist() if len(row) == 1])
    assert (singles <= 223).mean() == pytest.approx(0.5, abs=0.02)  # 50000^0.5
    assert {len(row) for row in queries["ranks"].to_pylist()} == {1, 2, 3}
    for table in (queries, posts):
        row = table.slice(7, 1).to_pylist()[0]
        assert row["text"] == " ".join(kernel_word(rank) for rank in row["ranks"])
    assert kernel_posts(50, first=39_000).equals(posts.slice(39_000, 50))
    assert kernel_queries(50, first=39_000).equals(queries.slice(39_000, 50))


def test_lives_of_queries_are_normal_about_mu() -> None:
    life = churn(10_000, 50_000) - np.arange(50_000)
    assert life.mean() == pytest.approx(10_000, rel=0.01)
    assert life.std() == pytest.approx(2_000, rel=0.02)
    assert churn(1, 1000).min() >= 1


def test_updates_keep_about_mu_queries_and_delete_only_what_stands() -> None:
    kind, query = updates(churn(500, 5_000))
    standing: set[int] = set()
    sizes = []
    for one, number in zip(kind.tolist(), query.tolist(), strict=True):
        if one == INSERT:
            standing.add(number)
        else:
            assert one == DELETE
            standing.remove(number)
        sizes.append(len(standing))
    assert [number for one, number in zip(kind, query, strict=True) if one == INSERT] == list(range(5_000))
    assert np.mean(sizes[3000:]) == pytest.approx(500, rel=0.05)


@pytest.mark.parametrize(
    "make",
    [
        lambda: churn(0, 10),
        lambda: sstd(World(), 10, words=(2, 5)),
        lambda: sstd(World(), 10, area_share=0),
        lambda: q1(pa.table({"lon": [1.0], "lat": [2.0], "text": ["only three words"]}), 10),
        lambda: kernel_queries(-1),
    ],
)
def test_sets_that_cannot_be_made_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(BadInput):
        make()
