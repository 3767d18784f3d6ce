"""Samples of all shapes, and what must be true of a partition of space, in plain Python."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from nearcast.common.op_schema import CODE_LAST, CODE_NEGATIVE
from nearcast.partitioning.partition import SPACE, Partition
from nearcast.partitioning.router_sample import Queries, RouterSample, SampledPosts

SHAPES = ("uniform", "clustered", "one point", "one row", "border")


def sample_of(
    posts: Sequence[tuple[float, float, Sequence[int]]],
    queries: Sequence[tuple[Sequence[float], Sequence[int]]],
    types: Sequence[int] | None = None,
) -> RouterSample:
    """From (lon, lat, terms) and (box, conjunction): a query for all of its terms, filed under the first; the negative
    of a term excludes it.
    """
    codes: list[list[int]] = []
    for _, terms in queries:
        code: list[int] = []
        for number, term in enumerate(terms):
            last = CODE_LAST if number == len(terms) - 1 else 0
            code += [1 | last | (CODE_NEGATIVE if term < 0 else 0), abs(term)]
        codes.append(code)
    number = len(queries)
    return RouterSample(
        SampledPosts(
            np.array([lon for lon, _, _ in posts], np.float64),
            np.array([lat for _, lat, _ in posts], np.float64),
            np.arange(len(posts), dtype=np.int64),
            np.array([term for _, _, terms in posts for term in terms], np.uint64),
            np.concatenate(([0], np.cumsum([len(terms) for _, _, terms in posts]))).astype(np.int64),
        ),
        Queries(
            np.array(types if types is not None else [3] * number, np.uint8),
            np.array([box for box, _ in queries], np.float64).reshape(-1, 4),
            np.array([word for code in codes for word in code], np.uint64),
            np.concatenate(([0], np.cumsum([len(code) for code in codes]))).astype(np.uint32),
            np.full(number, 2**63 - 1),
            np.zeros(number, np.int64),
        ),
    )


def random_sample(seed: int, shape: str, posts: int, queries: int) -> RouterSample:
    rng = np.random.default_rng(seed)
    lon, lat = rng.uniform(-180, 180, posts), rng.uniform(-90, 90, posts)
    if shape == "clustered":
        lon, lat = rng.normal(2.0, 0.5, posts), rng.normal(48.0, 0.3, posts)
    if shape == "one point":
        lon, lat = np.full(posts, 12.5), np.full(posts, -33.0)
    if shape == "one row":
        lat = np.full(posts, 10.0)
    if shape == "border":
        lon, lat = rng.choice([-180.0, 180.0, 0.0], posts), rng.choice([-90.0, 90.0], posts)
    words = [rng.integers(1, 12, rng.integers(0, 5)).tolist() for _ in range(posts)]
    asked = []
    for _ in range(queries):
        at = rng.integers(posts) if posts and rng.random() < 0.7 else -1
        x, y = (lon[at], lat[at]) if at >= 0 else (rng.uniform(-180, 180), rng.uniform(-90, 90))
        width, height = rng.choice([0.0, 0.1, 3.0, 90.0], 2)
        west, east = x - width, x + width
        box = (west + 360 * (west < -180), max(y - height, -90.0), east - 360 * (east > 180), min(y + height, 90.0))
        asked.append((box, rng.integers(1, 12, rng.integers(0, 3)).tolist()))
    places = [(float(x), float(y), terms) for x, y, terms in zip(lon, lat, words, strict=True)]
    return sample_of(places, asked, rng.integers(0, 6, queries).tolist())


samples = st.builds(
    random_sample, st.integers(0, 10**6), st.sampled_from(SHAPES), st.integers(0, 40), st.integers(0, 25)
)


def in_box(box: np.ndarray, lon: float, lat: float) -> bool:
    west, south, east, north = box
    across = west <= lon <= east if west <= east else lon >= west or lon <= east
    return bool(across and south <= lat <= north)


def cell(value: float, origin: float, span: float, cells: int) -> int:
    return min(max(int((value - origin) / span * cells), 0), cells - 1) if value > origin else 0


def leaf_of(partition: Partition, lon: float, lat: float) -> int:
    west, south, width, height = partition.extent
    x, y = cell(lon, west, width, partition.cells), cell(lat, south, height, partition.cells)
    return int(partition.first[partition.node[y * partition.cells + x]])


def leaves_of(partition: Partition, box: np.ndarray) -> set[int]:
    """The leaves of all cells that a box touches."""
    west, south, width, height = partition.extent
    cells = partition.cells
    grid = partition.first[partition.node].reshape(cells, cells)
    rows = slice(cell(box[1], south, height, cells), cell(box[3], south, height, cells) + 1)
    x0, x1 = cell(box[0], west, width, cells), cell(box[2], west, width, cells) + 1
    columns = [slice(x0, x1)] if box[0] <= box[2] else [slice(x0, cells), slice(0, x1)]
    return {int(leaf) for across in columns for leaf in np.unique(grid[rows, across])}


def check_space(partition: Partition, sample: RouterSample, workers: int) -> None:
    """A sound partition of space: every cell has a leaf with a worker, and no query misses a post in its box."""
    assert partition.workers == workers
    assert len(partition.node) == partition.cells**2
    assert partition.node.dtype == np.int32
    assert set(np.unique(partition.node)) == set(range(partition.nodes))
    assert (partition.kind == SPACE).all()
    assert partition.first.tolist() == list(range(partition.nodes + 1))
    assert len(partition.load) == len(partition.owner) == partition.leaves == partition.nodes
    assert ((partition.owner >= 0) & (partition.owner < workers)).all()
    assert (partition.load >= 0).all()
    assert len(partition.keywords) == 0
    for lon, lat in zip(sample.posts.lon, sample.posts.lat, strict=True):
        leaf = leaf_of(partition, lon, lat)
        for box in sample.queries.boxes:
            if in_box(box, lon, lat):
                assert leaf in leaves_of(partition, box)


def is_rectangle(partition: Partition, node: int) -> bool:
    y, x = np.nonzero(partition.node.reshape(partition.cells, -1) == node)
    return len(x) == (x.max() - x.min() + 1) * (y.max() - y.min() + 1)
