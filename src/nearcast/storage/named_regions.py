"""The regions that have been given a name: one small file of the state, `{"downtown": "RECT(…)", …}`."""

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from nearcast.common.errors import BadInput
from nearcast.common.geo.shapes import Region
from nearcast.language.places import named, parse_region
from nearcast.storage.files import write_text

FILE = "regions.json"


class Regions(Mapping[str, Region]):
    """The named regions of the state in a directory, as its file has them whenever one is asked for.

    Nothing is read until a query uses a name, so passing this along costs nothing. It travels to other processes.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def __getitem__(self, name: str) -> Region:
        return _region(self.texts()[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts())

    def __len__(self) -> int:
        return len(self.texts())

    @property
    def path(self) -> Path:
        return self.root / FILE

    def texts(self) -> dict[str, str]:
        """The regions as they were spelled, by name."""
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError:
            found = None
        if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
            raise BadInput(f"{self.path} is broken: remove it, and add the regions again with nearcast region add")
        return found

    def add(self, name: str, text: str) -> str | None:
        """Give the region that `text` spells a name; what the name stood for before, if anything.

        QueryError where the text spells no region, BadInput where the name cannot be one.
        """
        named(name)
        parse_region(text)
        with self._alone():
            texts = self.texts()
            before = texts.get(name)
            write_text(self.path, _written({**texts, name: text}))
        return before

    def remove(self, name: str) -> None:
        """Forget a name that is there; KeyError otherwise."""
        with self._alone():
            texts = self.texts()
            del texts[name]
            write_text(self.path, _written(texts))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One change at a time, or the slower of two would undo the other."""
        self.root.mkdir(parents=True, exist_ok=True)
        with open(self.root / "lock.regions", "a", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


@lru_cache(maxsize=1000)
def _region(text: str) -> Region:
    return parse_region(text)


def _written(texts: dict[str, str]) -> str:
    return json.dumps(texts, ensure_ascii=False, indent=1) + "\n"
