"""What every subscription index is: subscriptions as rows, and a match that finds all pairs of posts and rows.

The papers' indexes differ in where they file a subscription, never in what they answer; so the brute-force twin in
`brute` says what is right, and one inherited suite (tests/index/conformance.py) holds every implementation to it.
"""

from typing import TYPE_CHECKING, Protocol

from nearcast.common.op_schema import NEVER
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.subscriptions.brute_force import BruteForce
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Ends, Matches, Segment


class SubscriptionIndex(Protocol):
    """Immutable; exact; each pair of a post and a row once."""

    @property
    def rows(self) -> Rows:
        """The subscriptions, in the order that `Matches.rows` and `Ends.rows` count in: not always the order given."""

    def match(self, posts: PostColumns, ends: Ends | None = None, first_post: int = NEVER) -> Matches:
        """All pairs of a post and a row that it satisfies.

        `ends` are those that later ops gave to rows; `first_post` is where FOR counts from in a subscription that began
        with the stream. Predicates on attributes are the caller's.
        """


if TYPE_CHECKING:
    _indexes: tuple[type[SubscriptionIndex], ...] = (Segment, BruteForce)  # the type checker holds them to it
