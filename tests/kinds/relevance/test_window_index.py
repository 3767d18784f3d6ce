"""The window of posts gives what going through all of its posts gives."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.arrays import frozen
from nearcast.kinds.relevance.kernels.score import nearness
from nearcast.kinds.relevance.kernels.window_bounds import bound_blocks, least_near
from nearcast.kinds.relevance.kernels.window_build import kind_of, most_weight, sketched, unit_vector
from nearcast.kinds.relevance.vectors import Idf, Profiles, Vectors
from nearcast.kinds.relevance.window_index import Found, WindowPosts
from tests.oracles.relevance import Post, Statistics, Taste, score

HALF_THE_WORLD = 20_015.2
NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class Ledger:
    base: int
    ts: np.ndarray
    order: np.ndarray

    @classmethod
    def of(cls, posts: list[Post], base: int) -> "Ledger":
        ranked = sorted(range(len(posts)), key=lambda i: (posts[i].ts, posts[i].id))
        order = np.empty(len(posts), np.int64)
        order[ranked] = np.arange(len(posts))
        return cls(base, frozen(np.array([post.ts for post in posts], np.int64)), frozen(order))


def vectors(posts: list[Post], statistics: Statistics) -> Vectors:
    offsets = np.cumsum([0, *(len(post.terms) for post in posts)])
    terms = np.array([term for post in posts for term in post.terms], np.uint64)
    lon, lat = (np.array([getattr(post, name) for post in posts], np.float64) for name in ("lon", "lat"))
    return Vectors.of(lon, lat, terms, offsets, idf_of(statistics))


def idf_of(statistics: Statistics) -> Idf:
    terms, counts = zip(*sorted(statistics.counts), strict=True) if statistics.counts else ((), ())
    return Idf(1, statistics.posts, frozen(np.array(terms, np.uint64)), frozen(np.array(counts, np.int64)))


def profiles(of: list[Taste], statistics: Statistics) -> Profiles:
    offsets = np.cumsum([0, *(len(each.words) for each in of)])
    words = np.array([word for each in of for word in sorted(each.words)], np.uint64)
    lon, lat, alpha, reach = (np.array([getattr(e, name) for e in of]) for name in ("lon", "lat", "alpha", "reach"))
    k = np.array([each.k for each in of], np.int64)
    return Profiles(lon, lat, alpha, reach, k, *idf_of(statistics).weigh(words, offsets))


def brute(
    posts: list[Post], base: int, profile: Taste, n: int, bound: int, hidden: set[int], statistics: Statistics
) -> list[tuple[int, float]]:
    """(number, score) of the n best inside, and of all that tie with the last, best first."""
    order = Ledger.of(posts, base).order
    scored = [(base + i, score(profile, post, statistics)) for i, post in enumerate(posts) if order[i] >= bound]
    found = [(number, value) for number, value in scored if value is not None and number not in hidden]
    found.sort(key=lambda each: (-each[1], -posts[each[0] - base].ts, posts[each[0] - base].id))
    return [each for each in found if len(found) <= n or (n > 0 and each[1] >= found[n - 1][1])] if n else []


def answers(found: Found) -> list[list[tuple[int, float]]]:
    return [
        list(zip(found.numbers[a:b].tolist(), found.scores[a:b].tolist(), strict=True))
        for a, b in pairwise(found.starts)
    ]


PLACES = [(0.0, 0.0), (180.0, 10.0), (-180.0, 10.0), (179.999, 10.0), (-60.0, 90.0), (30.0, -90.0), (0.001, 0.0)]
places = st.one_of(
    st.sampled_from(PLACES),
    st.tuples(st.floats(-180, 180, allow_subnormal=False), st.floats(-90, 90, allow_subnormal=False)),
)
WORDS = np.array([3, 2**63 + 5, 2**64 - 1, 77, 1_000_003, 2**40], np.uint64)
REACHES = [1.0, 12.5, 3_000.0, HALF_THE_WORLD]
reaches = st.sampled_from(REACHES)


def a_window(rng: np.random.Generator) -> tuple[list[list[Post]], list[Taste], Statistics]:
    """Batches of posts whose ids and times need not ascend, subscribers, and term statistics."""

    def place() -> tuple[float, float]:
        if rng.random() < 0.6:
            return PLACES[rng.integers(len(PLACES))]
        return float(rng.uniform(-180, 180)), float(rng.uniform(-90, 90))

    sizes = rng.integers(0, 12, rng.integers(1, 9)).tolist()
    ids = rng.permutation(sum(sizes)).tolist()
    posts = [
        Post(i, int(rng.integers(7)), *place(), tuple(rng.choice(WORDS, rng.integers(0, 7)).tolist())) for i in ids
    ]
    ends = np.cumsum([0, *sizes])
    batches = [posts[a:b] for a, b in pairwise(ends)]
    people = []
    for _ in range(rng.integers(1, 7)):
        words = frozenset(rng.choice(np.array([*WORDS, 4], np.uint64), rng.integers(1, 7)).tolist())
        alpha = float(rng.choice([0.0, 1.0, rng.random(), rng.random()]))
        people.append(Taste(*place(), words, alpha, float(rng.choice(REACHES)), int(rng.integers(1, 30))))
    counted = sorted(set(rng.choice(WORDS, rng.integers(0, 7)).tolist()))
    return batches, people, Statistics(50, tuple((word, int(rng.integers(50))) for word in counted))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32))
def test_the_best_are_those_of_going_through_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    batches, people, statistics = a_window(rng)
    base = int(rng.integers(6))
    window, posts = WindowPosts(), [post for batch in batches for post in batch]
    at = base
    for batch in batches:
        window.add(vectors(batch, statistics), at)
        at += len(batch)
    rows, n = rng.permutation(len(people)), rng.integers(0, 40, len(people))
    bounds = rng.integers(0, len(posts) + 1, len(people))
    gone = np.unique(rng.integers(base, base + len(posts) + 1, rng.integers(5)))
    found = window.best(profiles(people, statistics), rows, n, bounds, Ledger.of(posts, base), gone)
    expected = [
        brute(posts, base, people[row], int(count), int(bound), set(gone.tolist()), statistics)
        for row, count, bound in zip(rows, n, bounds, strict=True)
    ]
    assert answers(found) == expected


def many(count: int, seed: int, words: int = 12) -> list[Post]:
    """Posts in a few towns, of few words, so that lists are long and scores tie."""
    rng = np.random.default_rng(seed)
    towns = [*PLACES, *zip(rng.uniform(-180, 180, 6).tolist(), rng.uniform(-80, 80, 6).tolist(), strict=True)]
    out = []
    for i in range(count):
        lon, lat = towns[rng.integers(len(towns))]
        if rng.random() < 0.7:
            lon, lat = (
                float(np.clip(lon + rng.normal(0, 0.1), -180, 180)),
                float(np.clip(lat + rng.normal(0, 0.1), -90, 90)),
            )
        text = tuple(int(each) for each in (rng.zipf(1.4, rng.integers(1, 7)) % words + 1) * 2**58)
        out.append(Post(count - i, int(rng.integers(count // 3 + 1)), lon, lat, text))
    return out


def some_people(posts: list[Post], count: int, seed: int) -> list[Taste]:
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        post = posts[rng.integers(len(posts))]
        words = frozenset(post.terms[: rng.integers(1, 6)])
        alpha = float(rng.choice([0.0, 1.0, rng.random(), rng.random()]))
        reach = float(rng.choice([1.0, 50.0, 5_000.0, HALF_THE_WORLD]))
        out.append(Taste(post.lon, post.lat, words, alpha, reach, 20))
    return out


@pytest.mark.parametrize("seed", range(3))
def test_long_lists_short_windows_and_ties_give_the_same_as_going_through_all(seed: int) -> None:
    posts = many(1_500, seed)
    statistics = Statistics(1_000, tuple((term * 2**58, 1_000 // term) for term in range(1, 10)))
    people = some_people(posts, 40, seed)
    window = WindowPosts()
    for first in range(0, 1_500, 300):
        window.add(vectors(posts[first : first + 300], statistics), 7 + first)
    rng = np.random.default_rng(seed)
    rows, n = np.arange(40), rng.choice([1, 5, 55, 400, 5_000], 40)
    bounds = rng.choice([0, 0, 700, 1_450], 40)
    hidden = np.sort(rng.choice(1_500, 50, replace=False)) + 7
    found = window.best(profiles(people, statistics), rows, n, bounds, Ledger.of(posts, 7), hidden)
    for row, mine in enumerate(answers(found)):
        expected = brute(posts, 7, people[row], int(n[row]), int(bounds[row]), set(hidden.tolist()), statistics)
        assert mine == expected


def test_all_that_tie_with_the_last_are_found() -> None:
    posts = [Post(i, i % 5, 1.0, 2.0, (9,)) for i in range(500)]
    window = WindowPosts()
    window.add(vectors(posts, Statistics()), 0)
    profile = profiles([Taste(1.0, 2.0, frozenset({9}), 0.5, 10.0, 20)], Statistics())
    found = window.best(profile, np.array([0]), np.array([1]), np.array([0]), Ledger.of(posts, 0), NONE)
    assert found.numbers.tolist() == sorted(range(500), key=lambda i: (-(i % 5), i))


def test_conditions_are_asked_until_enough_posts_meet_them() -> None:
    posts = many(600, 5)
    statistics = Statistics(600, ())
    people = some_people(posts, 10, 5)
    window = WindowPosts()
    window.add(vectors(posts, statistics), 0)
    asked: list[set[int]] = []

    def seventh(rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        asked.append(set(rows.tolist()))
        return np.asarray(numbers % 7 == rows % 7)

    n = np.full(10, 12)
    n[3] = 0
    found = window.best(
        profiles(people, statistics), np.arange(10), n, np.zeros(10, np.int64), Ledger.of(posts, 0), NONE, seventh
    )
    for row, mine in enumerate(answers(found)):
        hidden = {number for number in range(600) if number % 7 != row % 7}
        assert mine == brute(posts, 0, people[row], int(n[row]), 0, hidden, statistics)
    assert len(asked) > 1 and all(later <= earlier for earlier, later in pairwise(asked))


def test_parts_are_few_and_hold_the_posts_that_were_not_dropped() -> None:
    posts = many(2_000, 1)
    window, statistics = WindowPosts(), Statistics()
    for first in range(0, 2_000, 20):
        window.add(vectors(posts[first : first + 20], statistics), first)
        window.drop(first - 500)
        assert len(window.parts) <= 12
        assert min(first + 20, 520) <= len(window) <= 1_200
    people = some_people(posts, 10, 2)
    since = 1_480
    ledger = Ledger.of(posts[since:], since)
    found = window.best(
        profiles(people, statistics), np.arange(10), np.full(10, 30), np.zeros(10, np.int64), ledger, NONE
    )
    for row, mine in enumerate(answers(found)):
        assert mine == brute(posts[since:], since, people[row], 30, 0, set(), statistics)


def test_numbers_that_the_ledger_has_not_are_in_no_window() -> None:
    posts = [Post(i, i, 0.0, 0.0, (1,)) for i in range(10)]
    window = WindowPosts()
    window.add(vectors(posts, Statistics()), 0)
    profile = profiles([Taste(0.0, 0.0, frozenset({1}), 0.5, 10.0, 20)], Statistics())
    order = np.array([-1, 0, 1, 2], np.int64)  # of 4 … 7
    found = window.best(profile, np.array([0]), np.array([20]), np.array([0]), Ledger(4, np.arange(4), order), NONE)
    assert found.numbers.tolist() == [7, 6, 5]


def test_posts_come_in_order_of_their_numbers() -> None:
    window = WindowPosts()
    window.add(vectors([Post(1, 1, 0.0, 0.0, (1,))], Statistics()), 5)
    with pytest.raises(ValueError, match="from number 5 on, after those below 6"):
        window.add(vectors([Post(2, 1, 0.0, 0.0, (1,))], Statistics()), 5)


@pytest.mark.parametrize("rows", [NONE, np.array([0])])
def test_an_empty_window_has_nothing_for_anyone(rows: np.ndarray) -> None:
    profile = profiles([Taste(0.0, 0.0, frozenset({1}), 0.5, 10.0, 20)], Statistics())
    counts = np.full(len(rows), 3)
    found = WindowPosts().best(profile, rows, counts, np.zeros(len(rows), np.int64), Ledger.of([], 0), NONE)
    assert found.starts.tolist() == [0] * (len(rows) + 1) and not len(found.numbers)


@settings(max_examples=200, deadline=None)
@given(places, places, reaches, st.integers(0, 2**32))
def test_the_bounds_of_a_block_hold_for_its_posts(
    one: tuple[float, float], two: tuple[float, float], reach: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    post, asked = rng.random(4) ** 3 + 1e-9, rng.random(4) ** 3
    post, asked = post / np.linalg.norm(post), asked / np.linalg.norm(asked)
    light, heavy = (
        post[0] * rng.choice([1.0, rng.random()]),
        post[0] + (1.0 - post[0]) * rng.choice([0.0, rng.random()]),
    )
    centre = np.array(unit_vector(*two)) * (1.0 + rng.choice([0.0, 1e-3]) * rng.random())
    radius = np.linalg.norm(centre - unit_vector(*two)) + 1e-6
    block = np.array([*centre, radius, light * (1 - 1e-6), heavy * (1 + 1e-6)], np.float32).reshape(6, 1)
    alpha, upper = float(rng.choice([0.0, 1.0, rng.random()])), np.empty(1)
    others = float(rng.choice([9.0, float(asked[1:] @ post[1:])]))
    rest = float(np.linalg.norm(asked[1:]))
    x, y, z = unit_vector(*one)
    most = bound_blocks(0, 1, frozen(block), x, y, z, alpha, asked[0], rest, others, reach, upper)
    score = alpha * nearness(*one, *two, reach) + (1.0 - alpha) * (post @ asked)
    assert score <= upper[0] + 1e-15 and most >= heavy
    assert upper[0] <= alpha + (1.0 - alpha) * 1.00001 + 1e-9


@settings(max_examples=200, deadline=None)
@given(places, places, reaches)
def test_a_chord_bounds_nearness_from_below(one: tuple[float, float], two: tuple[float, float], reach: float) -> None:
    chord = float(np.linalg.norm(np.subtract(unit_vector(*one), unit_vector(*two))))
    true = nearness(*one, *two, reach)
    assert 0.0 <= least_near(chord, reach) <= true
    assert least_near(chord, reach) >= true - (0.7 * chord**3 + 2e-6) * 6371.1 / reach


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 2**64 - 1), st.floats(1e-9, 1.0)), max_size=30))
def test_a_sketch_says_no_less_than_any_word_weighs(words: list[tuple[int, float]]) -> None:
    sketch = np.uint64(0)
    for term, weight in words:
        sketch = np.uint64(sketched(sketch, np.uint64(term), weight))
    heaviest = {int(kind_of(np.uint64(term))): 0.0 for term in range(1, 200)}
    for term, weight in words:
        kind = int(kind_of(np.uint64(term)))
        heaviest[kind] = max(heaviest[kind], weight)
    assert sorted(heaviest) == list(range(0, 64, 4))
    for kind, weight in heaviest.items():
        most = most_weight(sketch, np.uint64(kind))
        assert weight <= most <= (1.0 if weight > 0.7 else weight + 0.0501 if weight else 0.0)
