"""What a kind of question does when it is asked once: the role `search` of a kind (`common.kinds`)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from nearcast.common.queries import Statement
from nearcast.reader.answer import Answer
from nearcast.reader.select_text import SelectPart
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.subscriptions.rows import Rows

if TYPE_CHECKING:
    from nearcast.reader.current_answer import CurrentAnswer
    from nearcast.reader.reader import Reader

Options = Mapping[str, Any]
Step = tuple[str, str]  # of EXPLAIN: what, how
Segments = Sequence[tuple[str, PostSegment, np.ndarray]]  # name, segment, its deleted rows


@dataclass(frozen=True)
class PlanPart:
    """A kind's part of EXPLAIN: the `order` of its rows, its `steps` before that, and what it says of single `rows`."""

    order: str
    steps: tuple[Step, ...] = ()
    rows: Iterable[Step] = ()


class SearchCache(Protocol):
    """Memory that makes searches of one kind faster and changes no answer (`nearcast.open(cache=)`)."""

    def refresh_later(self, segments: Callable[[], Segments]) -> None:
        """A batch was committed: the state has these segments of posts now."""
        ...

    def status(self) -> Any:
        """What it may hold, holds and has done."""
        ...


class SearchRole(Protocol):
    """The object `ROLE` of a kind's module `search`. It is made of a subclass, which must have `answer` and `explain`,
    and need not have what has a body here.

    `options` are the options of a search (`State.search`) that it takes. Each comes with the message that a search of
    another kind refuses it with; where that is empty, such a search takes no notice of it.
    """

    options: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def answer(self, reader: "Reader", query: Any, options: Options) -> Answer:
        """The answer to its question over the manifest of a reader."""
        ...

    def explain(self, reader: "Reader", query: Any, answer: Any) -> PlanPart:
        """What EXPLAIN says of this kind alone, after the search was carried out."""
        ...

    def check(self, reader: "Reader", statement: Statement) -> None:
        """Raises QueryError where its question makes no sense for the posts that there are."""
        return

    def current(self, reader: "Reader", query_id: str | int) -> "CurrentAnswer | None":
        """The answer of a subscription of this kind as it stands; None if no such subscription has the id, or the kind
        keeps no answers.
        """
        return None

    def select(self, rows: Rows, row: int, word: Callable[[int], str]) -> SelectPart:
        """Its part of a SELECT that means what the columns of a subscription mean; `word` gives a term its word."""
        return SelectPart()

    def cache(self, memory: int) -> SearchCache | None:
        """A cache of so many bytes for its searches; None if it has none."""
        return None
