"""The protocol that every router implements, and loading one from a state."""

from pathlib import Path
from typing import Protocol

import numpy as np

from nearcast.index.rows import Rows


class Router(Protocol):
    """Total and deterministic: every post has one storing leaf, every query at least one leaf.

    For every post and every query it satisfies, the query is kept by an owner of one of the post's matching leaves.
    """

    name: str
    leaves: int

    def store(self, lon: np.ndarray, lat: np.ndarray) -> np.ndarray:
        """The leaf that stores each post."""

    def match(
        self, lon: np.ndarray, lat: np.ndarray, terms: np.ndarray, offsets: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(post, leaf) pairs: the leaves that must match each post, apart from what summaries rule out."""

    def owners(self, workers: int) -> np.ndarray:
        """The worker of each leaf."""

    def keepers(self, rows: Rows, workers: int) -> tuple[np.ndarray, np.ndarray]:
        """A matrix (row, worker) of who keeps a subscription, and its one home worker."""

    def summary(self, rows: Rows) -> np.ndarray:
        """The bits of the textual summary (leaf, term) that these subscriptions set."""

    def save(self, path: Path) -> None: ...
