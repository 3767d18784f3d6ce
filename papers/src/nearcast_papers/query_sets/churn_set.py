"""PS2Stream's churn (PS2Stream, §VI-A): queries come and go so that about μ of them stand."""

import numpy as np
import numpy.typing as npt

from nearcast.common.errors import BadInput

Integers = npt.NDArray[np.int64]

POSTS_PER_UPDATE = 5  # posts for each insertion or deletion
INSERT, DELETE = 0, 1


def churn(mu: float, count: int, seed: int = 1) -> Integers:
    """For each of `count` insertions, the number of the insertion just after which it is deleted: its own number and
    a life drawn from N(μ, (0.2 μ)²), at least 1. Many lie past the last insertion: those queries stay."""
    if not mu > 0:
        raise BadInput(f"the mean life of a query must be above 0 insertions, not {mu}")
    life = np.random.default_rng((seed, 0xC482)).normal(mu, 0.2 * mu, count)
    return np.arange(count) + np.maximum(np.rint(life).astype(np.int64), 1)


def updates(deleted_at: Integers) -> tuple[npt.NDArray[np.uint8], Integers]:
    """All insertions and deletions in order: (INSERT or DELETE, number of the query). After insertion i come the
    deletions due at i."""
    count = len(deleted_at)
    leaving = np.flatnonzero(deleted_at < count)
    query = np.concatenate([np.arange(count), leaving])
    kind = np.concatenate([np.full(count, INSERT, np.uint8), np.full(len(leaving), DELETE, np.uint8)])
    order = np.lexsort((query, kind, np.concatenate([np.arange(count), deleted_at[leaving]])))
    return kind[order], query[order]
