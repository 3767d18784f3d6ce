"""Eq. 1-2 against work counted query by query."""

import numpy as np
import pytest

from nearcast.common.arrays import frozen
from nearcast.partitioning.cost_model import Prices, covering, workload, works
from nearcast.partitioning.qt_split import Planter
from nearcast.partitioning.query_statistics import Statistics
from nearcast.partitioning.router_sample import CKQ, CRQ, CTQ, SKQ, SRQ, STQ, RouterSample
from tests.partitioning.routers.twin import HOUR, conjunctions, make_sample, random_sample, words_of
from tests.partitioning.test_query_statistics import WORLD, touching

CELL = (1, 1, 0)  # level, x, y


def in_cell(sample: RouterSample) -> list[int]:
    """The posts in the south-eastern quarter of the world, which CELL is."""
    posts = sample.posts
    return [i for i in range(len(posts)) if posts.lon[i] >= 0 and posts.lat[i] < 0]


def checked(sample: RouterSample, kind: int, posts: int, keywords: set[int]) -> float:
    """The posts that a query of a type has to look at in CELL, on average over all of them."""
    total = 0
    for row in touching(sample, kind, *CELL):
        positive = [term for _, literals in conjunctions(sample.queries, row)[:1] for _, ts in literals for term in ts]
        if kind not in (SRQ, SKQ) or set(positive) <= keywords:
            total += posts
    return total / (sample.queries.type == kind).sum()


def one_word_queries(seed: int, types: tuple[int, ...], words: int = 1) -> RouterSample:
    rng = np.random.default_rng(seed)
    posts = [(float(lon), float(lat), rng.integers(1, 30, 3).tolist()) for lon, lat in rng.uniform(-89, 89, (120, 2))]
    queries = []
    for _ in range(300):
        x, y = rng.uniform(-120, 120), rng.uniform(-60, 60)
        box = (x, y, x + rng.uniform(0, 50), y + rng.uniform(0, 25))
        queries.append((int(rng.choice(types)), box, [rng.integers(1, 40, words).tolist()]))
    return make_sample(posts, queries, life=[20 * HOUR] * 300)


@pytest.mark.parametrize("seed", range(3))
def test_with_one_word_a_query_the_expected_work_of_a_search_is_the_work_counted(seed: int) -> None:
    sample = one_word_queries(seed, (SRQ, STQ))
    j = Statistics.of(sample, WORLD, depth=4)
    here = in_cell(sample)
    keywords = {word for row in here for word in words_of(sample.posts, row)}
    expected = works(j, *CELL, len(here), np.array(sorted(keywords), np.uint64))
    assert 0 < expected[SRQ] == pytest.approx(checked(sample, SRQ, len(here), keywords))
    assert expected[STQ] == pytest.approx(checked(sample, STQ, len(here), keywords))


def test_with_more_words_it_is_so_on_average() -> None:
    expected, counted = 0.0, 0.0
    for seed in range(12):
        sample = one_word_queries(seed, (SRQ,), words=2)
        j = Statistics.of(sample, WORLD, depth=4)
        here = in_cell(sample)
        keywords = {word for row in here[:5] for word in words_of(sample.posts, row)}
        expected += works(j, *CELL, len(here), np.array(sorted(keywords), np.uint64))[SRQ]
        counted += checked(sample, SRQ, len(here), keywords)
    assert expected == pytest.approx(counted, rel=0.15)


def test_a_standing_query_checks_the_posts_that_arrive_during_its_life() -> None:
    sample = one_word_queries(1, (CRQ, CTQ))
    j = Statistics.of(sample, WORLD, depth=4)
    here = in_cell(sample)
    for kind in (CRQ, CTQ):
        share = len(touching(sample, kind, *CELL)) / (sample.queries.type == kind).sum()
        arriving = len(here) * 20 / 119  # a post an hour, 120 of them; lives of 20 hours
        assert works(j, *CELL, len(here))[kind] == pytest.approx(share * arriving, rel=0.01)


def test_the_work_of_a_random_query_is_that_of_each_type_by_its_share() -> None:
    sample = random_sample(np.random.default_rng(2), 60, 200)
    j = Statistics.of(sample, WORLD, depth=4)
    each = works(j, *CELL, 10.0)
    shares = np.bincount(sample.queries.type, minlength=6) / 200
    assert workload(j, each) == pytest.approx(float(shares @ each)) and each[[SKQ, CKQ]].all()


@pytest.mark.parametrize("seed", range(3))
def test_the_price_of_a_post_gives_the_same_work(seed: int) -> None:
    sample = random_sample(np.random.default_rng(seed), 80, 120)
    j = Statistics.of(sample, WORLD, depth=4)
    planter = Planter.of(sample, j)
    here = in_cell(sample)
    keywords = sorted({word for row in here for word in words_of(sample.posts, row) if word})
    prices = Prices.of(j, *CELL)
    hits = prices.hits(frozen(np.array(here)), planter.words, planter.offsets)
    expected = workload(j, works(j, *CELL, len(here), np.array(keywords, np.uint64)))
    assert len(here) * prices.post(hits) == pytest.approx(expected)


def test_all_keywords_cover_everything_and_none_cover_only_queries_without_words() -> None:
    queries = [(SRQ, (0, -50, 50, -10), [[1, 2]]), (SRQ, (0, -50, 50, -10), []), (SRQ, (0, -50, 50, -10), [[3]])]
    j = Statistics.of(make_sample([(10.0, -20.0, [1])], queries), WORLD, depth=4)
    assert covering(j, SRQ, *CELL) == pytest.approx(1.0)
    assert covering(j, SRQ, *CELL, np.empty(0, np.uint64)) == pytest.approx(1 / 3)
    # H = 1/3 for {1}: a third has no word, a third one, a third two
    assert covering(j, SRQ, *CELL, np.array([1], np.uint64)) == pytest.approx((1 + 1 / 3 + 1 / 9) / 3)
