"""The figures of distributions, at sizes where everything can be counted by hand."""

from collections import namedtuple
from itertools import product
from typing import Any

import numpy as np
import pytest

from nearcast.kinds.relevance.vectors import Profiles, Vectors
from nearcast_papers.benchmarks.topk_distribution import (
    COLUMNS,
    distribution_figures,
    line,
    matched_by,
    plot_data,
    shared_words,
    uneven,
    variants,
)
from tests.kinds.relevance.distribution_worlds import cast_of

Found = namedtuple("Found", ["rows", "posts", "looked"])


class AnyCommonWord:
    """A matcher that finds every pair with a common word."""

    def __init__(self, profiles: Profiles, theta: np.ndarray) -> None:
        self.words = lists(profiles.words, profiles.offsets)

    def match(self, posts: Vectors) -> Found:
        texts = lists(posts.terms, posts.offsets)
        pairs = [(i, j) for i, j in product(range(len(self.words)), range(len(texts))) if self.words[i] & texts[j]]
        rows, found = np.array(pairs, np.int64).reshape(-1, 2).T
        return Found(rows, found, len(self.words) * len(texts))


def lists(values: np.ndarray, offsets: np.ndarray) -> list[set[int]]:
    return [set(values[a:b].tolist()) for a, b in zip(offsets[:-1], offsets[1:], strict=True)]  # noqa: RUF007


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    cast = cast_of("crowded")
    told: list[str] = []
    found = distribution_figures(
        cast.profiles, cast.theta, cast.posts, cast.posts, cast.frequency, workers=(2, 8), matcher=AnyCommonWord,
        progress=told.append,
    )  # fmt: skip
    assert len(told) == len(found) + 1
    return found


def test_every_distribution_is_measured_for_every_number_of_workers_and_hybrids_for_the_largest() -> None:
    plain = ["hashing", "location", "keyword", "prefix", "prefix"]
    every = list(variants((8, 4)))
    assert [(name, crew) for name, crew, _ in every[:10]] == [(name, crew) for crew in (4, 8) for name in plain]
    hybrids = [(name, crew, options["parts"]) for name, crew, options in every[10:]]
    assert hybrids == [(name, 8, parts) for name in ("spatial-first", "keyword-first") for parts in (1, 2, 4, 8)]


def test_a_pair_is_found_once_by_all_alike_and_again_where_there_are_copies(rows: list[dict[str, Any]]) -> None:
    cast = cast_of("crowded")
    common = float((~np.isnan(cast.scores)).sum()) / len(cast.posts)
    assert all(list(row) == list(COLUMNS) for row in rows) and len(rows) == 2 * 5 + 2 * 4
    for row in rows:
        one_copy = row["distribution"] in ("hashing", "location") or row["parts"] in ("8x1", "1x8")
        if row["distribution"] in ("hashing", "location", "keyword"):  # the others only promise what scores theta
            assert row["found"] == pytest.approx(common, rel=1e-3)
        assert row["found"] <= common * 1.001 and row["shared"] >= row["found"] * 0.999
        if one_copy and row["replication"] == 1.0:
            assert row["found_again"] == 0.0
        assert row["shared_busiest"] <= row["shared"] and row["us_busiest"] <= row["us_a_post"]
    assert any(row["found_again"] > 0 for row in rows)


def test_a_hybrid_with_one_part_at_a_level_is_the_other_levels_distribution(rows: list[dict[str, Any]]) -> None:
    by_name = {(row["distribution"], row["workers"], row["parts"]): row for row in rows}
    for plain, hybrids in {
        "location": [("spatial-first", "8x1"), ("keyword-first", "1x8")],
        "prefix": [("spatial-first", "1x8"), ("keyword-first", "8x1")],
    }.items():
        for name, parts in hybrids:
            for column in ("replication", "messages", "shared", "shared_busiest", "found", "found_again"):
                assert by_name[name, 8, parts][column] == by_name[plain, 8, None][column]


def test_shared_words_are_counted_where_the_two_meet() -> None:
    cast = cast_of("crowded")
    rng = np.random.default_rng(1)
    holders, targets = rng.random((len(cast.profiles), 3)) < 0.5, rng.random((len(cast.posts), 3)) < 0.5
    asked, shown = lists(cast.profiles.words, cast.profiles.offsets), lists(cast.posts.terms, cast.posts.offsets)
    for worker, found in enumerate(shared_words(cast.profiles, cast.posts, holders, targets)):
        mine, theirs = np.flatnonzero(holders[:, worker]), np.flatnonzero(targets[:, worker])
        assert found == sum(len(asked[i] & shown[j]) for i, j in product(mine, theirs)) > 0


def test_a_worker_that_has_nothing_to_do_takes_no_time() -> None:
    cast = cast_of("crowded")
    holders, targets = np.zeros((60, 2), bool), np.ones((60, 2), bool)
    holders[:, 1] = True
    found = matched_by(AnyCommonWord, cast.profiles, cast.theta, cast.posts, holders, targets)
    assert found["us_a_post"] == found["us_busiest"] and found["looked"] == 3600 and found["found_again"] == 0
    none = matched_by(AnyCommonWord, cast.profiles, cast.theta, cast.posts, holders & False, targets)
    assert set(none.values()) == {0}


def test_without_a_matcher_its_columns_are_empty_and_so_are_their_plots() -> None:
    cast = cast_of("many words")
    found = distribution_figures(cast.profiles, cast.theta, cast.posts, cast.posts, cast.frequency, workers=(4,))
    assert all(row["us_a_post"] is None and row["looked"] is None and row["shared"] > 0 for row in found)
    panels = plot_data(found)
    assert list(panels) == [f"{title}{more}" for title in ("workers that hold a subscriber", "messages a post",
                            "common words a post, busiest worker") for more in ("", ", hybrids")]  # fmt: skip
    assert panels["messages a post"]["location"] == [(4, found[1]["messages"])]
    assert [at for at, _ in panels["messages a post, hybrids"]["keyword-first"]] == ["1x4", "2x2", "4x1"]


def test_lines_of_the_table_are_aligned(rows: list[dict[str, Any]]) -> None:
    lines = [line(list(COLUMNS)), *(line(list(row.values())) for row in rows)]
    assert len({len(each) for each in lines}) == 1 and " - " in lines[1]


def test_the_greatest_to_the_mean() -> None:
    assert uneven(np.array([1.0, 3.0])) == 1.5 and uneven(np.zeros(4)) == 1.0
