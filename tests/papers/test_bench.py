"""The benchmarks at tiny sizes: the figures are there, and what they count follows from the seed alone."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nearcast.common.text.tokenizer import Tokenizer
from nearcast.sources.world import World
from nearcast.storage.directory import StateDirectory
from nearcast_papers.benchmarks import bench_pipeline as pipeline
from nearcast_papers.benchmarks import bench_pubsub as pubsub
from nearcast_papers.benchmarks.figures import figure
from nearcast_papers.benchmarks.machine import machine
from nearcast_papers.benchmarks.pipeline_workload import calibrated, of_one_word, slices
from nearcast_papers.benchmarks.pubsub_churn import Coming
from nearcast_papers.benchmarks.pubsub_kernel import measure_kernel
from nearcast_papers.benchmarks.streaming import Commit, Watch, latencies, rate_of
from nearcast_papers.query_sets import DELETE, INSERT, PostSample


def quiet(text: str) -> None:
    """Progress that nobody watches."""


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (figure(2.0), {"value": 2.0}),
        (figure([3.0, 1.0, 2.0]), {"median": 2.0, "repeats": [3.0, 1.0, 2.0]}),
        (figure(0.9, at_most=1.0), {"value": 0.9, "target": "at most 1.0", "met": True}),
        (figure([240_000.4], at_least=250_000), {
            "median": 240_000.0, "repeats": [240_000.0], "target": "at least 250,000", "met": False,
        }),
    ],
)  # fmt: skip
def test_a_figure_stands_beside_its_target(made: dict[str, Any], expected: dict[str, Any]) -> None:
    assert made == expected


def test_the_machine_is_described() -> None:
    facts = machine()
    assert facts["cores"] >= 1 and facts["memory_gb"] > 0 and facts["cpu"]
    assert all(facts[name] for name in ("python", "numpy", "numba", "pyarrow", "pyspark"))


def counts(figures: Any) -> Any:
    """What must be the same on every machine: the whole numbers."""
    if isinstance(figures, dict):
        kept = {name: counts(value) for name, value in figures.items()}
        return {name: value for name, value in kept.items() if value not in (None, {})}
    return figures if isinstance(figures, int) and not isinstance(figures, bool) else None


@pytest.mark.slow
def test_the_kernel_finds_the_same_with_both_indexes_and_again_from_the_same_seed() -> None:
    one, two = (measure_kernel(quiet, size=4000, posts=2000, repeats=2, seed=3) for _ in range(2))
    assert one["matches"]["pyramid"] == one["matches"]["gi2"] > 0
    assert counts(one) == counts(two)
    assert len(one["pyramid_us_a_post"]["repeats"]) == 2
    assert one["unmerged_to_pyramid_ratio"]["target"] == "at most 1.3"
    assert one["candidates_a_post"]["pyramid"] >= one["matches"]["pyramid"] / 2000


def test_about_mu_queries_stand_and_only_those_that_stand_are_deleted() -> None:
    mu = 5000
    coming = Coming.of(mu, 2000, seed=1)
    assert coming.standing == pytest.approx(mu, rel=0.05)
    standing = set(range(coming.standing))
    for kind, query in zip(coming.kinds, coming.queries, strict=True):
        if kind == INSERT:
            assert query not in standing
            standing.add(int(query))
        else:
            standing.remove(int(query))
    inserted = coming.queries[coming.kinds == INSERT]
    assert np.array_equal(inserted, coming.standing + np.arange(len(inserted)))
    assert (coming.kinds == DELETE).sum() == pytest.approx(1000, rel=0.15)


@pytest.mark.slow
def test_churn_is_the_same_again_from_the_same_seed(tmp_path: Path) -> None:
    options: dict[str, Any] = {"live": 3000, "step": 1000, "steps": 2, "parts": ("churn",), "or_share": 0.5}
    one, two = (pubsub.run(quiet, **options, workers=workers, folder=str(tmp_path)) for workers in (2, 1))
    json.dumps(one)
    assert one["parameters"]["seed"] == 1
    registering, churn = one["figures"]["registering"], one["figures"]["churn"]
    assert registering["subscriptions"] == Coming.of(3000, 400, seed=1).standing
    assert registering["subscriptions_per_s"]["value"] > 0 and registering["bytes_a_subscription"]["value"] > 0
    assert churn["tuples"] == 2400 and churn["tuples_per_s"]["value"] > 0
    assert churn["inserted"] + churn["deleted"] == 400
    assert churn["live_queries"] == registering["subscriptions"] + churn["inserted"] - churn["deleted"]
    assert churn["matches"] == two["figures"]["churn"]["matches"] > 0
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_sides_are_scaled_until_a_post_has_about_one_match() -> None:
    world = World(seed=2)
    sample = PostSample.of(world.posts(0, 20_000))
    scale, matches, queries = calibrated(sample, slices(world, 50_000), 2000, seed=2)
    assert 0.8 <= matches <= 1.2 and scale > 0
    assert len(queries) == 2000
    assert queries.equals(of_one_word(sample, 2000, 2, scale))


def test_every_subscription_has_one_word() -> None:
    queries = of_one_word(PostSample.of(World(seed=2).posts(0, 20_000)), 3000, 1, 0.1)
    _, offsets = Tokenizer().terms(queries["text"])
    assert np.array_equal(np.diff(offsets), np.ones(3000))
    assert len(pa.compute.unique(queries["id"])) == 3000


# commits   ops      100       200       300   posts
# wall      10       12        13        15    seconds
def watched(tmp_path: Path) -> Watch:
    watch = Watch(StateDirectory(tmp_path), quiet, "test")
    times = [(10.0, 0, 9.0), (12.0, 100, 11.0), (13.0, 200, 12.1), (15.0, 300, 13.05)]
    watch.commits = [Commit(at, 5, posts, logged, {"match": 0.5}) for at, posts, logged in times]
    return watch


def test_the_clock_starts_at_the_first_commit_of_posts(tmp_path: Path) -> None:
    measured = rate_of(watched(tmp_path))
    assert (measured["seconds"], measured["posts"]) == (3.0, 200)
    assert measured["batches"] == [100.0, 50.0]
    assert measured["stages"] == {"match": 1.0}


def test_a_posts_latency_runs_from_the_moment_it_was_due_to_its_commit(tmp_path: Path) -> None:
    waited = latencies(watched(tmp_path), rate=100.0, from_share=0.0)
    assert len(waited) == 200
    began = 10.0  # the earliest that fits: 11.0 - 100 / 100
    expected = [13.0 - (began + i / 100) if i < 200 else 15.0 - (began + i / 100) for i in range(100, 300)]
    assert waited == pytest.approx(expected)


@pytest.mark.spark
@pytest.mark.slow
def test_the_pipeline_and_both_joins_find_the_same_matches(tmp_path: Path) -> None:
    done = pipeline.run(
        quiet,
        posts=6000,
        subscriptions=1000,
        batch_posts=2000,
        joined=4000,
        seconds=3.0,
        profile=True,
        folder=str(tmp_path),
    )
    json.dumps(done)
    figures = done["figures"]
    assert figures["keep_none"]["matches"] == figures["keep_posts"]["matches"] > 0
    assert figures["keep_none"]["posts_measured"] == 4000
    assert 0 < figures["joins"]["matches"] < figures["keep_none"]["matches"]
    assert {"read", "route", "match", "store", "all"} <= set(figures["keep_posts"]["core_us_a_post"])
    assert figures["latency"]["posts"] > 0 and figures["latency"]["median_s"]["value"] > 0
    assert 0.5 < figures["keep_none"]["matches_a_post"] < 1.6
