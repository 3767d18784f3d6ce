"""The question for aggregates by group."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from nearcast.common.queries import Query, Statement
from nearcast.kinds.aggregates.measures import FUNCTIONS, Measure
from nearcast.kinds.aggregates.select import Having, Ordering, Output, aggregate
from nearcast.language.locate import error_at, name_span, read_again
from nearcast.language.parsed_select import ParsedSelect
from nearcast.language.roles import QueryRole, Refusal
from nearcast.language.standing_times import check_slides, check_sync
from nearcast.language.syntax import Select

__all__ = ["ROLE", "AggregateQuery", "Having", "Measure", "Ordering", "Output", "decode_aggregates"]

_APPROXIMATE = Refusal(
    "APPROXIMATE is for TopK and Count, and everything else is exact anyway",
    "TopK(text, 10) in the SELECT, or no APPROXIMATE",
)


@dataclass(frozen=True, kw_only=True)
class AggregateQuery(Query):
    """Aggregates of the posts that meet the conditions, by group (STAR's snapshot and continuous queries).

    One row a group; a post without an attribute is in the group of its null. Without GROUP BY there is one row, also of
    no posts. Rows come in `order`, nulls last, ties by the attributes of the GROUP BY in their order (ascending, nulls
    last, numbers before times before strings before truth values); at most `limit` of them. `sync` as in TermsQuery.
    `approximate`: TopK may come from summaries, with its error bound; and what is no longer kept (`--keep-size`) is
    counted from coarse slots, where a count or TopK is by place and time alone.
    """

    kind: ClassVar[str] = "aggregates"

    outputs: tuple[Output, ...]
    group_by: tuple[str, ...] = ()
    having: tuple[Having, ...] = ()
    order: tuple[Ordering, ...] = ()
    limit: int | None = None
    sync: int | None = None
    approximate: bool = False

    def values(self) -> Iterator[Measure | str]:
        """The aggregates and attributes that it names, all of them."""
        yield from (each.value for each in self.outputs)
        yield from (each.value for each in self.having)
        yield from (each.value for each in self.order)


class AggregatesQueryRole(QueryRole):
    """A SELECT with an aggregate, unless that is a TopK alone, or with a GROUP BY."""

    functions = FUNCTIONS
    clauses = frozenset({"GROUP", "HAVING", "ORDER", "LIMIT", "SYNC", "APPROXIMATE"})
    particular_clauses: ClassVar = {"APPROXIMATE": _APPROXIMATE}
    identity = ("window", "sync")

    def claims(self, select: Select) -> bool:
        if select.calls:
            return super().claims(select)
        return any(clause.word == "GROUP" for clause in select.clauses)

    def meaning(self, parsed: ParsedSelect) -> AggregateQuery:
        approximate, functions = parsed.select.approximate, {call.name.text.lower() for call in parsed.select.calls}
        if approximate and not functions & {"topk", "count"}:
            raise parsed.error(approximate, *_APPROXIMATE)
        return AggregateQuery(**parsed.where(), **aggregate(parsed))

    def check_subscription(self, statement: Statement) -> None:
        query = statement.query
        assert isinstance(query, AggregateQuery)
        check_slides(statement)
        if query.approximate:
            select = read_again(statement.sql)
            message = "the reports of a subscription are exact; APPROXIMATE is for searches"
            raise error_at(statement, select.approximate if select else None, message, "no APPROXIMATE")
        check_sync(statement, query.sync, "aggregates")

    def attributes(self, query: AggregateQuery) -> set[str]:
        named = (each.of if isinstance(each, Measure) else each for each in (*query.group_by, *query.values()))
        return super().attributes(query) | {name for name in named if name is not None} - {"text", "ts"}

    def check_numbers(self, statement: Statement, kinds: Mapping[str, Collection[str]]) -> None:
        query = statement.query
        assert isinstance(query, AggregateQuery)
        for value in query.values():
            if not isinstance(value, Measure) or value.function in ("count", "topk") or value.of in (None, "ts"):
                continue
            wanted, what = ("ift", "numbers or times") if value.function in ("min", "max") else ("if", "numbers")
            have = kinds.get(value.of or "", "")
            if have and not set(have) & set(wanted):
                are = "times" if "t" in have else "strings" if {*have} <= {"s", "j"} else "no numbers"
                message = f"{FUNCTIONS[value.function]} is of {what}, and the values of {value.of} are {are}"
                span = name_span(statement.sql, value.of or "")
                raise error_at(statement, span, message, f"Count({value.of}), or an attribute of {what}")

    def window(self, query: AggregateQuery) -> int | None:
        return query.after.ago if query.after else None

    def encode(self, query: AggregateQuery) -> dict[str, Any]:
        """`window` is 0 where it counts since the start."""
        return {"columns": _encoded(query), "window": self.window(query) or 0, "sync": query.sync or 0}


ROLE = AggregatesQueryRole()


def _encoded(query: AggregateQuery) -> str:
    """What is asked of each group of posts, as JSON; `decode_aggregates` is the way back."""

    def written(value: Measure | str) -> Any:
        return value if isinstance(value, str) else [value.function, value.of, value.k]

    return json.dumps(
        {
            "outputs": [[output.name, written(output.value)] for output in query.outputs],
            "group_by": list(query.group_by),
            "having": [[written(each.value), each.op, each.literal] for each in query.having],
            "order": [[written(each.value), each.descending] for each in query.order],
            "limit": query.limit,
        }
    )


def decode_aggregates(columns: str) -> AggregateQuery:
    """The aggregates of which the `columns` of a subscription tell, without their conditions."""
    encoded = json.loads(columns)

    def value(written: Any) -> Measure | str:
        return written if isinstance(written, str) else Measure(*written)

    return AggregateQuery(
        outputs=tuple(Output(name, value(written)) for name, written in encoded["outputs"]),
        group_by=tuple(encoded["group_by"]),
        having=tuple(Having(value(written), op, literal) for written, op, literal in encoded["having"]),
        order=tuple(Ordering(value(written), descending) for written, descending in encoded["order"]),
        limit=encoded["limit"],
    )
