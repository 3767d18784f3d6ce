"""Rows on the terminal, as JSON lines or as CSV."""

import csv
import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from nearcast.cli.options import Format
from nearcast.reader.row_format import iso, json_row

Row = dict[str, Any]
MOST_ROWS = 1000  # of a table; who wants more wants another format


def console() -> Console:
    """Standard output: as wide as the terminal, or wide enough for a file."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 160, soft_wrap=False)


def messages() -> Console:
    return Console(stderr=True, highlight=False)


def print_rows(rows: Iterable[Row], form: Format, columns: Sequence[str]) -> None:
    """Print rows that all have the same columns."""
    if form is Format.json:
        print_json(rows)
    elif form is Format.csv:
        print_csv(rows, columns)
    else:
        print_table(rows, columns)


def print_json(rows: Iterable[Row], flush: bool = False) -> None:
    for row in rows:
        print(as_json(row), flush=flush)


def as_json(row: Row) -> str:
    """One line, times as text. What JSON cannot say (NaN, infinity) is null."""
    shown = json_row(row)
    try:
        return json.dumps(shown, ensure_ascii=False, allow_nan=False, default=str)
    except ValueError:
        return json.dumps(_finite(shown), ensure_ascii=False, default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list) else value


def print_csv(rows: Iterable[Row], columns: Sequence[str]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        shown = json_row(row)
        writer.writerow([_cell(shown.get(name)) for name in columns])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _shown(value: Any) -> str:
    """As in CSV, but for lists of frequent terms, which are for reading here."""
    if isinstance(value, list) and value and all(isinstance(e, dict) and {"term", "count"} <= set(e) for e in value):
        return ", ".join(f"{each['term']} {'≤' if each.get('error') else ''}{each['count']:,}" for each in value)
    return _cell(value)


def print_table(rows: Iterable[Row], columns: Sequence[str]) -> None:
    """A table that fits the terminal; of very many rows the first, and a note on stderr that there are more."""
    waiting: Iterator[Row] = iter(rows)
    shown = list(islice(waiting, MOST_ROWS))
    table = Table(header_style="bold", expand=False, pad_edge=False, show_edge=False)
    for name in columns:
        numeric = name != "ts" and all(isinstance(row.get(name), (int, float, type(None))) for row in shown)
        wide = name in ("text", "sql", "detail", "rows", "region", "words")
        table.add_column(
            name, justify="right" if numeric else "left", overflow="ellipsis", no_wrap=not wide, ratio=None,
            min_width=24 if wide else None, max_width=None if wide else 28,
        )  # fmt: skip
    for row in shown:
        readable = json_row(row)
        table.add_row(*(Text(_shown(readable.get(name))) for name in columns))
    console().print(table)
    rest = sum(1 for _ in waiting)
    if rest:
        note = f"the first {MOST_ROWS:,} of {MOST_ROWS + rest:,} rows; LIMIT asks for fewer, --format json prints all"
        messages().print(note, style="dim")


def time_text(micros: int | None, missing: str = "-") -> str:
    return missing if micros is None else iso(micros)


def size_text(size: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
