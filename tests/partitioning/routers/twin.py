"""What a partition means, in plain Python, one post and one query at a time; and samples to try it on.

Nothing here knows the routing table. Terms that no leaf of a node has go to a leaf by their remainder: any rule does,
as long as posts and queries follow the same.
"""

from collections.abc import Sequence

import numpy as np

from nearcast.common.op_schema import CODE_KEY_SHIFT, CODE_LAST, CODE_LENGTH_MASK, CODE_NEGATIVE, NEVER
from nearcast.partitioning.partition import BY_QUERY, SPACE, Partition
from nearcast.partitioning.router_sample import CKQ, CRQ, CTQ, SKQ, SRQ, STQ, Queries, RouterSample, SampledPosts

Conjunction = list[tuple[bool, tuple[int, ...]]]  # literals: (negative, terms in a row)
Post = tuple[float, float, Sequence[int]]  # lon, lat, words
Asked = tuple[int, Sequence[float], Sequence[Sequence[int]]]  # type, box, disjunction of conjunctions
HOUR = 3600 * 10**6


def conjunctions(queries: Queries, row: int) -> list[tuple[int, Conjunction]]:
    """(key, literals) of each conjunction, the key being 0 where no literal is positive."""
    code = [int(word) for word in queries.code[queries.code_offsets[row] : queries.code_offsets[row + 1]]]
    out: list[tuple[int, Conjunction]] = []
    literals: Conjunction = []
    key = 0
    while code:
        header, length = code[0], code[0] & CODE_LENGTH_MASK
        terms = tuple(code[1 : 1 + length])
        if not literals and not header & CODE_NEGATIVE:
            key = terms[header >> CODE_KEY_SHIFT & CODE_LENGTH_MASK]
        literals.append((bool(header & CODE_NEGATIVE), terms))
        code = code[1 + length :]
        if header & CODE_LAST:
            out.append((key, literals))
            literals, key = [], 0
    return out or [(0, [])]


def words_of(posts: SampledPosts, row: int) -> list[int]:
    return [int(term) for term in posts.terms[posts.offsets[row] : posts.offsets[row + 1]]]


def satisfies(sample: RouterSample, post: int, query: int) -> bool:
    west, south, east, north = sample.queries.boxes[query]
    lon, lat = sample.posts.lon[post], sample.posts.lat[post]
    across = west <= lon <= east if west <= east else lon >= west or lon <= east
    if not (across and south <= lat <= north):
        return False
    words = words_of(sample.posts, post)
    rows = {tuple(words[i : i + n]) for n in range(1, 4) for i in range(len(words))}
    return any(
        all((terms in rows) != negative for negative, terms in literals)
        for _, literals in conjunctions(sample.queries, query)
    )


def cell(partition: Partition, lon: float, lat: float) -> tuple[int, int]:
    west, south, width, height = partition.extent
    n = partition.cells
    return min(max(int((lon - west) / width * n), 0), n - 1), min(max(int((lat - south) / height * n), 0), n - 1)


def leaves_of(partition: Partition, node: int) -> range:
    return range(int(partition.first[node]), int(partition.first[node + 1]))


def keywords_of(partition: Partition, leaf: int) -> list[int]:
    if len(partition.keyword_starts) == 1:
        return []
    return [int(t) for t in partition.keywords[partition.keyword_starts[leaf] : partition.keyword_starts[leaf + 1]]]


def leaf_of_term(partition: Partition, node: int, term: int) -> int:
    leaves = leaves_of(partition, node)
    if term == 0:
        return leaves[0]
    for leaf in leaves:
        if term in keywords_of(partition, leaf):
            return leaf
    return leaves[term % len(leaves)]


