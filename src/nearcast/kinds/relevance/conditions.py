"""The WHERE of subscriptions by relevance: region, words and attributes of the posts that they are offered."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from nearcast.kinds.relevance.subscribers import timeless
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.subscriptions.pair_predicates import predicates_hold
from nearcast.storage.subscriptions.pyramid import PYRAMID
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Matches, Segment


def meeting(rows: Rows, columns: PostColumns, take: Callable[[np.ndarray], pa.Table]) -> tuple[np.ndarray, np.ndarray]:
    """(rows, posts): all pairs of a subscription and a post that meets its conditions. `take` gives posts whole, whose
    numbers ascend.
    """
    numbered = Rows(**{**timeless(rows).__dict__, "seq": np.arange(len(rows))})
    segment = Segment.build(numbered, PYRAMID)
    found = segment.match(columns)
    hit, back = np.unique(found.posts, return_inverse=True)
    if len(rows.predicates) and len(hit):
        keep = predicates_hold(segment.rows, Matches(back, found.rows, 0), take(hit))
        found = Matches(found.posts[keep], found.rows[keep], 0)
    return segment.rows.seq[found.rows], found.posts


def among(rows: np.ndarray, posts: np.ndarray, allowed: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Which pairs are among those that are allowed."""
    return np.isin((rows << 32) | posts, (allowed[0] << 32) | allowed[1])
