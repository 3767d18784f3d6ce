"""`nearcast bench NAME`: figures, printed with what they were measured on."""

import inspect
import json
import sys
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer

from nearcast.cli.bench_results import plain, save
from nearcast.common.errors import BadInput


def bench(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Which; without one they are listed.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One object with the figures on standard output.")] = False,
    keep: Annotated[
        bool, typer.Option("--save", help="Keep the result under docs/benchmarks, for the documentation's tables.")
    ] = False,
    save_as: Annotated[
        str | None, typer.Option("--save-as", metavar="NAME", help="The same, by a name of your choice.")
    ] = None,
) -> None:
    """Measure, with progress on stderr. Options of a benchmark follow its name as --option value.

    [dim]nearcast bench pubsub --json · nearcast bench pipeline --profile --save[/dim]
    """
    if name is None:
        for each in names():
            print(f"{each:12} {_module(each).SUMMARY}")
        return
    if name not in names():
        raise BadInput(f"there is no benchmark {name!r}: there is {', '.join(names())}")
    module = _module(name)
    options = _options(name, context.args, module.run)
    figures = module.run(lambda text: print(text, file=sys.stderr, flush=True), **options)
    if keep or save_as:
        path = save(figures, name, context.args, options, save_as)
        print(f"saved as {path}", file=sys.stderr)
    if as_json:
        print(json.dumps(figures, ensure_ascii=False, default=plain))
    else:
        print_figures(name, module.SUMMARY, figures)


def names() -> list[str]:
    """All benchmarks that are installed, by entry points of the group `nearcast.benchmarks`."""
    found = sorted(entry_points(group="nearcast.benchmarks").names)
    if not found:
        raise BadInput("no benchmarks are installed here: pip install nearcast-papers brings them")
    return found


def _module(name: str) -> Any:
    return entry_points(group="nearcast.benchmarks")[name].load()


def _options(name: str, words: list[str], run: Any) -> dict[str, Any]:
    """'--posts 1000 --profile' as keyword arguments, of those the benchmark takes."""
    taken = [p for p in inspect.signature(run).parameters.values() if p.name != "progress"]
    free = any(p.kind is p.VAR_KEYWORD for p in taken)
    allowed = [p.name for p in taken if p.kind is not p.VAR_KEYWORD]
    found: dict[str, Any] = {}
    at = 0
    while at < len(words):
        word = words[at]
        key, equals, value = word.removeprefix("--").partition("=")
        key = key.replace("-", "_")
        if not word.startswith("--") or not (free or key in allowed):
            shown = ", ".join("--" + each.replace("_", "-") for each in allowed)
            raise BadInput(f"bench {name} takes no {word}; it takes {shown or 'no options'}")
        if not equals and at + 1 < len(words) and not words[at + 1].startswith("--"):
            at += 1
            equals, value = "=", words[at]
        found[key] = _value(value) if equals else True
        at += 1
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text.replace("_", "") if text.replace("_", "").isdigit() else text)
    except ValueError:
        return text


def print_figures(name: str, summary: str, figures: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    from nearcast.cli.status_command import flat
    from nearcast.cli.tables import console

    table = Table(title=f"bench {name}: {summary}", title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("figure")
    table.add_column("value", justify="right")
    for key, value in flat(figures):
        table.add_row(Text(key), Text(f"{value:,.6g}" if isinstance(value, float) else _figure(value)))
    console().print(table)


def _figure(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
