"""What a query text means, before any plan is made for it."""

from dataclasses import dataclass
from typing import ClassVar

from nearcast.common.expressions import Expression
from nearcast.common.geo.shapes import Region

Scalar = int | float | bool | str


@dataclass(frozen=True)
class Predicate:
    """A condition on an attribute: `op` is one of = <> < <= > >= between in not_in is_null is_not_null.

    A comparison with a missing value, or with a value of another kind, is false.
    """

    name: str
    op: str
    values: tuple[Scalar, ...] = ()


@dataclass(frozen=True)
class TimeBound:
    """A moment: absolute (`at`, microseconds) or relative to the stream's clock (`ago`, microseconds before it)."""

    at: int | None = None
    ago: int | None = None


@dataclass(frozen=True, kw_only=True)
class Query:
    """What every kind of question may ask of a post (its WHERE), and for how long (FOR); each kind has a subclass.

    `after` is exclusive; `since` and `until` are inclusive (they come from BETWEEN). `life` (FOR) is in microseconds.
    `kind` is the name of the kind (`common.kinds`).
    """

    kind: ClassVar[str] = ""

    region: Region | None = None
    text: Expression | None = None
    predicates: tuple[Predicate, ...] = ()
    after: TimeBound | None = None
    since: TimeBound | None = None
    until: TimeBound | None = None
    life: int | None = None


@dataclass(frozen=True)
class Statement:
    """A query as typed, and whether only its plan was asked for (EXPLAIN)."""

    query: Query
    explain: bool
    sql: str
