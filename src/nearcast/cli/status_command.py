"""`nearcast status`: clock, counts, rejects, disk, leaves, load, balance."""

from dataclasses import asdict
from typing import Any

from nearcast.cli.options import Format, FormatOption, StateOption, existing


def status(state: StateOption, form: FormatOption = Format.table) -> None:
    """Say what a state holds: its clock, counts, rejects and their reasons, disk, leaves, load and balance."""
    from nearcast.cli.tables import print_csv, print_json

    facts = gather(existing(state))
    if form is Format.json:
        print_json([facts])
    elif form is Format.csv:
        print_csv([{"name": name, "value": value} for name, value in flat(facts)], ("name", "value"))
    else:
        print_status(facts)


def gather(directory: Any) -> dict[str, Any]:
    """All figures as one object, times as text."""
    from nearcast.cli.backlog import backlog
    from nearcast.cli.tables import time_text
    from nearcast.reader.reader import Reader
    from nearcast.reader.status import read_status
    from nearcast.sources.inbox import waiting_in_inbox

    reader = Reader(directory)
    found = read_status(reader)
    facts = asdict(found)
    facts["clock"] = time_text(found.clock, "") or None
    facts["first_post"] = time_text(found.first_post, "") or None
    facts["kept_since"] = time_text(found.kept_since, "") or None
    facts["settings"] = {name: _setting(name, value) for name, value in found.settings.items()}
    facts["balance"] = found.balance
    left = backlog(directory, found.batch)
    facts["backlog"] = None if left is None else asdict(left)
    facts["inbox"] = waiting_in_inbox(directory)
    return facts


def _setting(name: str, value: Any) -> Any:
    """A setting as its option takes it, a time as every other; None for the beginning of all."""
    from nearcast.cli.tables import time_text
    from nearcast.common.durations import duration_text
    from nearcast.common.op_schema import BEGINNING

    if name == "idf_period":
        return duration_text(value)
    return time_text(None if value == BEGINNING else value, "") or None if name == "ledger_since" else value


