"""GI2, PS2Stream's grid of inverted lists (PS2Stream §IV-D).

Each cell of one uniform grid has an inverted list per keyword. A query of AND-words is in the list of its least
frequent word in every cell it touches; one with OR in the lists of the least frequent word of each conjunction. A
post looks at the lists of its distinct words in its own cell. Deletion is lazy: ended queries are recognised while
lists are traversed (by a bit per row, the paper's hash table of deleted ids) and leave the lists when segments are
merged.

The paper uses 2^6 by 2^6 cells over the extent of the data; the cost of a query is the number of cells it touches.
"""

from nearcast.storage.subscriptions.filing import WORLD, Filing

LEVEL = 6


def gi2(extent: tuple[float, float, float, float] = WORLD, level: int = LEVEL) -> Filing:
    """A filing over `extent` (west, south, width, height) with 2^level cells a side."""
    return Filing("gi2", coarsest=level, finest=level, step=1, most_cells=0, extent=extent)
