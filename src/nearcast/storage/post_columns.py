"""The columns of posts that matching needs, as arrays."""

from dataclasses import dataclass

import numpy as np

from nearcast.common.arrays import freeze
from nearcast.storage.subscriptions.filing import WORLD
from nearcast.storage.subscriptions.kernels.register import z_codes


@dataclass(frozen=True)
class PostColumns:
    """What matching needs of a batch of posts; `terms` in the order of the text, `offsets` one longer than the
    posts.
    """

    lon: np.ndarray
    lat: np.ndarray
    ts: np.ndarray
    terms: np.ndarray
    offsets: np.ndarray

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.ts)

    def z_order(self) -> np.ndarray:
        """The posts along the Z-order curve, in which segments are laid out."""
        return np.argsort(z_codes(self.lon, self.lat, np.array(WORLD)))
