"""What every distribution of subscribers is, and the figures that Skype (Table 2, §8.2) compares them by."""

from typing import Protocol

import numpy as np

from nearcast.kinds.relevance.vectors import Profiles, Vectors

Arrays = dict[str, np.ndarray]


class Distribution(Protocol):
    """Total and deterministic. For every subscriber and post with a score of at least its theta, some worker holds the
    one and looks at the other.
    """

    @property
    def name(self) -> str: ...

    @property
    def workers(self) -> int: ...

    @property
    def follows_theta(self) -> bool:
        """Whether the holders of a subscriber depend on its theta and weights."""

    def holders(self, profiles: Profiles, theta: np.ndarray, ids: np.ndarray | None = None) -> np.ndarray:
        """bool[subscribers, workers]: who indexes each, at least one.

        `ids` are integers that tell subscribers apart, for what is dealt by hash: to be given always or never; without
        them, those that ask for the same are dealt alike. A lower theta never takes a holder away.
        """

    def targets(self, posts: Vectors) -> np.ndarray:
        """bool[posts, workers]: who looks at each; nobody at one that has no words."""

    def arrays(self) -> Arrays:
        """All that it knows, to be stored."""


def lacking(
    distribution: Distribution, held: np.ndarray, profiles: Profiles, theta: np.ndarray, ids: np.ndarray | None = None
) -> np.ndarray:
    """Which subscribers need a holder beyond those they have: lazy reallocation (Skype §7.3.4) moves these only.

    While theta rises that is nobody; copies that are no longer needed may stay. `held` is bool[subscribers, workers].
    """
    return (distribution.holders(profiles, theta, ids) & ~held).any(axis=1)


def replication(holders: np.ndarray) -> float:
    """How often a subscriber is stored, on average (the replication ratio)."""
    return float(holders.sum() / max(len(holders), 1))


def messages(targets: np.ndarray) -> float:
    """How many workers a post is sent to, on average (the communication cost)."""
    return float(targets.sum() / max(len(targets), 1))
