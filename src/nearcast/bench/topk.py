"""The most relevant, kept fresh: the experiments of Skype and DSkype (seed 004 §8)."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from nearcast.bench.figures import Progress
from nearcast.bench.machine import machine
from nearcast.bench.topk_data import TopkWorld, statistics, vectors, workload
from nearcast.bench.topk_distribution import distribution_figures
from nearcast.bench.topk_pipeline import measure_pipeline
from nearcast.bench.topk_single import dissemination, evaluation
from nearcast.index.igpt_batch import build

SUMMARY = "top-k subscriptions by relevance: IGPT, CIQ, skybands, distributions, the pipeline (Skype, DSkype)"
PARTS = ("dissemination", "evaluation", "distribution", "pipeline")


def run(
    progress: Progress,
    *,
    subscribers: int = 200_000,
    window: int = 200_000,
    posts: int = 2_000,
    batches: int = 5,
    k: int = 20,
    words: str = "1,5",
    groups: str = "",
    kmax: str = "60",
    ratios: str = "0.95,1.0",
    workers: str = "4,32",
    distribution: str = "auto",
    parts: str | tuple[str, ...] = PARTS,
    seed: int = 1,
    folder: str | None = None,
) -> dict[str, Any]:
    """The paper has 1 M subscribers and a window of 1 M posts (5 M subscribers on its cluster), k 10-50, 1-5 words,
    groups 5-40, kmax 20-120, ratios 0.75-1.0, 4-32 workers. `posts` is the size of a batch.
    """
    parts = tuple(parts.split(",")) if isinstance(parts, str) else parts
    lists = {name: numbers(text) for name, text in (("groups", groups), ("kmax", kmax), ("workers", workers))}
    least, most = (*numbers(words), *numbers(words))[:2]
    parameters = {
        "seed": seed, "subscribers": subscribers, "window": window, "posts_a_batch": posts, "batches": batches, "k": k,
        "words": words, **{name: list(values) for name, values in lists.items()}, "ratios": ratios,
        "distribution": distribution, "parts": list(parts),
    }  # fmt: skip
    facts, figures = machine(), {}
    if "dissemination" in parts:
        figures["dissemination"] = dissemination(progress, subscribers, posts, lists["groups"], seed)
    if "evaluation" in parts:
        figures["evaluation"] = evaluation(
            progress, subscribers, window, posts, batches, k, (least, most), lists["kmax"],
            tuple(float(each) for each in str(ratios).split(",")), seed,
        )  # fmt: skip
    if "distribution" in parts:
        figures["distribution"] = spread(progress, subscribers, posts, lists["workers"], seed)
    if "pipeline" in parts:
        with TemporaryDirectory(prefix="nearcast-bench-", dir=folder) as scratch:
            figures["pipeline"] = measure_pipeline(
                progress, Path(scratch), subscribers, window, posts, batches, k, 2, distribution, seed
            )
    return {"bench": "topk", "machine": facts, "parameters": parameters, "figures": figures}


def numbers(text: str | int) -> tuple[int, ...]:
    return tuple(int(each) for each in str(text).split(",") if each)


def spread(progress: Progress, count: int, posts: int, workers: tuple[int, ...], seed: int) -> dict[str, Any]:
    """Copies, messages and work of each distribution over so many workers (§8.2)."""
    load = workload(count, posts, seed=seed)
    world = TopkWorld(seed)
    idf = statistics(world.texts(200_000, 0))
    known = vectors(world.texts(20_000, 4), idf)
    frequency = (np.asarray(idf.term), np.asarray(idf.count))
    rows = distribution_figures(
        load.tastes, load.theta, load.posts, known, frequency, workers=workers, matcher=build, progress=progress
    )
    return {
        " ".join(str(row[n]) for n in ("distribution", "workers", "parts") if row[n] is not None): row for row in rows
    }
