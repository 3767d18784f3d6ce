"""The single figures of each benchmark that the documentation shows, with their titles and units, and the ten of the
README.
"""

from collections.abc import Mapping
from typing import NamedTuple

from nearcast_papers.published.markdown import aim, shown, table
from nearcast_papers.published.saved_result import SavedResult


class Shown(NamedTuple):
    """A figure by its path in a result."""

    title: str
    path: str
    unit: str = ""


LISTS: dict[str, tuple[Shown, ...]] = {
    "pipeline": (
        Shown("Parquet files to committed results, `--keep none`", "keep_none:posts_per_s", "posts/s"),
        Shown("its batches, `--keep none`", "keep_none:batches_posts_per_s", "posts/s"),
        Shown("Parquet files to committed results, posts stored", "keep_posts:posts_per_s", "posts/s"),
        Shown("its batches, posts stored", "keep_posts:batches_posts_per_s", "posts/s"),
        Shown("`--keep none` against a Spark SQL join on the word", "joins:faster_than_word", "times"),
        Shown("against a Spark SQL join on word and cell", "joins:faster_than_word_and_cell", "times"),
        Shown("arrival to result: rate of the posts", "latency:posts_per_s", "posts/s"),
        Shown("arrival to result: median", "latency:median_s", "s"),
        Shown("arrival to result: 95th percentile", "latency:p95_s", "s"),
    ),
    "pubsub": (
        Shown("matching, one core", "kernel:pyramid_us_a_post", "µs a post"),
        Shown("with 20 unmerged segments and 1% ended", "kernel:unmerged_to_pyramid_ratio", "times"),
        Shown("matching with PS2Stream's GI2", "kernel:gi2_us_a_post", "µs a post"),
        Shown("registering, Parquet to committed index", "registering:subscriptions_per_s", "subscriptions/s"),
        Shown("on disk, copies included", "registering:bytes_a_subscription", "bytes a subscription"),
        Shown("churn, 5 posts to an update", "churn:tuples_per_s", "tuples/s"),
    ),
    "demo": (Shown("`nearcast demo` to its first result", "first_result_s", "s"),),
    "search": (
        Shown("range, 0.01% of the space: median", "srq_0.01%:p50_ms", "ms"),
        Shown("range, 0.01% of the space: 90th percentile", "srq_0.01%:p90_ms", "ms"),
        Shown("range, 0.01% of the space: 99th percentile", "srq_0.01%:p99_ms", "ms"),
        Shown("range, 1% of the space: median", "srq_1%:p50_ms", "ms"),
        Shown("10 nearest: median", "skq_k10:p50_ms", "ms"),
        Shown("frequent terms, 0.01% of the space: median", "stq_0.01%:p50_ms", "ms"),
        Shown("frequent terms, 1% of the space: median", "stq_1%:p50_ms", "ms"),
        Shown("opening the state", "opening_ms", "ms"),
        Shown("sealing and merging", "merge_core_us_a_post", "core-µs a post"),
        Shown("on disk", "bytes_a_post", "bytes a post"),
    ),
    "continuous": (
        Shown("standing nearest", "ckq:posts_per_s", "posts/s"),
        Shown("first batch, in which every answer is found", "ckq:first_batch_s", "s"),
        Shown("standing frequent terms", "ctq:posts_per_s", "posts/s"),
    ),
    "warehouse": (
        Shown("standing Count through the whole pipeline", "stream:c1_count:posts_per_s", "posts/s"),
        Shown("standing TopK through the whole pipeline", "stream:c1_topk:posts_per_s", "posts/s"),
    ),
    "topk": (
        Shown("a batch against IGPT one post at a time", "dissemination:batch_times_igpt", "times"),
        Shown("Skype against CIQ-kmax", "reevaluation:skype_times_ciq_kmax", "times"),
        Shown("buffers and index", "reevaluation:bytes_a_subscriber", "bytes a subscriber"),
        Shown("the whole pipeline, full window", "pipeline:batches:posts_per_s", "posts/s"),
        Shown("registering", "pipeline:registering:subscriptions_per_s", "subscribers/s"),
        Shown("filling the first window", "pipeline:filling:seconds", "s"),
        Shown("buffers on disk", "pipeline:buffers:bytes_on_disk_a_subscriber", "bytes a subscriber"),
    ),
}

HEADLINES: tuple[tuple[str, str, str, str], ...] = (  # what, result, path, unit
    ("posts from Parquet files to committed results, 200,000 subscriptions", "pipeline", "keep_none:posts_per_s",
     "posts/s"),
    ("the same with posts stored", "pipeline", "keep_posts:posts_per_s", "posts/s"),
    ("against a Spark SQL join on the word", "pipeline", "joins:faster_than_word", "times"),
    ("a post's arrival to its result", "pipeline-latency", "latency:median_s", "s"),
    ("matching against 1 million subscriptions, one core", "pubsub-kernel", "kernel:pyramid_us_a_post", "µs a post"),
    ("a search of 10 million posts, a range of 0.01% of the space", "search-10m", "srq_0.01%:p50_ms", "ms"),
    ("100,000 standing searches for the nearest", "continuous", "ckq:posts_per_s", "posts/s"),
    ("10,000 standing aggregates", "warehouse-stream", "stream:c1_count:posts_per_s", "posts/s"),
    ("5 million subscribers to the most relevant", "topk-pipeline-5m", "pipeline:batches:posts_per_s", "posts/s"),
    ("first result of the demo, kernels not yet compiled", "demo-cold", "first_result_s", "s"),
)  # fmt: skip


def figure_list(result: SavedResult) -> list[str]:
    """A table of those single figures that a result has."""
    rows = [
        (each.title, shown(result.at(each.path), each.unit), aim(result.at(each.path)))
        for each in LISTS[result.bench]
        if result.has(each.path) and _is_number(result.at(each.path))
    ]
    return table(("", "figure", "aim"), rows)


def headlines(results: Mapping[str, SavedResult]) -> list[str]:
    """The README's table. Long commands are on the page of benchmarks."""
    rows = []
    for what, name, path, unit in HEADLINES:
        figure = results[name].at(path)
        spread = {key: value for key, value in figure.items() if key not in ("range", "repeats")}
        rows.append((what, shown(spread, unit), aim(figure), f"`{short(results[name].command)}`"))
    return table(("what", "figure", "aim", "command"), rows)


def short(command: str, most: int = 60) -> str:
    """A command, cut before the option that would make it too long."""
    words = command.split(" --")
    kept = words[0]
    for word in words[1:]:
        if len(f"{kept} --{word}") > most:
            return f"{kept} …"
        kept = f"{kept} --{word}"
    return kept


def _is_number(figure: object) -> bool:
    return isinstance(figure, int | float) or (isinstance(figure, dict) and ("value" in figure or "median" in figure))
