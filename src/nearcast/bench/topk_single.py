"""Skype on one core (seed 004 §8.1): finding the subscribers of posts, and keeping their buffers over a window."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nearcast.bench.figures import Progress, figure, rounded
from nearcast.bench.topk_data import TopkWorld, statistics, subscribers, vectors, workload
from nearcast.index import igpt
from nearcast.index.matchers import MATCHERS
from nearcast.index.matching import Matcher, Pairs
from nearcast.index.relevance import Tastes
from nearcast.index.skyband import Arrivals, Buffers, Refills, advance, refill
from nearcast.index.skyband_policy import CostBased, Kmax, PlainSkyband, Policy
from nearcast.index.window_posts import WindowPosts
from nearcast.model.errors import NearcastError

SLOW = {"igpt": 10, "ipt": 10, "ciq": 20}  # so many times fewer posts are enough
ONE_BY_ONE = 50_000  # rows that are searched for together
Build = Callable[[Tastes, np.ndarray], Matcher]


def dissemination(progress: Progress, count: int, posts: int, groups: tuple[int, ...], seed: int) -> dict[str, Any]:
    """Core-µs a post of each index over the same subscribers and thresholds, and bytes a subscriber (Fig. 11-13)."""
    load = workload(count, posts, seed=seed)
    ways: dict[str, Build] = {name: MATCHERS[name] for name in ("batch", "igpt", "ipt", "ciq")}
    ways |= {f"igpt, {n} groups": partial(igpt.build, groups=n) for n in groups}
    found: dict[str, Any] = {}
    right = Pairs(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0), 0)
    for name, build in ways.items():
        progress(f"dissemination: {name} over {count:,} subscribers")
        build(load.tastes.take(np.arange(100)), load.theta[:100]).match(load.posts.take(np.arange(20)))
        began = time.process_time()
        index = build(load.tastes, load.theta)
        built = time.process_time() - began
        some = load.posts.take(np.arange(max(1, posts // SLOW.get(name.split(",")[0], 1))))
        began = time.process_time()
        pairs = index.match(some)
        took = time.process_time() - began
        right = pairs if name == "batch" else right
        if len(pairs) != int((right.posts < len(some)).sum()):
            raise NearcastError(f"{name} finds {len(pairs)} pairs, which are not those of the batch")
        found[name] = {
            "core_us_a_post": rounded(took / len(some) * 1e6), "build_core_s": rounded(built),
            "bytes_a_subscriber": rounded(index.nbytes / count), "looked_a_post": rounded(pairs.looked / len(some)),
            "found_a_post": rounded(len(pairs) / len(some)),
        }  # fmt: skip
    cost = {name: each["core_us_a_post"] for name, each in found.items()}
    found["igpt_one_at_a_time_to_batch"] = figure(cost["igpt"] / cost["batch"], at_least=10.0)
    found["ciq_to_igpt"] = figure(cost["ciq"] / cost["igpt"])
    found["ipt_to_igpt"] = figure(cost["ipt"] / cost["igpt"])
    return found


@dataclass(frozen=True)
class Numbers:
    """The ledger of a stream without disorder: posts 0, 1, 2, … in the order of their times."""

    count: int
    base: int = 0

    @property
    def ts(self) -> np.ndarray:
        return np.arange(self.count)

    order = by_order = ts


def evaluation(
    progress: Progress, count: int, window: int, posts: int, batches: int, k: int, words: tuple[int, int],
    kmax: tuple[int, ...], ratios: tuple[float, ...], seed: int,
) -> dict[str, Any]:  # fmt: skip
    """Arrivals and expiries apart, and the size of buffers, by policy (Fig. 10, 14, Table 4); then Skype against CIQ
    with kmax, the best of the baselines (Fig. 15-18).
    """
    world = TopkWorld(seed)
    idf = statistics(world.texts(200_000, 0))
    tastes = subscribers(world.texts(count, 1), idf, seed, words, k)
    stream = vectors(world.texts(window + posts * batches, 3), idf)
    policies: dict[str, Policy] = {"cskyband": CostBased(cost_of_a_search=30_000.0)}
    policies |= {f"kmax {n}": Kmax(n) for n in kmax} | {f"skyband {r:g}": PlainSkyband(r) for r in ratios}
    found: dict[str, Any] = {}
    for name, policy in policies.items():
        progress(f"re-evaluation: {name}, {count:,} subscribers, a window of {window:,} posts")
        found[name] = kept_fresh(MATCHERS["batch"], policy, tastes, stream, window, posts, batches)
    found["mean_buffer_to_k"] = figure(found["cskyband"]["mean_buffer"] / k, at_most=1.8)
    baseline = f"kmax {60 if 60 in kmax else kmax[0]}"
    progress(f"re-evaluation: CIQ with {baseline}")
    ciq = kept_fresh(MATCHERS["ciq"], policies[baseline], tastes, stream, window, max(1, posts // 10), 1)
    found[f"ciq with {baseline}"] = ciq
    found["ciq_kmax_to_skype"] = figure(ciq["core_us_a_post"] / found["cskyband"]["core_us_a_post"], at_least=10.0)
    return found


def kept_fresh(
    build: Build, policy: Policy, tastes: Tastes, stream: Any, window: int, posts: int, batches: int
) -> dict[str, Any]:
    """Buffers over a window that slides by `posts` a batch."""
    index, n = WindowPosts(), len(tastes)
    index.add(stream.take(np.arange(window)), 0)
    buffers = Buffers.new(tastes.k, np.zeros(n, np.int32))
    seconds = {"match": 0.0, "buffers": 0.0, "search": 0.0}
    fill(buffers, index, policy, tastes, np.arange(n), Numbers(window), window)
    matcher = build(tastes, buffers.theta)
    refilled = came = 0
    for batch in range(batches):
        first = window + batch * posts
        fresh, ledger = stream.take(np.arange(first, first + posts)), Numbers(first + posts)
        bounds = np.array([first + posts - window])
        began = time.process_time()
        pairs = matcher.match(fresh)
        seconds["match"] += time.process_time() - began
        index.add(fresh, first)
        began = time.process_time()
        order = np.argsort(pairs.rows, kind="stable")
        numbers = (first + pairs.posts[order]).astype(np.uint32)
        before = buffers.theta.copy()
        arrivals = Arrivals(pairs.rows[order].astype(np.int64), numbers, pairs.scores[order])
        step = advance(buffers, ledger, bounds, arrivals, policy)
        seconds["buffers"] += time.process_time() - began
        began = time.process_time()
        fill(buffers, index, policy, tastes, step.short, ledger, window)
        seconds["search"] += time.process_time() - began
        changed = np.flatnonzero(buffers.theta != before)
        matcher.set_theta(changed, buffers.theta[changed])
        refilled, came = refilled + len(step.short), came + len(pairs)
    total = posts * batches
    costs = {f"{name}_core_us_a_post": rounded(took / total * 1e6) for name, took in seconds.items()}
    return {
        "core_us_a_post": rounded(sum(seconds.values()) / total * 1e6), **costs,
        "refills_a_post": rounded(refilled / total), "arrivals_a_post": rounded(came / total),
        "mean_buffer": rounded(float(buffers.size.mean())),
        "bytes_a_subscriber": figure((buffers.nbytes + matcher.nbytes + taste_bytes(tastes)) / n, at_most=1024),
    }  # fmt: skip


def taste_bytes(tastes: Tastes) -> int:
    return sum(array.nbytes for array in tastes.__dict__.values())


def fill(
    buffers: Buffers, index: WindowPosts, policy: Policy, tastes: Tastes, rows: np.ndarray, ledger: Numbers, window: int
) -> None:
    """Fill rows from the window, asking for more where a policy needs it."""
    since, none = ledger.count - window, np.empty(0, np.int64)
    for begin in range(0, len(rows), ONE_BY_ONE):
        left = rows[begin : begin + ONE_BY_ONE]
        asked = policy.wanted(tastes.k[left])
        while len(left):
            bounds = np.full(len(left), since)
            found = index.best(tastes, left, asked, bounds, ledger, none)
            theta = policy.thetas(tastes.k[left], found.starts, found.scores, asked)
            enough = np.flatnonzero(~np.isnan(theta))
            sizes = np.diff(found.starts)
            mine = np.repeat(~np.isnan(theta), sizes)
            starts = np.concatenate([[0], np.cumsum(sizes[enough])]).astype(np.int64)
            version = np.ones(len(enough), np.int32)
            numbers = found.numbers[mine].astype(np.uint32)
            refills = Refills(left[enough], theta[enough], version, starts, numbers, found.scores[mine])
            refill(buffers, ledger, np.array([since]), refills, policy)
            left, asked = left[np.isnan(theta)], 4 * asked[np.isnan(theta)]
