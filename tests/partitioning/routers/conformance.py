"""What every router is held to: no query misses a post, none gets it twice, each post is stored once.

`hold` takes a partition and a world of posts and subscriptions and tries all of it, with what the brute-force index
says is right. `WORLDS` are the worlds to try: random ones, and such that a router could break on.
"""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

from nearcast.common.expressions import And, Not, Or
from nearcast.common.geo.shapes import Circle, Rect
from nearcast.common.kernels.grid import SUMMARY_BITS, may_match, set_bits
from nearcast.common.kernels.mix import fingerprints
from nearcast.common.op_schema import NEVER
from nearcast.partitioning.partition import SPACE, Partition
from nearcast.partitioning.router_sample import CRQ, Queries, RouterSample, SampledPosts
from nearcast.partitioning.routing_table import EVERYTHING, RoutingTable
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.subscriptions.brute_force import BruteForce
from nearcast.storage.subscriptions.kernels.register import file_codes
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Matches
from tests.storage.cases import TERMS, Post, Subscription, crowd, phrase, rows_of, word

World = tuple[list[Subscription], list[Post]]


def filed_rows(subscriptions: list[Subscription]) -> Rows:
    """Subscriptions with the key of each conjunction marked."""
    rows = rows_of(subscriptions)
    nothing = np.empty(0, np.uint64)
    return Rows(**{**rows.__dict__, "code": file_codes(rows.code, rows.code_offsets, nothing, nothing)})


def sample_of(rows: Rows, posts: PostColumns) -> RouterSample:
    count = len(rows)
    return RouterSample(
        SampledPosts(posts.lon, posts.lat, posts.ts, posts.terms, posts.offsets),
        Queries(
            np.full(count, CRQ, np.uint8), rows.boxes, rows.code, rows.code_offsets.astype(np.int64),
            np.full(count, NEVER), np.zeros(count, np.int64),
        ),
    )  # fmt: skip


def prints_of(posts: PostColumns) -> np.ndarray:
    return fingerprints(np.arange(len(posts)), np.zeros(len(posts), np.bool_), posts.ts, posts.lon, posts.lat)


def lists(starts: np.ndarray, values: np.ndarray) -> list[list[int]]:
    return [values[a:b].tolist() for a, b in pairwise(starts)]


def check_shape(partition: Partition, workers: int) -> None:
    cells, leaves = partition.cells, partition.leaves
    assert partition.node.shape == (cells * cells,)
    assert set(np.unique(partition.node).tolist()) <= set(range(partition.nodes))
    sizes = np.diff(partition.first)
    assert partition.first[0] == 0
    assert partition.first[-1] == leaves == len(partition.owner)
    assert (sizes > 0).all()
    assert (sizes[partition.kind == SPACE] == 1).all()
    assert np.isfinite(partition.load).all()
    assert (partition.load >= 0).all()
    assert partition.workers == workers
    assert 0 <= partition.owner.min() <= partition.owner.max() < workers
    assert len(partition.keyword_starts) in (1, leaves + 1)
    for leaf in range(len(partition.keyword_starts) - 1):
        begin, end = partition.keyword_starts[leaf : leaf + 2]
        assert (np.diff(partition.keywords[begin:end].astype(object)) > 0).all(), "sorted, each once"


def hold(partition: Partition, rows: Rows, posts: PostColumns, workers: int) -> int:
    """Hold a partition to all it promises; how many pairs there were."""
    table = RoutingTable(partition)
    owners = table.owners(workers)
    assert owners.shape == (table.leaves,)
    assert 0 <= owners.min() <= owners.max() < workers
    prints = prints_of(posts)
    stored = table.store(posts.lon, posts.lat, posts.terms, posts.offsets, prints)
    assert stored.shape == (len(posts),)
    assert ((stored >= 0) & (stored < table.leaves)).all()
    kept = [set(leaves) for leaves in check_keepers(table, rows, workers)]
    storing, _ = table.keepers(rows, workers, by_place=True)
    pairs = BruteForce(rows).match(posts)
    for summary in (EVERYTHING, summary_of(table, rows)):
        matching = lists(*table.match(posts.lon, posts.lat, posts.terms, posts.offsets, stored, summary))
        assert all(len(leaves) == len(set(leaves)) for leaves in matching)
        if table.shares and len(summary):  # a post has no leaf where the summary alone rules it out
            wanted = may_match(table.summary_cells(posts.lon, posts.lat), posts.terms, posts.offsets, summary)
            assert [bool(leaves) for leaves in matching] == wanted.tolist()
        reports = np.zeros(len(pairs.posts), np.int64)
        for worker in range(workers):
            mine = table.reported(Matches(pairs.posts, pairs.rows, 0), rows, posts, stored, worker, workers)
            mine = set(zip(mine.posts.tolist(), mine.rows.tolist(), strict=True))
            for at, (post, row) in enumerate(zip(pairs.posts.tolist(), pairs.rows.tolist(), strict=True)):
                sees = any(owners[leaf] == worker for leaf in matching[post])
                keeps = any(owners[leaf] == worker for leaf in kept[row])
                reports[at] += sees and keeps and (post, row) in mine
        assert (reports == 1).all(), "each pair is reported once"
        for post, row in zip(pairs.posts.tolist(), pairs.rows.tolist(), strict=True):
            assert set(matching[post]) & kept[row], "one leaf matches the post and keeps the query"
            assert storing[row, owners[stored[post]]], "who stores a post knows of those that may catch up with it"
    return len(pairs.posts)


