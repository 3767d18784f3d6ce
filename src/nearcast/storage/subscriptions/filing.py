"""Where subscriptions are filed: the choice of cells that tells one grid-based index from another."""

from dataclasses import dataclass

import numpy as np

WORLD = (-180.0, -90.0, 360.0, 180.0)  # west, south, width, height


@dataclass(frozen=True)
class Filing:
    """Boxes go to the finest of the levels finest, finest - step, … coarsest at which they touch at most `most_cells`.

    Level l divides `extent` (west, south, width, height in degrees) into 2^l by 2^l cells; what lies outside is clipped
    to the border cells. Where coarsest equals finest there is one grid, and a box goes to all of its cells.
    """

    name: str
    coarsest: int
    finest: int
    step: int
    most_cells: int
    extent: tuple[float, float, float, float] = WORLD

    def extent_array(self) -> np.ndarray:
        return np.array(self.extent, np.float64)
