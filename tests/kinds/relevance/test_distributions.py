"""What every distribution of subscribers of relevance is held to: no pair of a subscriber and a post is lost."""

from itertools import pairwise
from math import inf
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.errors import BadInput
from nearcast.kinds.relevance.distributions.protocol import lacking, messages, replication
from nearcast.kinds.relevance.distributions.registry import AUTO, KINDS, auto, check_distribution, load, save
from nearcast.kinds.relevance.vectors import Profiles
from tests.kinds.relevance.distribution_worlds import WORLDS, Cast, cast_of, crowd, hold

EVERY = list(KINDS)
BY_THETA = ("prefix", "spatial-first", "keyword-first")
CREWS = (1, 2, 5, 32)


# -- the guarantee -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", list(WORLDS))
@pytest.mark.parametrize("name", EVERY)
def test_no_pair_is_lost(name: str, world: str) -> None:
    cast = cast_of(world)
    for workers in CREWS:
        pairs = hold(cast.build(name, workers), cast)
        assert pairs > 20 or world in ("one point", "no posts", "no subscribers", "nothing")


@given(st.integers(0, 2**32), st.sampled_from(EVERY), st.integers(1, 40), st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_no_pair_of_a_random_world_is_lost(seed: int, name: str, workers: int, words: int) -> None:
    cast = Cast(crowd(Random(seed), words, subscribers=25, posts=25), seed)
    hold(cast.build(name, workers), cast)


@pytest.mark.parametrize("name", EVERY)
def test_subscribers_and_posts_that_no_sample_has_shown_meet_too(name: str) -> None:
    known, later = cast_of("fewer words than workers"), cast_of("many words")
    for sample in (known, cast_of("nothing")):
        for workers in CREWS:
            assert hold(sample.build(name, workers), later) > 20


@pytest.mark.parametrize("name", ["spatial-first", "keyword-first"])
@pytest.mark.parametrize("parts", [1, 2, 3, 4, 8, 12, 99])
def test_no_pair_is_lost_however_a_hybrid_is_cut(name: str, parts: int) -> None:
    cast = cast_of("crowded")
    assert hold(cast.build(name, 12, parts=parts), cast) > 20


def test_the_papers_bound_of_the_prefix_loses_nothing_and_is_never_shorter() -> None:
    cast = cast_of("crowded")
    loose, tight = cast.build("prefix", 32, by_sum=True), cast.build("prefix", 32)
    assert hold(loose, cast) == hold(tight, cast)
    paper = loose.holders(cast.profiles, cast.theta)
    ours = type(tight)(32, loose.cut).holders(cast.profiles, cast.theta)  # type: ignore[attr-defined, call-arg]
    assert not (ours & ~paper).any() and ours.sum() < paper.sum()


# -- rows, ids, theta --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_some_rows_alone_are_held_as_they_are_among_all(name: str) -> None:
    cast = cast_of("crowded")
    distribution = cast.build(name, 5)
    rows = np.array([3, 40, 7, 7])
    whole = distribution.holders(cast.profiles, cast.theta)
    assert np.array_equal(distribution.holders(cast.profiles.take(rows), cast.theta[rows]), whole[rows])
    assert np.array_equal(distribution.targets(cast.posts.take(rows)), distribution.targets(cast.posts)[rows])


@pytest.mark.parametrize("name", EVERY)
def test_ids_spread_subscribers_that_ask_for_the_same(name: str) -> None:
    cast = cast_of("subscribers alike")
    distribution = cast.build(name, 4)
    assert hold(distribution, cast, np.arange(30) * 4) > 20
    half = np.full(30, 0.5)
    used = distribution.holders(cast.profiles, half, np.arange(30) * 4).any(axis=0).sum()
    assert used == 4 or name in ("keyword", *BY_THETA)
    one = distribution.holders(cast.profiles, half)
    assert (one == one[0]).all()


@pytest.mark.parametrize("name", EVERY)
def test_a_lower_theta_takes_no_holder_away(name: str) -> None:
    cast = cast_of("many words")
    distribution = cast.build(name, 8)
    held = [distribution.holders(cast.profiles, np.full(60, theta)) for theta in (inf, 1.2, 0.9, 0.6, 0.3, 0.0)]
    for higher, lower in pairwise(held):
        assert not (higher & ~lower).any()
    assert distribution.follows_theta == bool((held[0] != held[-1]).any()) == (name in BY_THETA)


def test_only_those_whose_prefix_must_cover_more_words_are_reallocated() -> None:
    cast = cast_of("many words")
    distribution = cast.build("prefix", 8)
    held = distribution.holders(cast.profiles, np.full(60, 0.8))
    assert not lacking(distribution, held, cast.profiles, np.full(60, 0.9)).any()
    fell = np.where(np.arange(60) % 2, 0.8, 0.0)
    lack = lacking(distribution, held, cast.profiles, fell)
    grown = distribution.holders(cast.profiles, fell).sum(axis=1) > held.sum(axis=1)
    assert np.array_equal(lack, grown) and 0 < lack.sum() < 30 and not lack[1::2].any()


@pytest.mark.parametrize("name", BY_THETA)
def test_with_theta_0_or_alpha_1_all_words_count(name: str) -> None:
    cast = cast_of("crowded")
    distribution = cast.build(name, 7)
    everywhere = distribution.holders(cast.profiles, np.zeros(60))
    near = cast.profiles.alpha == 1.0
    some = distribution.holders(cast.profiles, np.full(60, 1.0))
    assert near.any() and np.array_equal(some[near], everywhere[near]) and not np.array_equal(some, everywhere)


def test_a_subscriber_without_words_has_a_holder_all_the_same() -> None:
    cast = cast_of("crowded")
    lon, one = np.array([3.0]), np.ones(1)
    bare = Profiles(lon, lon, one, one, np.ones(1, np.int64), np.empty(0, np.uint64), np.zeros(2, np.int64), one[:0])
    for name in EVERY:
        assert cast.build(name, 5).holders(bare, one).sum() >= 1


# -- figures -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", ["crowded", "many words", "one word", "fewer words than workers"])
def test_replication_and_messages_are_within_the_bounds_of_table_2(world: str) -> None:
    cast = cast_of(world)
    words, terms = np.diff(cast.profiles.offsets), np.diff(cast.posts.offsets)
    for workers in CREWS:
        held = {name: cast.build(name, workers).holders(cast.profiles, cast.theta) for name in EVERY}
        sent = {name: cast.build(name, workers).targets(cast.posts) for name in EVERY}
        assert replication(held["hashing"]) == replication(held["location"]) == 1.0
        for name in ("keyword", *BY_THETA):
            assert (held[name].sum(axis=1) <= words).all()
        for name in ("keyword", "prefix"):
            assert (sent[name].sum(axis=1) <= np.minimum(terms, workers)).all()
        assert messages(sent["hashing"]) == messages(sent["location"]) == pytest.approx(workers * (terms > 0).mean())
        assert messages(sent["spatial-first"]) <= messages(sent["hashing"])
        keyword = cast.build("keyword", workers)
        by_prefix = KINDS["prefix"](workers, keyword.cut).holders(cast.profiles, cast.theta)  # type: ignore[attr-defined]
        assert not (by_prefix & ~held["keyword"]).any()


def test_prefix_has_fewer_copies_than_keyword_and_more_than_none() -> None:
    cast = cast_of("large")
    theta = np.nanquantile(np.where(np.isnan(cast.scores), 0.0, cast.scores), 0.99, axis=1)
    ratios = [replication(cast.build(name, 16).holders(cast.profiles, theta)) for name in ("keyword", "prefix")]
    by_word, by_prefix = ratios
    assert 1.0 < by_prefix < by_word < 5.0


def test_figures_of_nothing_are_0() -> None:
    assert replication(np.zeros((0, 3), bool)) == messages(np.zeros((0, 3), bool)) == 0.0


@pytest.mark.parametrize("name", EVERY)
def test_every_worker_has_something_to_do(name: str) -> None:
    cast = cast_of("large")
    for workers in (2, 5, 16):
        held = cast.build(name, workers).holders(cast.profiles, cast.theta).sum(axis=0)
        assert (held > 0).all() and held.max() < 200 * 5 / workers**0.5


# -- choosing and storing ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "workers", "name"),
    [(9.0, 32, "prefix"), (9.0, 10, "prefix"), (9.0, 9, "location"), (37.0, 32, "location"), (9.0, 2, "location")],
)
def test_auto_is_prefix_where_posts_have_fewer_words_than_there_are_workers(
    words: float, workers: int, name: str
) -> None:
    assert auto(words, workers) == name


def test_auto_counts_the_words_of_the_sample() -> None:
    cast = cast_of("crowded")
    assert [cast.build(AUTO, workers).name for workers in (2, 32)] == ["location", "prefix"]


def test_an_unknown_name_is_refused() -> None:
    check_distribution("auto")
    with pytest.raises(BadInput, match=r"--topk-distribution 'best' is unknown: give one of hashing, .*auto"):
        check_distribution("best")


@pytest.mark.parametrize("world", ["crowded", "nothing"])
@pytest.mark.parametrize("name", EVERY)
def test_what_is_loaded_is_what_was_saved(tmp_path: Path, name: str, world: str) -> None:
    cast, later = cast_of(world), cast_of("many words")
    for workers in (1, 5):
        distribution = cast.build(name, workers)
        path = tmp_path / f"{workers}.arrow"
        assert save(distribution, path) == path.stat().st_size
        loaded = load(path)
        assert (loaded.name, loaded.workers) == (name, workers)
        for seen in (cast, later):
            assert np.array_equal(
                loaded.holders(seen.profiles, seen.theta), distribution.holders(seen.profiles, seen.theta)
            )
            assert np.array_equal(loaded.targets(seen.posts), distribution.targets(seen.posts))
