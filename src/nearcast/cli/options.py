"""What several commands take: a state, a format, mappings."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