def matching(partition: Partition, posts: SampledPosts, row: int) -> set[int]:
    """The leaves that a post is matched by."""
    x, y = cell(partition, posts.lon[row], posts.lat[row])
    node = int(partition.node[y * partition.cells + x])
    leaves, words = leaves_of(partition, node), words_of(posts, row)
    if partition.kind[node] == SPACE:
        return {leaves[0]}
    if partition.kind[node] == BY_QUERY:
        return {leaf_of_term(partition, node, word) for word in [0, *words]}
    like = [len(set(words) & set(keywords_of(partition, leaf))) for leaf in leaves]
    return {leaves[like.index(max(like))]}


def keeping(partition: Partition, queries: Queries, row: int) -> set[int]:
    """The leaves that keep a query."""
    west, south, east, north = (float(bound) for bound in queries.boxes[row])
    n = partition.cells
    grid = partition.node.reshape(n, n)
    out: set[int] = set()
    for low, high in [(west, east)] if west <= east else [(west, 180.0), (-180.0, east)]:
        (x0, y0), (x1, y1) = cell(partition, low, south), cell(partition, high, north)
        for node in np.unique(grid[y0 : y1 + 1, x0 : x1 + 1]).tolist():
            if partition.kind[node] == BY_QUERY:
                out |= {leaf_of_term(partition, node, key) for key, _ in conjunctions(queries, row)}
            else:
                out |= set(leaves_of(partition, node))
    return out


def check_partition(partition: Partition, sample: RouterSample, workers: int) -> None:
    """It has the shape that the contract says, and no post misses a query that it satisfies."""
    leaves, kinds = partition.leaves, partition.kind
    assert partition.workers == workers and len(partition.node) == partition.cells**2
    assert partition.node.min() >= 0 and partition.node.max() < partition.nodes
    assert partition.first[0] == 0 and partition.first[-1] == leaves and (np.diff(partition.first) > 0).all()
    assert all(np.diff(partition.first)[kinds == SPACE] == 1)
    assert len(partition.owner) == leaves and partition.owner.min() >= 0 and partition.owner.max() < workers
    assert np.isfinite(partition.load).all() and (partition.load >= 0).all()
    assert len(partition.keyword_starts) == (1 if (kinds == SPACE).all() else leaves + 1)
    assert partition.keyword_starts[-1] == len(partition.keywords)
    for node in range(partition.nodes):
        lists = [keywords_of(partition, leaf) for leaf in leaves_of(partition, node)]
        assert all(words == sorted(set(words)) for words in lists)
        if kinds[node] == SPACE:
            assert lists == [[]]
        if kinds[node] == BY_QUERY:
            assert sum(map(len, lists)) == len({word for words in lists for word in words})
    kept = [keeping(partition, sample.queries, row) for row in range(len(sample.queries))]
    for post in range(len(sample.posts)):
        matched = matching(partition, sample.posts, post)
        for query in range(len(sample.queries)):
            if satisfies(sample, post, query):
                assert matched & kept[query], (post, query)


def code_of(expression: Sequence[Sequence[int]]) -> list[int]:
    """The code of a disjunction of conjunctions of words, a negative one being excluded; the key is the first positive
    word, which comes first.
    """
    code: list[int] = []
    for conjunction in expression:
        words = sorted(conjunction, key=lambda word: word < 0)
        for number, word in enumerate(words):
            last = CODE_LAST if number == len(words) - 1 else 0
            code += [1 | last | (CODE_NEGATIVE if word < 0 else 0), abs(word)]
    return code


def make_sample(
    posts: Sequence[Post],
    queries: Sequence[Asked],
    times: Sequence[int] | None = None,
    life: Sequence[int] | None = None,
    k: int = 2,
) -> RouterSample:
    """A sample of these posts and queries; a post an hour, and queries that stand for ever, unless told."""
    codes = [code_of(expression) for _, _, expression in queries]
    return RouterSample(
        SampledPosts(
            np.array([post[0] for post in posts], np.float64),
            np.array([post[1] for post in posts], np.float64),
            np.array(times if times is not None else [HOUR * i for i in range(len(posts))], np.int64),
            np.array([word for post in posts for word in post[2]], np.uint64),
            np.cumsum([0, *(len(post[2]) for post in posts)]),
        ),
        Queries(
            np.array([query[0] for query in queries], np.uint8),
            np.array([query[1] for query in queries], np.float64).reshape(-1, 4),
            np.array([word for code in codes for word in code], np.uint64),
            np.cumsum([0, *map(len, codes)]),
            np.array(life if life is not None else [NEVER] * len(queries), np.int64),
            np.full(len(queries), k, np.int64),
        ),
    )


