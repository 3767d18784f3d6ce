"""The registry of the kinds of question: range, relevance, nearest, terms, aggregates, and those that users add.

A kind is a package with the same modules in each, one for each role that it plays:

- `query`: its question, from text or columns to what travels to the workers (`language.roles.QueryRole`);
- `standing`: what workers do for its subscriptions in a batch (`engine.roles.StandingRole`);
- `search`: its question asked once (`reader.roles.SearchRole`);
- `reports`: what it reports on a tick, where it does (`engine.roles.ReportsRole`);
- `warmup`: questions by which its kernels are compiled before they are needed (`engine.roles.WarmUp`);
  a kind may do without.

Each of these modules has the role as an object named `ROLE`; it is imported when it is first needed. Language, reader
and engine know kinds by this registry alone. Kinds of other distributions are found by entry points of the group
`nearcast.kinds`, or by the environment variable NEARCAST_KINDS: both name objects, `package:KIND`.
"""

import os
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nearcast.engine.roles import ReportsRole, StandingRole, WarmUp
    from nearcast.language.roles import QueryRole
    from nearcast.reader.roles import SearchRole

ENVIRONMENT = "NEARCAST_KINDS"
GROUP = "nearcast.kinds"
_OWN = tuple(f"nearcast.kinds.{name}:KIND" for name in ("range", "relevance", "nearest", "terms", "aggregates"))


@dataclass(frozen=True)
class Kind:
    """A kind of question: its name, its number, and where its roles are.

    `code` stands for it in the column `asks` of ops and in the facts of segments, and is its bit among a post's marks;
    it is below 64, below 32 for our own.

    - `placed`: a subscription is kept by the workers whose leaves it concerns, not by all.
    - `reporting`: it has the role `reports`.
    - `windowed`: with `--keep none` posts that it may want are kept for as long as a window reaches them.
    - `distributed`: a way of its own, not the router, deals its subscriptions out to workers.
    - `columns`: which optional columns of `storage.subscriptions.rows.Rows` its subscriptions fill: `points` (a place
      and k), `ticks` (window, SYNC and k) or `scoring` (a place, k and how posts are scored).
    - `keeps`: the kinds of segments that are its own, besides subscriptions.
    - `remembers`: those of them that tell, with `--keep none`, which posts have come already.
    """

    name: str
    code: int
    package: str
    placed: bool = False
    reporting: bool = False
    windowed: bool = False
    distributed: bool = False
    columns: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    remembers: tuple[str, ...] = ()

    @property
    def mark(self) -> int:
        """Its bit among the marks of a routed post."""
        return 1 << self.code

    @cached_property
    def query(self) -> "QueryRole":
        return self._role("query")

    @cached_property
    def standing(self) -> "StandingRole":
        return self._role("standing")

    @cached_property
    def search(self) -> "SearchRole":
        return self._role("search")

    @cached_property
    def reports(self) -> "ReportsRole":
        return self._role("reports")

    @cached_property
    def warmup(self) -> "WarmUp | None":
        return self._role("warmup") if find_spec(f"{self.package}.warmup") else None

    def _role(self, name: str) -> Any:
        return import_module(f"{self.package}.{name}").ROLE


@cache
def kinds() -> tuple[Kind, ...]:
    """All kinds, in the order in which they have their turn in a batch."""
    more = [point.value for point in entry_points(group=GROUP)]
    more += [name for name in os.environ.get(ENVIRONMENT, "").split(",") if name]
    found: dict[int, Kind] = {}
    for path in (*_OWN, *more):
        module, _, name = path.partition(":")
        kind: Kind = getattr(import_module(module), name or "KIND")
        found.setdefault(kind.code, kind)
    return tuple(found.values())


@cache
def kind_coded(code: int) -> Kind:
    return next(kind for kind in kinds() if kind.code == code)


@cache
def kind_named(name: str) -> Kind:
    return next(kind for kind in kinds() if kind.name == name)


@cache
def codes(trait: str) -> tuple[int, ...]:
    """The codes of the kinds that have a trait: `placed`, `reporting`, `windowed` or `distributed`."""
    return tuple(kind.code for kind in kinds() if getattr(kind, trait))


@cache
def marks_of(trait: str) -> int:
    """The marks of all kinds that have a trait."""
    return sum(1 << code for code in codes(trait))
