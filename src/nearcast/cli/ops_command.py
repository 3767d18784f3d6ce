"""`nearcast subscribe`, `unsubscribe`, `subscriptions`: ops by hand, and what stands."""

import json
import secrets
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearcast.cli.options import Format, FormatOption, StateOption, existing
from nearcast.common.errors import BadInput
from nearcast.common.moments import moment_of

if TYPE_CHECKING:
    from nearcast.storage.directory import StateDirectory

TsOption = Annotated[
    str | None, typer.Option("--ts", metavar="TIME", help="When it counts from, in stream time; else the clock.")
]


def subscribe(
    sql: Annotated[str, typer.Argument(metavar='"SELECT …"', help="What to match from now on.")],
    state: StateOption,
    name: Annotated[str | None, typer.Option("--id", metavar="ID", help="Its id; one is made up unless given.")] = None,
    ts: TsOption = None,
) -> None:
    """Let a question stand: it waits in the state's inbox for the next batch, of this run or of the next.

    [dim]nearcast subscribe --state state --id floods
    "SELECT * FROM stream WHERE loc INSIDE RECT(-74.3, 40.5, -73.7, 40.9) AND text CONTAINS 'flood AND NOT drill'"

    nearcast subscribe --state state --id lunch "SELECT * FROM stream
    ORDER BY RELEVANCE(POINT(151.2, -33.87), 'ramen sushi discount', 0.6, 10 km) DESC LIMIT 20 WINDOW 4 HOURS"[/dim]
    """
    from nearcast.common.text.tokenizer import Tokenizer
    from nearcast.language import check_subscription, parse
    from nearcast.storage.named_regions import Regions

    directory = existing(state)
    settings = directory.newest().settings
    tokenizer = Tokenizer(keep_accents=bool(settings.get("keep_accents")))
    statement = parse(sql, tokenizer, Regions(directory.root))
    if statement.explain:
        raise BadInput("EXPLAIN is for searches: nearcast search shows the plan")
    check_subscription(statement)
    id_ = _given(name) if name is not None else _made_up(sql)
    directory.add_to_inbox({"op": "subscribe", "id": id_, "sql": sql, **_timed(ts)})
    print(id_)


def unsubscribe(
    name: Annotated[str, typer.Argument(metavar="ID", help="The id it was subscribed under.")],
    state: StateOption,
    ts: TsOption = None,
) -> None:
    """End a subscription, at the next batch."""
    from nearcast.cli.tables import messages

    directory = existing(state)
    id_, found = _known(directory, name)
    directory.add_to_inbox({"op": "unsubscribe", "id": id_, **_timed(ts)})
    if not found:
        note = f"nearcast: no subscription {name} stands: this waits in the inbox, and is a reject if none comes first"
        messages().print(note, soft_wrap=True, markup=False)


def subscriptions(
    state: StateOption,
    everything: Annotated[bool, typer.Option("--all", help="Those that have ended, too.")] = False,
    form: FormatOption = Format.table,
) -> None:
    """List the subscriptions that stand: id, query, start, end (in stream time; empty for no bound) and status."""
    from nearcast.cli.tables import messages, print_rows, time_text
    from nearcast.reader.subscription_list import Subscriptions
    from nearcast.sources.inbox import waiting_in_inbox

    directory = existing(state)
    found = Subscriptions(directory)

    def rows() -> Any:
        for each in found.all(ended=everything):
            yield each.row() | {name: time_text(getattr(each, name), "") or None for name in ("start", "end")}

    print_rows(rows(), form, ("id", "sql", "start", "end", "status"))
    waiting = waiting_in_inbox(directory)
    if waiting:
        ops = "op waits" if waiting == 1 else "ops wait"
        messages().print(f"{waiting} more {ops} in the inbox for the next batch", style="dim")


def _timed(ts: str | None) -> dict[str, Any]:
    """Ops carry milliseconds, or text with all its digits."""
    if ts is None:
        return {}
    moment_of(ts, "--ts")
    return {"ts": int(ts) if ts.lstrip("-").isdigit() else ts}


def _given(name: str) -> str:
    if not name.strip():
        raise BadInput("--id is empty: give the subscription a name, or leave --id out")
    return name


def _made_up(sql: str) -> str:
    """A name one can say and that no other has: the first words of the question, and some letters."""
    import re

    words = re.findall(
        r"[^\W_]{3,}", " ".join(re.findall(r"(?:CONTAINS\s|OVERLAPS\s|\),)\s*['\"]([^'\"]+)", sql, re.IGNORECASE))
    )
    kept = [word.lower() for word in islice((w for w in words if w not in ("AND", "NOT")), 2)]
    return "-".join([*kept, secrets.token_hex(3)]) if kept else f"q-{secrets.token_hex(3)}"


def _known(directory: "StateDirectory", name: str) -> tuple[str | int, bool]:
    """The id as it was given, for a number from a file is not the same id as its digits; and whether it stands, or
    comes before in the inbox.
    """
    from nearcast.reader.subscription_list import Subscriptions

    found = Subscriptions(directory)
    if found.has(name):
        return name, True
    if name.removeprefix("-").isdecimal() and found.has(int(name)):
        return int(name), True
    waiting = (json.loads(path.read_text("utf-8")) for path in directory.inbox.glob("*.jsonl"))
    return name, any(op.get("op") == "subscribe" and op.get("id") == name for op in waiting)
