"""`nearcast search`: rows from a state directory. No Spark."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from nearcast.cli.options import Format, FormatOption, StateOption, existing
from nearcast.common.errors import BadInput

if TYPE_CHECKING:
    from nearcast.storage.directory import StateDirectory


def search(
    state: StateOption,
    sql: Annotated[
        str | None, typer.Argument(metavar='"SELECT …"', help="The question, or EXPLAIN and the question.")
    ] = None,
    form: FormatOption = Format.table,
    stop_words: Annotated[
        str | None,
        typer.Option("--stop-words", metavar="english|FILE", help="Words that TopK leaves out."),
    ] = None,
    idf: Annotated[
        int | None,
        typer.Option("--idf", metavar="V", help="The version of the idf that RELEVANCE uses; the newest unless given."),
    ] = None,
    bulk: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Many searches (id and sql; JSON Lines, CSV or Parquet), as a Spark job."),
    ] = None,
) -> None:
    """Ask once, and get rows: posts newest first, the nearest or the most relevant posts, the most frequent terms, or
    aggregates by group. Needs no Spark; works while a run goes on.

    [dim]nearcast search --state state "SELECT * FROM stream WHERE loc INSIDE CIRCLE(-0.12, 51.5, 5 km)
    AND text OVERLAPS 'coffee espresso' AND time AFTER '2 hours ago' LIMIT 20"

    nearcast search --state state "SELECT * FROM stream ORDER BY DISTANCE(loc, POINT(2.35, 48.86)) LIMIT 10"

    nearcast search --state state "SELECT * FROM stream
    ORDER BY RELEVANCE(POINT(151.2, -33.87), 'ramen sushi discount', 0.6) DESC LIMIT 20"

    nearcast search --state state "SELECT TopK(text, 20) FROM stream WHERE time AFTER '1 hour ago'" --stop-words english

    nearcast search --state state "SELECT topic, Count(id), Avg(length), TopK(text, 3) FROM stream
    WHERE time AFTER '1 day ago' GROUP BY topic HAVING Count(id) > 10 ORDER BY Count(id) DESC LIMIT 20"

    nearcast search --state state --bulk searches.jsonl > answers.jsonl[/dim]
    """
    if (sql is None) == (bulk is None):
        raise BadInput('give one question, "SELECT …", or many with --bulk FILE')
    if bulk is not None and idf is not None:
        raise BadInput("--idf is for one question: searches in bulk use the newest version")
    if bulk is not None:
        search_in_bulk(existing(state), bulk)
        return
    assert sql is not None
    from nearcast.cli.tables import messages, print_rows
    from nearcast.reader.explain import Explanation
    from nearcast.reader.state import State

    reader = State(existing(state).root)
    answer = reader.search(sql, stop_words=stop_words, idf=idf)
    print_rows(answer, form, answer.column_names)
    if isinstance(answer, Explanation):
        return
    if not len(answer) and (reason := reader.why_empty(sql)):
        messages().print(f"nearcast: {reason}", soft_wrap=True, markup=False)
    if answer.notice:
        messages().print(f"nearcast: {answer.notice}", soft_wrap=True)
    if form is Format.table:
        rows = "row" if len(answer) == 1 else "rows"
        more = f", {answer.footnote}" if answer.footnote else ""
        messages().print(f"{len(answer):,} {rows}, {answer.candidates_checked:,} candidates checked{more}", style="dim")


def search_in_bulk(state: "StateDirectory", path: Path) -> None:
    """One JSON object a line, `id` and `rows` (or `error`), in the order of the file."""
    import json

    from nearcast.cli.tables import messages
    from nearcast.engine.spark.bulk_search import search_many
    from nearcast.engine.spark.run import cores
    from nearcast.engine.spark.session import local_session
    from nearcast.sources.formats import whole_file
    from nearcast.sources.op_records import read_ops

    if not path.is_file():
        raise BadInput(f"{path} is no file")
    asked, rejects = read_ops(whole_file(str(path)))
    if "sql" not in asked.column_names or not len(asked):
        raise BadInput(f"{path} has no searches: give rows with id and sql")
    messages().print(f"nearcast: starting Spark for {len(asked):,} searches", style="dim")
    with TemporaryDirectory(prefix="nearcast-") as folder:
        spark = local_session(cores(), log=Path(folder) / "spark.log")
        try:
            columns = (range(len(asked)), asked["sql"].to_pylist())
            queries = spark.createDataFrame(list(zip(*columns, strict=True)), "id long, sql string")
            answers = sorted(search_many(spark, queries, state.root).collect())
        finally:
            spark.stop()
    ids = zip(asked["id"].to_pylist(), asked["id_text"].to_pylist(), strict=True)
    for (number, text), row in zip(ids, answers, strict=True):
        answer = {"rows": json.loads(row.rows)} if row.error is None else {"error": row.error}
        print(json.dumps({"id": number if text is None else text, **answer}, ensure_ascii=False))
    if len(rejects):
        messages().print(f"nearcast: {len(rejects):,} lines are no searches: {rejects['reason'][0]}")
