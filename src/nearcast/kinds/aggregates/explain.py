"""EXPLAIN of aggregates: what came from a cache, the groups, and their order."""

from nearcast.kinds.aggregates.query import AggregateQuery, Measure
from nearcast.kinds.aggregates.search import GroupRows
from nearcast.reader.roles import PlanPart, Step


def explain_aggregates(query: AggregateQuery, answer: GroupRows) -> PlanPart:
    cache: tuple[Step, ...] = (("cache", answer.cached),) if answer.cached else ()
    groups = ("groups", ", ".join(query.group_by) or "all posts are one")
    return PlanPart(_order(query), (*cache, groups))


def _order(query: AggregateQuery) -> str:
    first = [_value(each.value) + (" descending" if each.descending else "") for each in query.order]
    by = ", ".join((*first, *query.group_by)) or "one row"
    return by + ("" if query.limit is None else f", the first {query.limit:,}")


def _value(value: Measure | str) -> str:
    return value if isinstance(value, str) else f"{value.function}({value.of or 'id'})"
