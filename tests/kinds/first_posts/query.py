"""The question for the first post of each cell."""

from dataclasses import dataclass
from typing import ClassVar

from nearcast.common.queries import Query
from nearcast.language.parsed_select import ParsedSelect
from nearcast.language.roles import QueryRole
from nearcast.language.syntax import Name


@dataclass(frozen=True, kw_only=True)
class FirstPostsQuery(Query):
    """Of the posts that meet the conditions the earliest in each cell of one degree, ties by id."""

    kind: ClassVar[str] = "first posts"

    columns: tuple[str, ...] | None = None


class FirstPostsRole(QueryRole):
    """A SELECT with the function First. All else that it can say is the WHERE, which every kind has."""

    functions: ClassVar = {"first": "First"}

    def meaning(self, parsed: ParsedSelect) -> FirstPostsQuery:
        (call,) = parsed.select.calls
        cell = call.arguments[0] if len(call.arguments) == 1 else None
        if not isinstance(cell, Name) or cell.text.lower() != "cell":
            raise parsed.error(call.name.span, "First is of the posts in a cell", "First(cell)")
        return FirstPostsQuery(**parsed.where())


ROLE = FirstPostsRole()
