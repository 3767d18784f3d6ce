"""`nearcast results`: the outbox, in order."""

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from nearcast.cli.options import Format, FormatOption, StateOption, existing
from nearcast.common.errors import BadInput

FIRST = ("query_id", "seq", "batch", "kind", "post_id", "ts")
WIDTHS = {"seq": 8, "query_id": 22, "kind": 6, "post_id": 12, "ts": 20}


def results(
    state: StateOption,
    query: Annotated[str | None, typer.Option("--query", metavar="ID", help="Only those of one query.")] = None,
    current: Annotated[
        bool, typer.Option("--current", help="The answer as it stands now, not how it came about.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with results as they come, until Ctrl-C.")
    ] = False,
    form: FormatOption = Format.table,
) -> None:
    """Print results in the order of the outbox. A result stays whole after its post has expired.

    [dim]nearcast results --state state --query q1 --follow --format json[/dim]
    """
    from nearcast.cli.tables import messages, print_csv, print_json
    from nearcast.reader.reader import Reader
    from nearcast.reader.results import follow_results, read_results

    directory = existing(state)
    if current:
        print_current(directory, query, follow, form)
        return
    if follow and form is Format.csv:
        raise BadInput("--follow prints table or json: a CSV needs to know all its columns first")
    reader = Reader(directory)

    def rows() -> Iterator[dict[str, Any]]:
        return follow_results(directory, query) if follow else read_results(reader, query)

    if form is Format.json:
        print_json(rows(), flush=follow)
    elif form is Format.csv:
        names = {name: None for row in rows() for name in row}
        print_csv(rows(), tuple(dict.fromkeys((*FIRST, *names))))
    elif not print_lines(rows(), follow) and query is not None:
        message = f"No results of {query}; nearcast subscriptions --state {state} lists what stands"
        messages().print(message, style="dim", markup=False, soft_wrap=True)


def print_current(directory: Any, query: str | None, follow: bool, form: Format) -> None:
    """The answer of one subscription as it stands, as a search would print it."""
    from nearcast.cli.tables import print_rows
    from nearcast.reader.current_answer import read_current
    from nearcast.reader.reader import Reader

    if query is None:
        raise BadInput("--current prints the answer of one subscription: name it with --query ID")
    if follow:
        raise BadInput("--current prints the answer as it stands: leave out --follow")
    answer = read_current(Reader(directory), query)
    print_rows(answer, form, answer.column_names)


def print_lines(rows: Iterable[dict[str, Any]], flush: bool) -> int:
    """One line a result, as they come: number, query, kind, post, time, and what else fits. How many there were."""
    from nearcast.cli.tables import console

    out = console()
    width = out.width
    print("  ".join(name.ljust(size) for name, size in WIDTHS.items()) + "  text")
    count = 0
    for row in rows:
        print(result_line(row, width), flush=flush)
        count += 1
    sys.stdout.flush()
    return count


def result_line(row: dict[str, Any], width: int) -> str:
    from rich.cells import set_cell_size

    from nearcast.reader.row_format import json_row

    row = json_row(row)
    head = []
    for name, size in WIDTHS.items():
        value = row.get("ts", row.get("window_end", "")) if name == "ts" else row.get(name, "")
        value = str(value)[:19] + "Z" if name == "ts" and value else str(value)
        head.append(value.rjust(size) if name == "seq" else set_cell_size(value, max(size, 0)))
    line = "  ".join(head) + "  " + _rest(row).replace("\n", " ")
    return set_cell_size(line, width).rstrip()


def _rest(row: dict[str, Any]) -> str:
    if row["kind"] == "report":
        if "skipped" in row:
            return f"{row['skipped']:,} empty reports before are left out"
        return ", ".join(_reported(each) for each in row["rows"]) or "nothing"
    if "rows" in row:
        return f"{len(row['rows'])} rows: {json.dumps(row['rows'], ensure_ascii=False)}"
    more = [
        f"{name}={row[name]}" for name in row if name not in (*FIRST, "text", "lon", "lat") and row[name] is not None
    ]
    place = (
        [f"({row['lon']:.4f}, {row['lat']:.4f})"] if row.get("lon") is not None and row.get("lat") is not None else []
    )
    return " ".join([str(row.get("text") or ""), *place, *more]).strip()


def _reported(row: dict[str, Any]) -> str:
    """A row of a report: a term and its count, or the values of a group."""
    if row.keys() == {"term", "count"}:
        return f"{row['term']} {row['count']:,}"
    return " ".join(f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in row.items())
