"""What every router comes down to: a fine grid whose cells belong to nodes, and nodes cut into leaves.

Each of the papers' global indexes is a way to make such a partition (one file each: `build(sample, workers) ->
Partition`), and each balancing strategy a way to change one. Trees end on the lines of the grid, as PS2Stream's gridt
does with its kdt-tree (PS2Stream §IV-C), so that all of them route a post in the same few nanoseconds.
"""

from dataclasses import dataclass, field

import numpy as np

SPACE, BY_QUERY, BY_POST = range(3)


@dataclass(frozen=True)
class Partition:
    """`extent` (west, south, width, height) is cut into `cells` by `cells` cells, row by row from the south-west; what
    lies outside belongs to the border cells. Cell c belongs to node `node[c]`, and node n has the leaves
    `first[n]` to `first[n + 1] - 1`: of `kind`

    - SPACE, one leaf, which has the posts and queries of its place;
    - BY_QUERY (PS2Stream): a query is kept by the leaf of the key term of each of its conjunctions, a post is matched
    by
      the leaves of its terms;
    - BY_POST (SSTD §4): a post goes to the leaf whose keywords are most like its own, a query to all of the node's.

    `keywords[keyword_starts[l]:keyword_starts[l + 1]]` are the terms of leaf l, sorted: those assigned to it (BY_QUERY;
    a term that none of a node's leaves has goes to the leaf of its hash), or seen in its posts (BY_POST); none for
    SPACE. `load` is the expected work of each leaf by the router's cost model, in its own unit, and `owner` the worker
    of each leaf, of `workers` in all.
    """

    name: str
    extent: tuple[float, float, float, float]
    cells: int
    node: np.ndarray  # int32
    kind: np.ndarray  # uint8
    first: np.ndarray  # int32
    load: np.ndarray  # float64
    owner: np.ndarray  # int32
    workers: int
    keywords: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))
    keyword_starts: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))  # of length 1 where all are SPACE

    @property
    def nodes(self) -> int:
        return len(self.kind)

    @property
    def leaves(self) -> int:
        return len(self.load)
