"""Texts that differ only in their numbers and strings, as a service asks them all day, are parsed once.

A text is cut into words, numbers and strings by one regular expression. What is left when numbers and strings are
replaced by their places is its template, which the parser reads the first time; from then on the nodes are made from
the template and the values. The nodes of other words stand where the template has them, so whoever finds a mistake
reads the text again with `read_select`, and points at the right place.
"""

import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

from nearcast.common.errors import QueryError
from nearcast.language.grammar import NUMBER, QUOTED, STRING
from nearcast.language.messages import Span
from nearcast.language.syntax import Number, Select, String, read_select, unquoted

LONG = 20_000  # characters, from which on the rest of a query takes longer anyway
MOST = 1_000  # templates are kept
_WORDS = re.compile(rf"(?P<string>{STRING})|(?P<quoted>{QUOTED})|--[^\n]*|[^\W\d]\w*|(?P<number>{NUMBER})")

Values = list[Number | String]
Maker = Callable[[Values], Any]
_templates: dict[str, Maker] = {}


def read_template(sql: str) -> Select | None:
    """As `read_select`, but for where words stand; None where that has to be asked."""
    if len(sql) > LONG or not sql.isprintable():
        return None
    values: Values = []

    def place(found: re.Match[str]) -> str:
        kind = found.lastgroup
        if kind == "number":
            values.append(Number(found[0], Span(*found.span())))
            return str(len(values) - 1)
        if kind == "string":
            values.append(unquoted(found[0], Span(*found.span())))
            return f"'{len(values) - 1}'"
        return found[0]

    template = _WORDS.sub(place, sql)
    make = _templates.get(template)
    if make is None:
        try:
            make = _maker(read_select(template))
        except QueryError:
            return None
        if len(_templates) >= MOST:
            _templates.clear()
        _templates[template] = make
    select = make(values)
    assert isinstance(select, Select)
    return select


def _maker(node: Any) -> Maker:
    """A function from values to the node with these values in their places."""
    if isinstance(node, Number | String):
        place = int(node.text)
        return lambda values: values[place]
    if isinstance(node, tuple):
        parts = [_maker(each) if _has_values(each) else None for each in node]
        return lambda values: tuple(
            each if make is None else make(values) for make, each in zip(parts, node, strict=True)
        )
    kind: Any = type(node)
    names = [each.name for each in fields(node)]
    made = [(name, _maker(getattr(node, name))) for name in names if _has_values(getattr(node, name))]
    fixed = {name: getattr(node, name) for name in names}
    return lambda values: kind(**{**fixed, **{name: make(values) for name, make in made}})


def _has_values(node: Any) -> bool:
    if isinstance(node, tuple):
        return any(map(_has_values, node))
    if isinstance(node, Number | String):
        return True
    return is_dataclass(node) and any(_has_values(getattr(node, each.name)) for each in fields(node))
