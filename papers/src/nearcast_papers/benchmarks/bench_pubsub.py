"""Publish and subscribe without Spark: the matching kernel, registering in bulk, churn on the log-structured path."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nearcast_papers.benchmarks.figures import Progress
from nearcast_papers.benchmarks.machine import machine
from nearcast_papers.benchmarks.pubsub_churn import measure_churn
from nearcast_papers.benchmarks.pubsub_kernel import measure_kernel

SUMMARY = "matching kernel, registering in bulk, and PS2Stream's churn, without Spark"
PARTS = ("kernel", "churn")
FULL = 10_000_000


def run(
    progress: Progress,
    *,
    size: int = 1_000_000,
    posts: int = 200_000,
    repeats: int = 5,
    live: int = 1_000_000,
    step: int = 500_000,
    steps: int = 8,
    workers: int = 2,
    or_share: float = 0.0,
    full: bool = False,
    parts: str | tuple[str, ...] = PARTS,
    seed: int = 1,
    folder: str | None = None,
) -> dict[str, Any]:
    """`size` subscriptions in the kernel and `posts` in its batch; `live` Q2 queries under churn (10 million with
    `full`), with `step` posts to a batch.

    PS2Stream joins words "by either AND or OR". A word in an OR may be as frequent as any, so that such queries match
    far more posts, each match to be written: here words are joined by AND, unless `or_share` says otherwise.
    """
    live = FULL if full else live
    parts = (parts,) if isinstance(parts, str) else parts
    parameters = {
        "seed": seed, "size": size, "posts_a_batch": posts, "repeats": repeats, "live_queries": live,
        "posts_a_step": step, "steps": steps,
        "workers": workers, "or_share": or_share, "parts": list(parts),
    }  # fmt: skip
    facts, figures = machine(), {}
    if "kernel" in parts:
        figures["kernel"] = measure_kernel(progress, size, posts, repeats, seed)
    if "churn" in parts:
        with TemporaryDirectory(prefix="nearcast-bench-", dir=folder) as scratch:
            figures |= measure_churn(progress, Path(scratch), live, step, steps, workers, or_share, seed)
    return {"bench": "pubsub", "machine": facts, "parameters": parameters, "figures": figures}
