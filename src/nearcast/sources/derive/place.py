"""`place`: the large city that a post is nearest to."""

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import arrow, chunk, numbers
from nearcast.sources.derive.protocol import Given
from nearcast.sources.world.cities import CITIES


class Place:
    """The name of the nearest of the 401 cities that the package knows, by great-circle distance.

    Distances on the sphere are in the order of those through it, so a tree of unit vectors finds it: half a
    microsecond a post.
    """

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        lon, lat = (np.array([getattr(city, name) for city in CITIES]) for name in ("lon", "lat"))
        return cKDTree(unit_vectors(lon, lat))

    @cached_property
    def _names(self) -> pa.StringArray:
        return pa.array([city.name for city in CITIES], pa.string())

    def values(self, given: Given) -> pa.Array:
        lon, lat = (numbers(chunk(given.posts[name])) for name in ("lon", "lat"))
        _, nearest = self._tree.query(unit_vectors(lon, lat))
        return self._names.take(arrow(nearest.astype(np.int64)))


def unit_vectors(lon: np.ndarray, lat: np.ndarray) -> np.ndarray:
    """Places as points of the unit sphere, one a row."""
    across, up = np.radians(lon), np.radians(lat)
    level = np.cos(up)
    return np.stack([level * np.cos(across), level * np.sin(across), np.sin(up)], axis=1)
