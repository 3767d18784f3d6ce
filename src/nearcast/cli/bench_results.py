"""Saving what a benchmark measured, with its command and its machine: the documentation's figures come from there."""

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nearcast.common.errors import BadInput

FOLDER = Path("docs") / "benchmarks"  # of the checkout that one stands in
NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


def save(result: dict[str, Any], bench: str, words: Sequence[str], options: dict[str, Any], name: str | None) -> Path:
    """Write a result to a file. Without a name it takes the place of the one that the same command gave before.

    `words` are the options as they were typed, `options` what they mean.
    """
    command = shlex.join(("nearcast", "bench", bench, *words))
    name = name or _named_before(command) or _plain("-".join((bench, *words)))
    if not NAME.fullmatch(name):
        raise BadInput(f"--save-as {name}: small letters, digits and hyphens make a name")
    path = FOLDER / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    rest = {key: value for key, value in result.items() if key not in ("bench", "parameters")}
    saved = {"bench": bench, "command": command, "parameters": options, "settings": result.get("parameters"), **rest}
    path.write_text(as_text(saved), encoding="utf-8")
    return path


def as_text(saved: dict[str, Any]) -> str:
    """JSON as it is committed: a list of plain values on one line, everything else by lines."""
    text = json.dumps(saved, ensure_ascii=False, indent=1, default=plain)
    return re.sub(r"\[\n([^][{}]*)\n *\]", _on_one_line, text) + "\n"


def _on_one_line(found: re.Match[str]) -> str:
    return "[" + " ".join(line.strip() for line in found[1].split("\n")) + "]"


def plain(value: Any) -> Any:
    """A NumPy number as Python's."""
    return value.item() if hasattr(value, "item") else str(value)


def _named_before(command: str) -> str | None:
    for path in sorted(FOLDER.glob("*.json")):
        if shlex.split(json.loads(path.read_text(encoding="utf-8"))["command"]) == shlex.split(command):
            return path.stem
    return None


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
