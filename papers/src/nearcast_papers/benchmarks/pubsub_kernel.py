"""The matching kernel on one core: pristine, with PS2Stream's GI2, and the way the pipeline meets it."""

import time
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.common.text.tokenizer import Tokenizer
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.subscriptions.gi2 import gi2
from nearcast.storage.subscriptions.pyramid import PYRAMID
from nearcast.storage.subscriptions.subscription_segment import Line, Segment
from nearcast.storage.subscriptions.subscription_set import EndLog, SubscriptionSet
from nearcast_papers.benchmarks.bulk_queries import rows_of, term_counts
from nearcast_papers.benchmarks.figures import Progress, figure
from nearcast_papers.query_sets import kernel_posts, kernel_queries
from nearcast_papers.query_sets.kernel_set import EXTENT

UNMERGED = 20
UNMERGED_SHARE = 0.005
ENDED_SHARE = 0.01
NOW = 1


def measure_kernel(progress: Progress, size: int, posts: int, repeats: int, seed: int) -> dict[str, Any]:
    """µs a post, sorting the batch along the Z-order curve included.

    "unmerged" has 20 more segments of 0.5% of the size each and 1% of the large one's rows ended by a log of ends. As
    in the pipeline, the overlay of the small segments and the rows that a log is about are found once, when a segment
    or a log is new, and kept in the process; "overlay_ms" is what that takes for all of them together. The variants
    take turns, so that what disturbs one disturbs all.
    """
    progress(f"kernel: {size:,} subscriptions")
    sample = term_counts(kernel_posts(min(posts, 20_000), seed + 1)["text"])
    rows = rows_of(kernel_queries(size, seed), sample)
    batch = post_columns(kernel_posts(posts, seed))
    progress("kernel: building the indexes")
    Segment.build(rows.take(np.arange(min(size, 10))), PYRAMID)  # compiles, the first time
    began = time.perf_counter()
    whole = Segment.build(rows, PYRAMID)
    build = time.perf_counter() - began
    west, south, east, north = EXTENT
    grid = Segment.build(rows, gi2((west, south, east - west, north - south)))
    segments, log = unmerged(whole, size, sample, seed)
    logs = {"log": log}
    began = time.perf_counter()
    SubscriptionSet(segments, EndLog.empty(), logs=logs).parts  # noqa: B018 (made when it is first asked for)
    overlay = time.perf_counter() - began

    variants = {
        "pyramid": lambda: [whole.match(Line.of(batch))],
        "gi2": lambda: [grid.match(Line.of(batch, extent=grid.extent))],
        "unmerged": lambda: [found for _, found in SubscriptionSet(segments, EndLog.empty(), logs=logs).match(batch)],
    }
    micros: dict[str, list[float]] = {name: [] for name in variants}
    counts: dict[str, tuple[int, int]] = {}
    for turn in range(repeats + 1):  # the first warms up
        progress(f"kernel: matching {posts:,} posts, turn {turn} of {repeats}")
        for name, match in variants.items():
            began = time.perf_counter()
            found = match()
            if turn:
                micros[name].append((time.perf_counter() - began) / posts * 1e6)
            counts[name] = sum(len(m.posts) for m in found), sum(m.candidates for m in found)
    if counts["pyramid"][0] != counts["gi2"][0]:
        raise AssertionError(f"the pyramid finds {counts['pyramid'][0]} matches, GI2 {counts['gi2'][0]}")
    slower = [b / a for a, b in zip(micros["pyramid"], micros["unmerged"], strict=True)]
    return {
        "pyramid_us_a_post": figure(micros["pyramid"], at_most=1.0),
        "gi2_us_a_post": figure(micros["gi2"]),
        "unmerged_us_a_post": figure(micros["unmerged"]),
        "unmerged_to_pyramid_ratio": figure(slower, at_most=1.3),
        "matches": {name: count for name, (count, _) in counts.items()},
        "candidates_a_post": {name: round(looked / posts, 3) for name, (_, looked) in counts.items()},
        "build_us_a_subscription": figure(build / size * 1e6),
        "overlay_ms": figure(overlay * 1e3),
    }


def unmerged(
    whole: Segment, size: int, sample: tuple[np.ndarray, np.ndarray], seed: int
) -> tuple[dict[str, Segment], EndLog]:
    """The large segment with 20 small ones beside it, and the ends of 1% of the large one's rows."""
    small = max(1, round(size * UNMERGED_SHARE))
    more = rows_of(kernel_queries(UNMERGED * small, seed, first=size), sample, next_op=size)
    segments = {"large": whole}
    for number in range(UNMERGED):
        part = more.take(np.arange(number * small, (number + 1) * small))
        segments[f"small {number}"] = Segment.build(part, PYRAMID)
    rng = np.random.default_rng((seed, 0xE4D))
    ended = np.sort(rng.choice(len(whole), max(1, round(size * ENDED_SHARE)), replace=False))
    return segments, EndLog(whole.rows.keys()[ended], whole.rows.seq[ended], np.zeros(len(ended), np.int64))


def post_columns(posts: pa.Table) -> PostColumns:
    terms, offsets = Tokenizer().terms(posts["text"])
    ts = np.full(len(posts), NOW, np.int64)
    return PostColumns(posts["lon"].to_numpy(), posts["lat"].to_numpy(), ts, terms, offsets)
