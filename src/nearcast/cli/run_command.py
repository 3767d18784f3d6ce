"""`nearcast run`: posts and ops in, results out."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearcast.cli.deferred import loading
from nearcast.cli.options import mapping
from nearcast.common.errors import BadInput

if TYPE_CHECKING:
    from nearcast.engine.settings import Inputs
    from nearcast.sinks.delivery import Delivery
    from nearcast.storage.directory import StateDirectory


def option(name: str, help: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Option(name, help=help, metavar=metavar, **more)


StateDir = Annotated[Path, option("--state", "The state directory; made if it is not there.", "DIR")]
Posts = Annotated[
    list[str] | None,
    option("--posts", "Files or folders of posts; or world, or world:seed=1,rate=2000,count=100000.", "SRC"),
]
Queries = Annotated[list[str] | None, option("--queries", "Files or folders of ops (JSON Lines, Parquet).", "SRC")]
Drained = Annotated[bool, option("--until-drained", "End when all that is there has been read.")]
Router = Annotated[
    str | None, option("--router", "How space and words are cut into leaves; grid unless given. May change.", "NAME")
]
Workers = Annotated[int, option("--workers", "Partitions of the work.", min=1, max=256)]
Balance = Annotated[
    str, option("--balance", "How leaves follow the load between batches: auto, off, or a strategy by name.", "NAME")
]
TopkDistribution = Annotated[
    str,
    option(
        "--topk-distribution",
        "How subscribers to the most relevant posts are spread over workers: hashing, location, keyword, prefix, "
        "spatial-first, keyword-first; auto takes prefix where posts have fewer words than there are workers, else "
        "location. May change.",
        "NAME",
    ),
]
Retention = Annotated[
    str | None, option("--retention", "How long posts are kept at hand; for ever unless given.", "30d")
]
Lateness = Annotated[str, option("--lateness", "How long reports wait for late posts.", "5m")]
MaxFuture = Annotated[str, option("--max-future", "Posts further ahead of their arrival are rejects.", "1d|none")]
Keep = Annotated[str | None, option("--keep", "Which posts are stored; fixed when the state is made.", "posts|none")]
KeepSize = Annotated[
    str | None,
    option(
        "--keep-size",
        "How much disk posts and their archive may take; the oldest time slots leave beyond that, and APPROXIMATE "
        "searches count them coarsely. No limit unless given.",
        "20GB",
    ),
]
KeepResults = Annotated[
    str | None, option("--keep-results", "How long results are kept; for ever unless given.", "30d")
]
Map = Annotated[
    list[str] | None, option("--map", "Names that the fields of a post have in the files.", "ts=created_at,…")
]
Derive = Annotated[
    list[str] | None,
    option(
        "--derive",
        "Attributes to store with each post from now on: place (the nearest city), topic=MODEL (nearcast topics "
        "train), name=package.module:function (your own), none. As before unless given.",
        "place,…",
    ),
]
StopWords = Annotated[
    str | None, option("--stop-words", "Words that standing TopK leaves out from now on.", "english|FILE")
]
Index = Annotated[str | None, option("--index", "Of subscriptions; fixed when the state is made.", "pyramid|gi2")]
IdfPeriod = Annotated[
    str | None,
    option(
        "--idf-period",
        "Of stream time, after which words weigh by new statistics; a day unless given, fixed when the state is made.",
        "6h",
    ),
]
Accents = Annotated[
    bool | None, option("--keep-accents/--fold-accents", "Whether café is not cafe; fixed when the state is made.")
]
BatchPosts = Annotated[
    int, option("--batch-posts", "At most so many posts a batch, of lines of text about so many.", min=1)
]
Deliver = Annotated[
    list[str] | None,
    option(
        "--deliver", "Where results go, each once: a folder, for JSON Lines files. May be given several times.", "SINK"
    ),
]
Memory = Annotated[str, option("--memory", "Of the JVM.", "3g")]


def run(
    state: StateDir,
    posts: Posts = None,
    queries: Queries = None,
    until_drained: Drained = False,
    router: Router = None,
    workers: Workers = 2,
    balance: Balance = "auto",
    topk_distribution: TopkDistribution = "auto",
    retention: Retention = None,
    lateness: Lateness = "0s",
    max_future: MaxFuture = "1d",
    keep: Keep = None,
    keep_size: KeepSize = None,
    keep_results: KeepResults = None,
    map_: Map = None,
    derive: Derive = None,
    stop_words: StopWords = None,
    index: Index = None,
    idf_period: IdfPeriod = None,
    keep_accents: Accents = None,
    batch_posts: BatchPosts = 800_000,
    deliver: Deliver = None,
    memory: Memory = "3g",
) -> None:
    """Match a stream of posts with standing questions, and keep both.

    Ctrl-C stops cleanly; the next run goes on from there.

    [dim]nearcast run --posts posts/ --queries subscriptions.jsonl --state state --until-drained[/dim]

    [dim]nearcast run --posts world:rate=5000 --queries ops/ --state state --retention 30d[/dim]

    [dim]nearcast run --posts posts/ --state state --derive place,topic=topics.npz,mood=my_module:mood[/dim]
    """
    with loading():
        from nearcast.cli.tables import messages
        from nearcast.engine.settings_check import settings_for
        from nearcast.kinds.relevance.distributions.registry import check_distribution
        from nearcast.sinks.delivery import Delivery
        from nearcast.sinks.protocol import SinkContext
        from nearcast.sinks.registry import open_sinks
        from nearcast.sources.derive.specs import change
        from nearcast.storage.directory import StateDirectory

    check_distribution(topk_distribution)
    check_memory(memory)
    directory = StateDirectory(state.absolute())
    given = {
        "workers": workers, "router": router, "balance": balance, "topk_distribution": topk_distribution,
        "retention": retention, "lateness": lateness, "max_future": max_future,
        "keep": keep, "keep_size": keep_size, "keep_results": keep_results,
        "derive": derive, "stop_words": stop_words or None,
        "index": index, "idf_period": idf_period, "keep_accents": keep_accents,
    }  # fmt: skip
    settings = settings_for(directory, given)
    inputs = inputs_of(posts or [], queries or [], mapping(map_ or []), batch_posts, workers, until_drained)
    if not inputs.posts and not inputs.ops and not directory.exists():
        raise BadInput("nothing to read: give --posts and --queries")
    delivery = Delivery(open_sinks(deliver, SinkContext(directory.root)), tell)
    if settings.derive is not None and (news := change(directory, settings.derive)):
        messages().print(news, soft_wrap=True)
    began = time.monotonic()
    manifest, progress = go(directory, inputs, settings, "nearcast run", until_drained, memory, delivery=delivery)
    seconds = time.monotonic() - began
    counts = manifest.counts
    rejects = f", {counts['rejects']:,} rejects in all (nearcast status tells why)" if counts.get("rejects") else ""
    messages().print(
        f"{progress.batches_told()}, {progress.posts:,} posts, {progress.results:,} results "
        f"in {seconds:.1f} s{rejects}; "
        f"nearcast results --state {state}",
        soft_wrap=True,
    )


def tell(line: str) -> None:
    """A line for the user while the stream goes on; a live view lets it pass above itself."""
    print(f"nearcast: {line}", file=sys.stderr)


def go(
    directory: "StateDirectory",
    inputs: "Inputs",
    settings: Any,
    title: str,
    drain: bool,
    memory: str,
    seconds: float | None = None,
    delivery: "Delivery | None" = None,
    **shown: Any,
) -> Any:
    """Run the pipeline with its progress in view; (the last manifest, what was seen)."""
    from nearcast.cli.progress import Progress
    from nearcast.cli.run_monitor import conduct

    progress = Progress(directory, title, **shown)
    progress.begin(directory.newest() if directory.exists() else None)
    progress.due = None if drain else due_by_clock(inputs)

    def work(stop: Any) -> Any:
        progress.on_stage("loading")
        from nearcast.engine.spark.run import run as run_pipeline

        return run_pipeline(
            str(directory.root),
            inputs,
            settings,
            drain=drain,
            on_commit=progress.on_commit,
            on_stage=progress.on_stage,
            stop=stop,
            memory=memory,
            delivery=delivery,
        )

    return conduct(progress, work, seconds), progress


def due_by_clock(inputs: "Inputs") -> Callable[[float], float] | None:
    """How many posts a generator should have made after so many seconds, where posts come from one."""
    from nearcast.sources.protocol import SourceContext
    from nearcast.sources.registry import open_sources
    from nearcast.sources.world_source import WorldSource

    for source in open_sources(inputs.posts, SourceContext(mapping=inputs.mapping)):
        if isinstance(source, WorldSource) and source.rate is not None:
            rate, most = source.rate, source.count
            return lambda elapsed: min(most, elapsed * rate)
    return None


def check_memory(text: str) -> None:
    import re

    if not re.fullmatch(r"[1-9]\d*[kmgtKMGT]", text):
        raise BadInput(f"--memory {text!r} is no amount of memory: give one such as 3g or 800m")


def inputs_of(
    posts: list[str], queries: list[str], names: dict[str, str], batch_posts: int, workers: int, drain: bool
) -> "Inputs":
    """What was typed after --posts and --queries, checked: a missing file is told now, not when Spark finds out."""
    from nearcast.engine.settings import Inputs
    from nearcast.sources.protocol import OPS, POSTS, SourceContext
    from nearcast.sources.registry import absolute, open_sources

    for role, specs in ((POSTS, posts), (OPS, queries)):
        for source in open_sources(specs, SourceContext(role, mapping=names, drain=drain)):
            source.close()
    return Inputs(absolute(posts), absolute(queries), names, batch_posts, workers)