def check_keepers(table: RoutingTable, rows: Rows, workers: int) -> list[list[int]]:
    """Workers keep what their leaves keep, and no more."""
    owners = table.owners(workers)
    kept = lists(*table.leaves_of(rows))
    matrix, home = table.keepers(rows, workers)
    for row, leaves in enumerate(kept):
        assert len(leaves) == len(set(leaves)) > 0
        assert set(np.flatnonzero(matrix[row]).tolist()) == set(owners[leaves].tolist())
        assert matrix[row, home[row]]
    everywhere, _ = table.keepers(rows, workers, by_place=True)
    assert (everywhere >= matrix).all()
    return kept


def summary_of(table: RoutingTable, rows: Rows) -> np.ndarray:
    bits = np.zeros(1 << (SUMMARY_BITS - 6), np.uint64)
    set_bits(bits, table.summary(rows))
    return bits


def same(partition: Partition, other: Partition) -> bool:
    return all(np.array_equal(value, other.__dict__[name]) for name, value in partition.__dict__.items())


def check_saving(partition: Partition, path: Path) -> None:
    RoutingTable(partition).save(path)
    assert same(RoutingTable.load(path).partition, partition)


# -- worlds ------------------------------------------------------------------------------------------------------------

FLOOD, FIRE = TERMS[0], TERMS[3]


def queries_everywhere() -> list[Subscription]:
    """Of every kind of text and place, also such as no post can satisfy."""
    texts = (
        None, word(FLOOD), Or((word(FLOOD), word(FIRE))), And((word(FLOOD), Not(word(FIRE)))), Not(word(FIRE)),
        phrase(FLOOD, FIRE), Or((word(TERMS[4]), Not(word(FLOOD)))),
    )  # fmt: skip
    places = (
        None, Rect(-180.0, -90.0, 180.0, 90.0), Rect(170.0, -90.0, -170.0, 90.0), Rect(10.0, 20.0, 10.0, 20.0),
        Circle(0.0, 90.0, 500.0), Circle(180.0, 0.0, 300.0), Rect(-1.0, -1.0, 1.0, 1.0),
    )  # fmt: skip
    return [Subscription(n, place, text) for n, (place, text) in enumerate((p, t) for p in places for t in texts)]


def posts_at(*places: tuple[float, float], words: tuple[int, ...] = (FLOOD, FIRE)) -> list[Post]:
    return [Post(lon, lat, 5, words[: n % (len(words) + 1)]) for n, (lon, lat) in enumerate(places)]


EDGES = [(lon, lat) for lon in (-180.0, 180.0, 0.0, -0.0, 10.0) for lat in (-90.0, 90.0, 0.0, 20.0)]
WORLDS: dict[str, Callable[[], World]] = {
    "crowded": lambda: crowd(1, 60, 150),
    "many words": lambda: many_words(2),
    "all posts at one point": lambda: (queries_everywhere(), posts_at(*[(10.0, 20.0)] * 30)),
    "all posts of one word": lambda: (queries_everywhere(), posts_at(*EDGES, words=(FLOOD, FLOOD))),
    "posts without words": lambda: (queries_everywhere(), posts_at(*EDGES, words=())),
    "no sample": lambda: ([], []),
    "queries and no posts": lambda: (queries_everywhere(), []),
    "posts and no queries": lambda: ([], posts_at(*EDGES)),
    "a world of two posts": lambda: (queries_everywhere(), posts_at((10.0, 20.0), (179.9, -89.0))),
    "edges of the world": lambda: (queries_everywhere(), posts_at(*EDGES)),
    "queries without words": lambda: (
        [Subscription(n, Rect(-180.0, -90.0, float(n), 90.0)) for n in range(8)], posts_at(*EDGES)),
    "nothing but NOT": lambda: ([Subscription(n, None, Not(word(t))) for n, t in enumerate(TERMS)], posts_at(*EDGES)),
}  # fmt: skip


def many_words(seed: int) -> World:
    """More words than leaves, each query of a few, so that texts can be told apart."""
    random = np.random.default_rng(seed)
    words = random.integers(1, 2**63, 120).astype(np.uint64).tolist()

    def some(most: int) -> list[int]:
        return [words[min(119, int(x))] for x in random.exponential(20, random.integers(1, most + 1))]

    posts = [Post(*random.normal(0, 5, 2).tolist(), 5, tuple(some(9))) for _ in range(200)]
    queries = []
    for n in range(80):
        west, south = random.normal(0, 5, 2).tolist()
        size = float(10 ** random.uniform(-1, 1.3))
        parts = tuple(word(term) for term in some(3))
        queries.append(
            Subscription(n, Rect(west, south, west + size, south + size), And(parts) if n % 3 else Or(parts))
        )
    return queries, posts


def strangers(seed: int) -> list[Post]:
    """Posts that no sample has shown: elsewhere, and of other words."""
    return crowd(seed, 0, 40)[1]
