"""Skype (Skype §8): the most relevant posts, kept fresh. Indexes, buffers, distributions, and the whole pipeline."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nearcast.common.errors import BadInput
from nearcast_papers.baselines.buffer_policies import Kmax, PlainSkyband
from nearcast_papers.benchmarks import topk_sweeps as sweeps
from nearcast_papers.benchmarks.bench_warehouse import words
from nearcast_papers.benchmarks.figures import Progress
from nearcast_papers.benchmarks.machine import machine
from nearcast_papers.benchmarks.topk_pipeline import measure_pipeline
from nearcast_papers.benchmarks.topk_sweeps import TopkSizes

SUMMARY = "Skype's most relevant posts: IGPT and CIQ, cSkyband, kmax and Skyband, distributions, the pipeline"
PARTS = (
    "dissemination", "reevaluation", "words", "k", "subscribers", "window", "time", "groups", "kmax", "ratio",
    "distribution", "pipeline",
)  # fmt: skip


def run(
    progress: Progress,
    *,
    subscribers: int = 200_000,
    window: int = 200_000,
    posts: int = 200_000,
    batch: int = 5_000,
    single: int = 100,
    k: int = 20,
    small: int = 20_000,
    ks: str | int = "10,20,30,40,50",
    times: str | int = "1,2,3,4,5",
    groups: str | int = "5,10,20,40",
    kmax: str | int = "20,40,60,80,100,120",
    ratio: str | float = "0.75,0.8,0.85,0.9,0.95,1.0",
    workers: str | int = "4,8,16,32",
    pipeline_workers: int = 2,
    pipeline_batches: int = 4,
    topk_distribution: str = "auto",
    parts: str = ",".join(PARTS),
    png: str | None = None,
    seed: int = 1,
    folder: str | None = None,
) -> dict[str, Any]:
    """Lists are given with commas: `--parts words,k --ks 10,50`.

    The paper's sizes are `--subscribers 1000000 --window 1000000 --posts 100000 --small 1000000`; its cluster's
    `--subscribers 5000000`. Fewer posts than the window has slide over it without a buffer running short. Where
    something is varied, `small` subscribers stand, or that times each of `times`, as the window. `posts` slide over the
    full window, `batch` at a time; indexes that take posts one at a time see `single` of them. Times are
    core-microseconds a post.
    """
    chosen = words("parts", parts, PARTS)
    many_k, more, crews = whole("ks", ks), whole("times", times), whole("workers", workers)
    by_alpha, longest, ratios = whole("groups", groups), whole("kmax", kmax), real("ratio", ratio)
    facts, figures = machine(), {}
    options = TopkSizes(subscribers, small, window, posts, batch, single, k, seed)
    warm(options)
    tried: dict[str, Any] = {
        "dissemination": lambda: sweeps.dissemination(progress, options),
        "reevaluation": lambda: sweeps.reevaluation(progress, options),
        "words": lambda: sweeps.words(progress, options),
        "k": lambda: sweeps.k(progress, options, many_k),
        "subscribers": lambda: sweeps.subscribers(progress, options, more),
        "window": lambda: sweeps.windows(progress, options, more),
        "time": lambda: sweeps.time(progress, options, many_k),
        "groups": lambda: sweeps.groups(progress, options, by_alpha),
        "kmax": lambda: sweeps.policies(progress, options, {str(n): Kmax(n) for n in longest}),
        "ratio": lambda: sweeps.policies(progress, options, {str(x): PlainSkyband(x) for x in ratios}),
        "distribution": lambda: sweeps.distribution(progress, options, crews),
    }
    for name in chosen:
        if name != "pipeline":
            figures[name] = tried[name]()
            continue
        with TemporaryDirectory(prefix="nearcast-bench-", dir=folder) as scratch:
            figures[name] = measure_pipeline(
                progress, Path(scratch), subscribers, window, batch, pipeline_batches, k, pipeline_workers,
                topk_distribution, seed,
            )  # fmt: skip
    if png:
        from nearcast_papers.benchmarks.topk_plot import draw

        draw(Path(png), tables(figures))
    parameters = {
        "subscribers": subscribers, "window": window, "posts": posts, "batch": batch, "single": single, "k": k,
        "small": small, "pipeline_workers": pipeline_workers, "topk_distribution": topk_distribution, "seed": seed,
    }  # fmt: skip
    return {"bench": "topk", "machine": facts, "parameters": parameters, "figures": tables(figures)}


def warm(options: TopkSizes) -> None:
    """Everything compiled before anything is timed."""
    tiny = TopkSizes(60, 60, 300, 40, 20, 4, options.k, options.seed)
    sweeps.dissemination(lambda text: None, tiny)
    sweeps.reevaluation(lambda text: None, tiny)


def tables(figures: dict[str, Any]) -> dict[str, Any]:
    """Rows of distributions by name and number of workers, as all other figures are."""
    out = dict(figures)
    if "distribution" in out:
        named = {}
        for row in out["distribution"]:
            named[f"{row['distribution']} {row['parts'] or row['workers']}"] = row
        out["distribution"] = named
    return out


def whole(name: str, text: str | int) -> list[int]:
    found = [int(each) if each.isdigit() else 0 for each in str(text).split(",")]
    if min(found) < 1:
        raise BadInput(f"--{name} {text}: whole numbers from 1 on, with commas")
    return found


def real(name: str, text: str | float) -> list[float]:
    try:
        found = [float(each) for each in str(text).split(",")]
    except ValueError:
        found = [0.0]
    if min(found) <= 0.0 or max(found) > 1.0:
        raise BadInput(f"--{name} {text}: numbers above 0 and up to 1, with commas")
    return found
