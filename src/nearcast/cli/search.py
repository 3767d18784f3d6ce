"""`nearcast search`: rows from a state directory. No Spark."""

from typing import Annotated

import typer

from nearcast.cli.options import Format, FormatOption, StateOption, existing

BASE = ("id", "ts", "lon", "lat", "text")


def search(
    sql: Annotated[str, typer.Argument(metavar='"SELECT …"', help="The question, or EXPLAIN and the question.")],
    state: StateOption,
    form: FormatOption = Format.table,
) -> None:
    """Ask once, and get rows: newest first, ties by id. Needs no Spark; works while a run goes on.

    [dim]nearcast search --state state "SELECT * FROM stream WHERE loc INSIDE CIRCLE(-0.12, 51.5, 5 km)
    AND text OVERLAPS 'coffee espresso' AND time AFTER '2 hours ago' LIMIT 20"[/dim]
    """
    from nearcast.cli.tables import messages, print_rows
    from nearcast.reader.explain import Explained
    from nearcast.reader.opened import State

    found = State(existing(state).root).search(sql)
    if isinstance(found, Explained):
        print_rows(found, form, ("step", "detail"))
        return
    columns = found.columns or tuple(dict.fromkeys((*BASE, *_attributes(found.posts.column_names))))
    print_rows(found, form, columns)
    if form is Format.table:
        rows = "row" if len(found) == 1 else "rows"
        messages().print(f"{len(found):,} {rows}, {found.candidates_checked:,} candidates checked", style="dim")


def _attributes(names: list[str]) -> list[str]:
    from nearcast.model.posts import attribute_of

    return [attribute[0] for attribute in map(attribute_of, names) if attribute is not None]
