"""Two routing tables side by side: PS2Stream's global load adjustment (PS2Stream §V-B).

A partition that is made anew would have most subscriptions change hands. So those from before keep to the previous
table, new ones follow the new one, and a post goes to the workers of both; it is stored by the new one's. When few of
the old ones are left they change hands too, and the previous table is forgotten (`engine.rebalancing`).
"""

from dataclasses import dataclass

import numpy as np

from nearcast.partitioning.partition import BY_QUERY
from nearcast.partitioning.routing_table import RoutingTable
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Matches

LEAF = "previous_leaf"  # column of routed posts: the leaf that would store one by the previous table


@dataclass(frozen=True)
class PreviousTable:
    """The table that subscriptions from before op `before` follow."""

    table: RoutingTable
    before: int

    def keepers(self, rows: Rows, kept: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Who keeps each subscription, and its home, where `kept` is that by the newer table."""
        old = rows.seq < self.before
        if not old.any():
            return kept
        keepers, home = self.table.keepers(rows, kept[0].shape[1])
        return np.where(old[:, None], keepers, kept[0]), np.where(old, home, kept[1])

    def reported(
        self,
        router: RoutingTable,
        matches: Matches,
        rows: Rows,
        posts: PostColumns,
        leaves: tuple[np.ndarray, np.ndarray],
        worker: int,
        workers: int,
    ) -> Matches:
        """Of the pairs that a worker has found those that it reports: the table that a subscription follows decides.
        `leaves` are those that store each post by `router` and by the previous table.

        A worker gets posts by either table and may still have subscriptions that it has lost, so that where only one
        could have found a pair now several can: the owner of the post's leaf reports it.
        """
        if not len(matches.posts):
            return matches
        new, old = (
            _decided(table, matches, rows, posts, stored, workers)
            for table, stored in zip((router, self.table), leaves, strict=True)
        )
        who = np.where(rows.seq[matches.rows] < self.before, old, new)
        own = (who == worker) | (who < 0)
        return Matches(matches.posts[own], matches.rows[own], matches.candidates)


def _decided(
    table: RoutingTable, matches: Matches, rows: Rows, posts: PostColumns, stored: np.ndarray, workers: int
) -> np.ndarray:
    leaf = stored[matches.posts]
    by_words = table.partition.kind[table.node_of_leaf[leaf]] == BY_QUERY
    return np.where(by_words, table.reporters(matches, rows, posts, stored, workers), table.owners(workers)[leaf])
