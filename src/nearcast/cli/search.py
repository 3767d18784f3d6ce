"""`nearcast search`: rows from a state directory. No Spark."""

from typing import TYPE_CHECKING, Annotated

import typer

from nearcast.cli.options import Format, FormatOption, StateOption, existing

if TYPE_CHECKING:
    from nearcast.reader.reader import Answer


def search(
    sql: Annotated[str, typer.Argument(metavar='"SELECT …"', help="The question, or EXPLAIN and the question.")],
    state: StateOption,
    form: FormatOption = Format.table,
    stop_words: Annotated[
        str | None,
        typer.Option("--stop-words", metavar="english|FILE", help="Words that TopK leaves out."),
    ] = None,
) -> None:
    """Ask once, and get rows: posts newest first, the nearest posts, or the most frequent terms. Needs no Spark; works
    while a run goes on.

    [dim]nearcast search --state state "SELECT * FROM stream WHERE loc INSIDE CIRCLE(-0.12, 51.5, 5 km)
    AND text OVERLAPS 'coffee espresso' AND time AFTER '2 hours ago' LIMIT 20"[/dim]
    """
    from nearcast.cli.tables import messages, print_rows
    from nearcast.reader.explain import Explained
    from nearcast.reader.opened import State

    found = State(existing(state).root).search(sql, stop_words)
    if isinstance(found, Explained):
        print_rows(found, form, ("step", "detail"))
        return
    print_rows(found, form, _columns(found))
    if form is Format.table:
        rows = "row" if len(found) == 1 else "rows"
        messages().print(f"{len(found):,} {rows}, {found.candidates_checked:,} candidates checked", style="dim")


def _columns(found: "Answer") -> tuple[str, ...]:
    from nearcast.reader.found import Counted
    from nearcast.reader.rows import row_names

    if isinstance(found, Counted):
        return found.columns
    columns = found.columns or row_names(found.posts.column_names)
    return columns if found.distance_km is None else (*columns, "distance_km")