def random_sample(
    rng: np.random.Generator,
    posts: int,
    queries: int,
    shape: str = "spread",
    types: Sequence[int] = (SRQ, SKQ, STQ, CRQ, CKQ, CTQ),
    vocabulary: int = 12,
    side: float = 60.0,
) -> RouterSample:
    """Posts and queries of a few words, of which some queries have none, exclude some, cross the antimeridian or take
    in the world. `shape` is "spread", "crowded" (two cities), "point" or "poles".
    """
    lon, lat = rng.uniform(-180, 180, posts), rng.uniform(-90, 90, posts)
    if shape == "crowded":
        lon, lat = rng.normal(rng.choice([-74.0, 151.0], posts), 0.3), rng.normal(rng.choice([40.0, -34.0], posts), 0.3)
    if shape == "point":
        lon, lat = np.full(posts, 12.5), np.full(posts, 41.9)
    if shape == "poles":
        lon, lat = rng.choice([-180.0, 180.0], posts), rng.choice([-90.0, 90.0], posts)
    texts = [rng.integers(1, vocabulary + 1, rng.integers(0, 5)).tolist() for _ in range(posts)]
    asked = []
    for _ in range(queries):
        kind = int(rng.choice(types))
        x, y = (rng.uniform(-180, 180), rng.uniform(-90, 90)) if not posts or rng.random() < 0.3 else (0.0, 0.0)
        if (x, y) == (0.0, 0.0):
            at = rng.integers(posts)
            x, y = lon[at], lat[at]
        width, height = (0.0, 0.0) if kind in (SKQ, CKQ) else rng.uniform(0, side, 2) * rng.choice([0.01, 1.0])
        box = (x - width, max(y - height, -90.0), x + width, min(y + height, 90.0))
        box = ((box[0] + 180) % 360 - 180, box[1], (box[2] + 180) % 360 - 180 if box[2] != 180 else 180.0, box[3])
        if rng.random() < 0.05:
            box = (-180.0, -90.0, 180.0, 90.0)
        expression = [
            [int(word) * int(rng.choice([1, 1, 1, -1])) for word in rng.integers(1, vocabulary + 1, rng.integers(1, 4))]
            for _ in range(int(rng.integers(0, 3)))
        ]
        asked.append((kind, box, [] if kind in (STQ, CTQ) else expression))
    life = rng.choice([NEVER, 24 * HOUR, 72 * HOUR], queries)
    return make_sample(
        list(zip(lon.tolist(), lat.tolist(), texts, strict=True)),
        asked,
        np.sort(rng.integers(0, HOUR, posts)).tolist(),
        life.tolist(),
    )


SHAPES = ("spread", "crowded", "point", "poles")
EDGES = {
    "nothing": make_sample([], []),
    "two posts": make_sample([(1.0, 2.0, [5]), (170.0, -80.0, [])], []),
    "queries only": make_sample([], [(CRQ, (0, 0, 10, 10), [[3]]), (CTQ, (170, -10, -170, 10), [])]),
    "one word": make_sample([(float(i), 0.0, [7]) for i in range(40)], [(CRQ, (0, -1, 20, 1), [[7]])] * 30),
    "excluding only": make_sample([(float(i), 0.0, [i % 3]) for i in range(30)], [(CRQ, (0, -1, 20, 1), [[-1]])] * 9),
}
