"""What several commands take: a state, a format, mappings, worlds."""

import re
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearcast.common.errors import BadInput

if TYPE_CHECKING:
    from nearcast.storage.directory import StateDirectory

FIELDS = ("id", "ts", "lat", "lon", "text")


class Format(StrEnum):
    table = "table"
    json = "json"
    csv = "csv"


StateOption = Annotated[Path, typer.Option("--state", metavar="DIR", help="The state directory.")]
FormatOption = Annotated[Format, typer.Option("--format", help="How rows are printed; json is one object a line.")]


def existing(path: Path) -> "StateDirectory":
    """A state directory that is there."""
    from nearcast.storage.directory import StateDirectory

    state = StateDirectory(path)
    if not state.exists():
        what = "is not a Nearcast state directory" if path.exists() else "does not exist"
        raise BadInput(f"{path} {what}: nearcast run --state {path} makes one")
    return state


def mapping(texts: list[str]) -> dict[str, str]:
    """'ts=created_at,text=comments': our field and the name it has in the files."""
    found: dict[str, str] = {}
    for part in (part for text in texts for part in text.split(",") if part.strip()):
        field, equals, name = (piece.strip() for piece in part.partition("="))
        if not equals or not field or not name:
            raise BadInput(f"--map {part!r} is no mapping: give FIELD=NAME, such as ts=created_at,text=comments")
        if field not in FIELDS:
            raise BadInput(f"--map {part}: a post has no field {field}; its fields are {', '.join(FIELDS)}")
        if found.get(field, name) != name:
            raise BadInput(f"--map: {field} is given twice, as {found[field]} and as {name}")
        found[field] = name
    return found


def moment(option: str, text: str) -> int:
    """An ISO 8601 time (UTC unless it says otherwise), or milliseconds since the epoch, in microseconds."""
    if re.fullmatch(r"-?\d{1,15}", text):
        return int(text) * 1000
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"{option} {text!r} is not a time: give one such as 2026-05-01T12:00:00Z") from None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return round(at.timestamp() * 1_000_000)


def world(text: str) -> tuple[dict[str, Any], float | None, int | None] | None:
    """(fields of a World, posts a second of wall time, how many posts) of 'world:seed=1,rate=2000,count=100000'.

    None if the text is something else, a path. 'rate=max' makes posts as fast as they are taken.
    """
    head, _, rest = text.partition(":")
    if head != "world":
        return None
    fields: dict[str, Any] = {}
    rate: float | None = 2000.0
    count: int | None = None
    for part in (part for part in rest.split(",") if part.strip()):
        name, _, value = (piece.strip() for piece in part.partition("="))
        try:
            if name == "rate":
                rate = None if value == "max" else float(value)
                fields |= {} if rate is None else {"rate": rate}
            elif name == "count":
                count = int(value)
            elif name == "start":
                fields["start"] = moment("world:start", value)
            elif name in ("seed", "vocabulary"):
                fields[name] = int(value)
            else:
                raise BadInput(f"a world has no {name or 'such part'}: give seed, rate, count, start or vocabulary")
        except ValueError:
            raise BadInput(f"world: {name}={value} is no number") from None
    return fields, rate, count
