"""STAR's warehouse (STAR §8): aggregates asked once, with and without caches, and standing ones, index by index."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nearcast.common.errors import BadInput
from nearcast_papers.benchmarks import warehouse_searches as searches
from nearcast_papers.benchmarks import warehouse_standing as standing
from nearcast_papers.benchmarks import warehouse_stream as streaming
from nearcast_papers.benchmarks.figures import Progress
from nearcast_papers.benchmarks.machine import machine

SUMMARY = "STAR's aggregates: caches for those asked once, CH-tree and MT-index for those that stand"
PARTS = ("searches", "standing", "stream")
TOP = 10  # the standing TopK are so many times fewer, of so many times fewer posts: exact, they keep every term


def run(
    progress: Progress,
    *,
    posts: int = 1_000_000,
    vocabulary: int = 800_000,
    queries: int = 100,
    training: int = 1_500,
    repeated: int = 100,
    memory: str | int = "500,1000",
    standing_queries: int = 10_000,
    standing_posts: int = 1_000_000,
    minutes: int = 40,
    batch_posts: int = 100_000,
    sets: str = "s1,s2",
    functions: str = "count,topk",
    parts: str = ",".join(PARTS),
    png: str | None = None,
    seed: int = 1,
    folder: str | None = None,
) -> dict[str, Any]:
    """Lists are given with commas: `--parts searches,standing --memory 500,1000 --functions count`.

    Searches are over `posts` of 72 hours; their targets are those for 10 million. `queries` of each number of
    constraints are timed (more than 120 would have a cache choose anew meanwhile), after a cache has learned from
    `training` others; `repeated` are asked again and again, of DuckDB too where it is installed. Standing ones see
    `standing_posts` in `minutes` of stream time (`standing`: one core, index by index; `stream`: the whole pipeline
    with 2 workers, reports included). Memory is in MB. `png` is a file for a plot.
    """
    chosen, some = words("parts", parts, PARTS), words("sets", sets, ("s1", "s2"))
    kinds = words("functions", functions, ("count", "topk"))
    facts, figures = machine(), {}
    with TemporaryDirectory(prefix="nearcast-bench-", dir=folder) as scratch:
        if "searches" in chosen:
            asked = tuple(f"{each}_{kind}" for kind in kinds for each in some)
            sizes = tuple(int(each) for each in str(memory).split(","))
            options = searches.SearchOptions(posts, vocabulary, queries, training, repeated, sizes, asked, seed)
            figures["searches"] = searches.measure(progress, Path(scratch), options)
        for kind in kinds:
            names = tuple(f"{each.replace('s', 'c')}_{kind}" for each in some)
            less = TOP if kind == "topk" else 1
            given = standing.StandingOptions(
                max(1, standing_posts // less), minutes, max(1, standing_queries // less), vocabulary,
                max(1, batch_posts // less), names, seed,
            )  # fmt: skip
            if "standing" in chosen:
                figures.setdefault("standing", {}).update(standing.measure(progress, given))
            if "stream" in chosen:
                figures.setdefault("stream", {})[names[0]] = streaming.measure(progress, Path(scratch), names[0], given)
    if png:
        from nearcast_papers.benchmarks.warehouse_plot import draw

        draw(Path(png), figures)
    parameters = {
        "posts": posts, "vocabulary": vocabulary, "queries": queries, "training": training, "repeated": repeated,
        "memory_mb": str(memory), "standing_queries": standing_queries, "standing_posts": standing_posts,
        "minutes": minutes, "batch_posts": batch_posts, "sets": sets, "functions": functions, "seed": seed,
        "topk_times_fewer": TOP,
    }  # fmt: skip
    return {"bench": "warehouse", "machine": facts, "parameters": parameters, "figures": figures}


def words(name: str, text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    given = tuple(text.split(","))
    for each in given:
        if each not in known:
            raise BadInput(f"--{name} {text}: there is no {each!r}, there is {', '.join(known)}")
    return given
