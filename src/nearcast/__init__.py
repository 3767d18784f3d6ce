"""Nearcast: standing and one-off questions about streams of geo-tagged text.

    import nearcast as nc

    state = nc.open("state")                              # a directory; no Spark
    state.search("SELECT …").to_arrow()                   # or .to_pandas(), or iterate
    nc.run(spark, posts=df, queries=qdf, state="state")   # df: any streaming DataFrame
    nc.search_many(spark, queries=sdf, state="state")     # many searches at once: columns id, sql

Importing this is quick: what a function needs is loaded when it is called.
"""

from typing import TYPE_CHECKING, Any

from nearcast import _env

_env.configure()

if TYPE_CHECKING:
    from pathlib import Path

    from nearcast.reader.state import State

__all__ = ["open", "run", "search_many"]


def open(path: "str | Path", cache: "int | str | None" = None) -> "State":
    """A state directory, to search, to read results from, to look at. Needs no Spark and disturbs no run.

    `cache` is memory, "500 MB" say, for answering aggregates that are like earlier ones faster; `cache.status()` of the
    state tells what it is used for.

    Examples:
        >>> import nearcast as nc
        >>> nc.open("state").search("SELECT id, likes FROM stream WHERE likes > 5").to_arrow().to_pydict()
        {'id': [4, 2], 'likes': [12, 9]}
    """
    from nearcast.reader.state import State

    return State(path, cache)


def run(
    spark: Any,
    *,
    posts: Any = None,
    queries: Any = None,
    state: "str | Path" = "state",
    deliver: Any = None,
    **settings: Any,
) -> Any:
    """Match a stream of posts with a stream of ops, into a state directory.

    `posts` and `queries` are streaming DataFrames, or specs of sources as `nearcast run` takes them: paths, "world:…".
    `deliver` is where results go: a folder, another sink's spec, a sink object, or a list of these. `settings` are
    those of `nearcast run`: workers, retention ("30d"), lateness, max_future, keep, keep_size ("20GB"), keep_results,
    mapping, derive ("place,topic=model.npz", or a list of such), drain=True to end when all is read …
    """
    from nearcast.engine.spark import dataframes

    return dataframes.run_dataframes(spark, posts=posts, queries=queries, state=state, deliver=deliver, **settings)


def search_many(spark: Any, queries: Any, state: "str | Path") -> Any:
    """Answer many searches (a DataFrame with id and sql) as a Spark job: a DataFrame with id, rows (JSON) and error."""
    from nearcast.engine.spark import bulk_search

    return bulk_search.search_many(spark, queries, state)
