"""A uniform grid over the extent of a sample: the papers' simplest spatial partitioning, PS2Stream's *grid* (seed
001 §VI-B).
"""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from nearcast.index.rows import Rows
from nearcast.kernels.grid import grid_leaves, grid_owners, summary_positions
from nearcast.kernels.register import key_terms
from nearcast.routing.allocation import greedy
from nearcast.state.files import write_text

CELLS = 64  # a side, as in seed 001 §VI-B


@dataclass(frozen=True)
class UniformGrid:
    """CELLS by CELLS leaves over `extent` (west, south, width, height); places outside go to the border leaves.

    A post is stored and matched by its own leaf; a query is kept by the owner of every leaf its bounding box touches.
    Cost: O(1) a post, O(leaves touched) a query.
    """

    extent: tuple[float, float, float, float]
    loads: tuple[float, ...]
    cells: int = CELLS
    name: str = "grid"

    @classmethod
    def from_sample(cls, lon: np.ndarray, lat: np.ndarray, cells: int = CELLS) -> "UniformGrid":
        """The grid over a sample's extent, a leaf's load being its share of the sample. The world, if there is none."""
        if not len(lon):
            return cls((-180.0, -90.0, 360.0, 180.0), (0.0,) * (cells * cells), cells)
        west, south = float(lon.min()), float(lat.min())
        extent = (west, south, max(float(lon.max()) - west, 1e-6), max(float(lat.max()) - south, 1e-6))
        counts = np.bincount(grid_leaves(lon, lat, np.array(extent), cells), minlength=cells * cells)
        return cls(extent, tuple((counts / len(lon)).tolist()), cells)

    @property
    def leaves(self) -> int:
        return self.cells * self.cells

    @cached_property
    def _extent(self) -> np.ndarray:
        return np.array(self.extent)

    def store(self, lon: np.ndarray, lat: np.ndarray) -> np.ndarray:
        return grid_leaves(lon, lat, self._extent, self.cells)

    def match(
        self, lon: np.ndarray, lat: np.ndarray, terms: np.ndarray, offsets: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        return np.arange(len(lon)), self.store(lon, lat)

    def owners(self, workers: int) -> np.ndarray:
        return greedy(np.array(self.loads), workers)

    def keepers(self, rows: Rows, workers: int) -> tuple[np.ndarray, np.ndarray]:
        matrix, home = grid_owners(rows.boxes, self._extent, self.cells, self.owners(workers), workers)
        return matrix, home

    def summary(self, rows: Rows) -> np.ndarray:
        filed, terms = key_terms(rows.code, rows.code_offsets)
        return summary_positions(filed, terms, rows.boxes, self._extent, self.cells)

    def save(self, path: Path) -> None:
        write_text(
            path, json.dumps({"name": self.name, "extent": self.extent, "loads": self.loads, "cells": self.cells})
        )

    @classmethod
    def load(cls, path: Path) -> "UniformGrid":
        data = json.loads(path.read_text(encoding="utf-8"))
        return cls(tuple(data["extent"]), tuple(data["loads"]), data["cells"])
