"""Publish and subscribe without Spark: the matching kernel, registering in bulk, churn on the log-structured path."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nearcast.bench.churn import measure_churn
from nearcast.bench.figures import Progress
from nearcast.bench.kernel import measure_kernel
from nearcast.bench.machine import machine

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
    steps: int = 12,
    workers: int = 2,
    or_share: float = 0.0,
    full: bool = False,
    parts: tuple[str, ...] = PARTS,
    seed: int = 1,
    folder: str | None = None,
) -> dict[str, Any]:
    """`size` subscriptions in the kernel, `live` Q2 queries under churn (10 million with `full`), `posts` in a batch.

    PS2Stream joins words "by either AND or OR". In a world as dense as the generator's, every 100,000 queries of which
    a third have OR (`or_share` 0.5) add 18 matches to every post, each to be written: here words are joined by AND,
    unless told otherwise.
    """
    live = FULL if full else live
    parameters = {
        "seed": seed, "size": size, "posts_a_batch": posts, "repeats": repeats, "live_queries": live, "steps": steps,
        "workers": workers, "or_share": or_share, "parts": list(parts),
    }  # fmt: skip
    facts, figures = machine(), {}
    if "kernel" in parts:
        figures["kernel"] = measure_kernel(progress, size, posts, repeats, seed)
    if "churn" in parts:
        with TemporaryDirectory(prefix="nearcast-bench-", dir=folder) as scratch:
            figures |= measure_churn(progress, Path(scratch), live, posts, steps, workers, or_share, seed)
    return {"bench": "pubsub", "machine": facts, "parameters": parameters, "figures": figures}
