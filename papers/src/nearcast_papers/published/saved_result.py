"""A result of `nearcast bench NAME --save`: figures, with the command, the machine, the version and the day."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nearcast.common.errors import BadInput

NEEDED = ("bench", "command", "parameters", "machine", "figures")
MACHINE = ("date", "cores", "cpu", "memory_gb", "nearcast")


@dataclass(frozen=True)
class SavedResult:
    """`name` is that of its file. `content` is all that the file holds."""

    name: str
    content: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> "SavedResult":
        content = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_numbered)
        missing = [key for key in NEEDED if key not in content]
        missing += [f"machine.{key}" for key in MACHINE if key not in content.get("machine", {})]
        if missing:
            raise BadInput(f"{path} is no saved result: it lacks {', '.join(missing)}")
        return cls(path.stem, content)

    @property
    def bench(self) -> str:
        return str(self.content["bench"])

    @property
    def command(self) -> str:
        return str(self.content["command"])

    @property
    def figures(self) -> dict[str, Any]:
        found: dict[str, Any] = self.content["figures"]
        return found

    @property
    def entered(self) -> bool:
        """Whether it was entered from an earlier version's documentation: such a result has some figures only."""
        return "source" in self.content

    def at(self, path: str) -> Any:
        """What stands at a path of names with colons between them, under the figures or else at the top."""
        names = path.split(":")
        value: Any = self.figures if names[0] in map(str, self.figures) else self.content
        for name in names:
            value = {str(key): each for key, each in value.items()}[name]
        return value

    def has(self, path: str) -> bool:
        try:
            self.at(path)
        except (KeyError, AttributeError):
            return False
        return True

    @property
    def measured(self) -> str:
        """One line: when, by which version, on what."""
        facts = self.content["machine"]
        version = f"version {facts['nearcast']}" + (f", commit {facts['commit']}" if facts.get("commit") else "")
        python = f", Python {facts['python']}" if facts.get("python") else ""
        where = f"{facts['cores']} cores ({facts['cpu']}), {facts['memory_gb']:g} GB{python}"
        return f"{facts['date']}, {version}, on {where}"


def read_all(folder: Path) -> dict[str, SavedResult]:
    """All saved results of a folder by name."""
    found = {path.stem: SavedResult.read(path) for path in sorted(folder.glob("*.json"))}
    if not found:
        raise BadInput(f"{folder} holds no saved results: `nearcast bench NAME --save` makes them")
    return found


def _numbered(pairs: list[tuple[str, Any]]) -> dict[Any, Any]:
    """JSON's objects have text for keys: numbers are numbers again, as benchmarks gave them."""
    return {int(key) if key.isdigit() else key: value for key, value in pairs}
