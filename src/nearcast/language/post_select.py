"""What the kinds share whose answers are posts: their columns, their order, their number."""

from nearcast.language.known_kinds import known
from nearcast.language.messages import either, nearest, shown
from nearcast.language.parsed_select import ParsedSelect, whole
from nearcast.language.roles import PostOrder, Refusal
from nearcast.language.syntax import Call, Name, span_of

POST_CLAUSES = frozenset({"ORDER", "LIMIT"})
POST_REFUSALS = {
    "HAVING": Refusal(
        "HAVING is a condition on groups, and this query has none", "a GROUP BY, or WHERE for a condition on posts"
    ),
    "SYNC": Refusal("reporting on a beat (SYNC) of anything but aggregates and TopK is not in this version yet"),
}
_COLUMNS = {"id": "id", "ts": "ts", "time": "ts", "lon": "lon", "lat": "lat", "text": "text"}
_NEWEST = "time DESC"


def post_columns(parsed: ParsedSelect) -> tuple[str, ...] | None:
    """The columns of the SELECT, None for all."""
    if parsed.select.items is None:
        return None
    columns: dict[str, None] = {}
    for item in parsed.select.items:
        if item.alias:
            raise parsed.error(item.alias.span, "a column keeps its name here", "',' or FROM")
        name = item.operand
        if isinstance(name, Call):
            raise parsed.error(span_of(name), f"{shown(name.name.text)} is no column of a post", "a column's name")
        if name.text.lower() == "loc" and not name.quoted:
            raise parsed.error(name.span, "the place is two columns", "lon, lat")
        column = name.text if name.quoted else _COLUMNS.get(name.text.lower(), name.text)
        if column in columns:
            raise parsed.error(name.span, f"the column {shown(column)} is given twice", "each column once")
        columns[column] = None
    return tuple(columns)


def number_of_posts(parsed: ParsedSelect, order: PostOrder, example: str) -> int:
    """The k of the k first posts by an order, which is the LIMIT."""
    if "LIMIT" not in parsed.clauses:
        message = f"ORDER BY {order.function} asks for the k {order.first} and needs a LIMIT that says how many"
        raise parsed.error(parsed.clauses["ORDER"].span, message, example)
    return whole(parsed.sql, parsed.body("LIMIT")[0], f"the {order.first} are a whole number of posts")


def check_one_order(parsed: ParsedSelect, order: PostOrder) -> None:
    """Raises QueryError where there is more than one thing to order by."""
    if len(parsed.body("ORDER")) > 1:
        message = f"posts come {order.first} first, ties by {order.ties}, in no other order"
        raise parsed.error(span_of(parsed.body("ORDER")[1].operand), message, f"{order.example}, and nothing more")


def check_newest_first(parsed: ParsedSelect) -> None:
    """Raises QueryError where posts that have no order of their own are asked for in another than by time."""
    order = parsed.order()
    if order is None:
        return
    if isinstance(order.operand, Call):
        raise _no_order(parsed, order.operand.name)
    if order.operand.text.lower() not in ("time", "ts") or not order.descending:
        orders = known().post_orders.values()
        firsts = either(f"{first} first" for first in ("newest", *(each.first for each in orders)))
        expected = either([_NEWEST, *(each.example for each in orders), "no ORDER BY"])
        raise parsed.error(order.operand.span, f"posts come {firsts}, in no other order", expected)
    check_one_order(parsed, PostOrder("", _NEWEST, "newest"))


def _no_order(parsed: ParsedSelect, name: Name) -> Exception:
    """The error of a function in the ORDER BY that is none by which posts can be ordered."""
    examples = [_NEWEST, *(each.example for each in known().post_orders.values())]
    function = nearest(name.text, (*known().functions.values(), *known().post_orders))
    if function.lower() != name.text.lower():
        return parsed.error(name.span, f"there is no function {shown(name.text)}", either(examples), function)
    what = "of groups" if function.lower() in known().group_functions else "for the SELECT"
    message = f"{function} is {what}, and this query gives posts"
    return parsed.error(name.span, message, f"{function} in the SELECT as well, or {' or '.join(examples[:2])}")