def flat(facts: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Every figure under a name with dots."""
    found: list[tuple[str, Any]] = []
    for name, value in facts.items():
        if isinstance(value, dict):
            found += flat(value, f"{prefix}{name}.")
        elif name in ("load", "owners") and isinstance(value, list):
            for each in value:
                found += flat(each, f"{prefix}{name}.{each.get('worker')}.")
        elif name == "adjustments" and isinstance(value, list):
            for number, each in enumerate(value):
                found += flat(each, f"{prefix}adjustments.{number}.")
        else:
            found.append((prefix + name, value))
    return found


def print_status(facts: dict[str, Any]) -> None:
    from rich.table import Table

    from nearcast.cli.tables import console, size_text

    counts, out = facts["counts"], console()
    standing = facts["subscriptions"]
    head = Table.grid(padding=(0, 3))
    lines = [
        (
            "state",
            f"{facts['state']} · version {facts['version']} · batch {facts['batch']} · {size_text(facts['disk'])}",
        ),
        ("clock", facts["clock"] or "no post yet"),
        (
            "settings",
            ", ".join(f"{name} {value}" for name, value in sorted(facts["settings"].items()) if value is not None),
        ),
        (
            "posts",
            _figures(counts, posts="", stored="stored", duplicates="duplicates", late="late", expired="archived"),
        ),
        *_kept(facts),
        (
            "subscriptions",
            f"{standing['standing']:,} standing, {standing['waiting']:,} waiting, {standing['ended']:,} ended",
        ),
        ("results", _figures(counts, results="", matches="matches")),
        ("rejects", f"{counts.get('rejects', 0):,}"),
        ("backlog", _backlog(facts)),
        ("leaves", f"{facts['leaves']:,} (router {facts['router']})" if facts["router"] else "none yet"),
        ("balance", f"{facts['balance']:.2f} (busiest worker over the mean, last batch)" if facts["balance"] else "-"),
    ]
    for name, value in lines:
        head.add_row(f"[bold]{name}[/]", value)
    out.print(head)
    if facts["rejects"]:
        _print(out, "rejects", ("reason", "count"), list(facts["rejects"].items()))
    kinds = [(name, k["segments"], k["rows"], size_text(k["size"])) for name, k in facts["kinds"].items()]
    _print(out, "files", ("kind", "segments", "rows", "size"), kinds)
    if facts["load"]:
        names = list(dict.fromkeys(name for worker in facts["load"] for name in worker))
        _print(out, "load of the last batch", names, [tuple(w.get(name, "") for name in names) for w in facts["load"]])

    if facts["owners"]:
        names = list(facts["owners"][0])
        _print(out, "leaves by worker", names, [tuple(each[name] for name in names) for each in facts["owners"]])
    if facts["adjustments"]:
        columns = ("batch", "strategy", "cause", "cost", "predicted", "measured")
        _print(out, "last adjustments", columns, [_adjustment(each) for each in facts["adjustments"][::-1]])


def _kept(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """What posts take, of what they may, and what has left; nothing to tell where neither is so."""
    from nearcast.cli.tables import size_text

    budget, since, kinds = facts["settings"].get("keep_size"), facts["kept_since"], facts["kinds"]
    if budget is None and since is None:
        return []
    size = sum(kinds[name]["size"] for name in ("posts", "archive") if name in kinds)
    told = size_text(size) + (f" of {size_text(budget)} (--keep-size)" if budget is not None else "")
    if budget is not None and size > budget:
        told += ", too little for the newest slot and the windows of standing queries, which are never dropped"
    coarse = f"; from before {since} {facts['counts'].get('coarse', 0):,} posts in coarse slots only" if since else ""
    return [("kept", told + coarse)]


def _adjustment(each: dict[str, Any]) -> tuple[Any, ...]:
    cost = f"{each['queries']:,} subscriptions, {each['decided_ms'] + each['adjusted_ms']:.0f} ms"
    effect = f"busiest worker {each['busiest_before']:,.1f} → {each['busiest_after']:,.1f} ms a batch"
    return each["batch"], each["strategy"], each["cause"], cost, effect, _measured(each)


def _measured(each: dict[str, Any]) -> str:
    """What the batches after an adjustment were like, and how long its own took beside them."""
    parts = []
    if "ratio_measured" in each:
        ratios = [_shown(each[name]) for name in ("ratio_before", "ratio_measured")]
        parts.append(f"busiest {each['busiest_measured']:,.1f} ms, L_max / L_min {' → '.join(ratios)}")
    others = [
        f"{each[name]:.2f} s {word}" for name, word in (("earlier_s", "before"), ("later_s", "after")) if name in each
    ]
    if "batch_s" in each:
        parts.append(f"its batch {each['batch_s']:.2f} s" + (f" ({', '.join(others)})" if others else ""))
    return "; ".join(parts) or "not yet"


def _shown(ratio: float | None) -> str:
    return "∞" if ratio is None else f"{ratio:g}"


def _figures(counts: dict[str, int], **names: str) -> str:
    shown = [
        f"{counts.get(name, 0):,} {label}".strip() for name, label in names.items() if not label or counts.get(name)
    ]
    return ", ".join(shown)


def _backlog(facts: dict[str, Any]) -> str:
    left = facts["backlog"]
    files = "unknown" if left is None else f"{left['posts']:,} posts, {left['ops']:,} ops of the files given"
    return f"{files}; {facts['inbox']:,} in the inbox"


def _print(out: Any, title: str, columns: Any, rows: list[tuple[Any, ...]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", title_style="bold", show_edge=False, pad_edge=False)
    for number, name in enumerate(columns):
        numeric = all(isinstance(row[number], int | float) for row in rows) or name == "size"
        table.add_column(name, justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(Text(f"{v:,}" if isinstance(v, int) else str(v)) for v in row))
    out.print()
    out.print(table)
