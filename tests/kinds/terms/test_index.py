"""Reports counted from tables of cells, and those counted by sliding, beside a count of every post."""

from collections import Counter
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nearcast.common.geo.containment import contains
from nearcast.common.op_schema import OPS
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine.op_resolution import _rows
from nearcast.engine.ticks import Due
from nearcast.kinds.terms import index as term_groups
from nearcast.kinds.terms import window
from nearcast.kinds.terms.index import Reports, report
from nearcast.kinds.terms.kernels import tick_reports as kernels
from nearcast.kinds.terms.query import TermsQuery
from nearcast.kinds.terms.window import PostWindow, Windows
from nearcast.language import encode_query, parse
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.subscriptions.rows import Rows
from tests.marks import slow

SECOND = 1_000_000
WORDS = [
    "rain",
    "coffee",
    "zürich",
    "zebra",
    "水",
    "🌊",
    "a",
    "aa",
    "antidisestablishmentarianism",
    "antidisestablish",
]


class World:
    """Posts in a few towns and between them, words of very different frequency, and regions of every kind."""

    def __init__(self, seed: int, posts: int) -> None:
        self.random = Random(seed)
        self.words = WORDS + [f"w{n}" for n in range(400)]
        self.posts = [self.post(n) for n in range(posts)]

    def place(self) -> tuple[float, float]:
        random = self.random
        lon, lat = random.choice(((2.0, 48.0), (2.1, 48.1), (2.6, 47.5), (179.9, -16.5), (-179.9, -16.4), (0.0, 90.0)))
        spread = random.choice((0.0, 0.01, 0.3, 3.0))
        lon = (lon + random.gauss(0, spread) + 180) % 360 - 180
        return lon, max(-90.0, min(90.0, lat + random.gauss(0, spread)))

    def post(self, number: int) -> dict[str, Any]:
        text = [self.words[int(len(self.words) ** self.random.random()) - 1] for _ in range(self.random.randrange(9))]
        lon, lat = self.place()
        return {
            "id": number,
            "ts": self.random.randrange(1, 20) * SECOND,
            "lon": lon,
            "lat": lat,
            "text": " ".join(text),
        }

    def region(self) -> str:
        random = self.random
        lon, lat = self.place()
        size = random.choice((1e-9, 0.02, 0.5, 4.0))
        match random.randrange(6):
            case 0:
                return ""
            case 1:
                return f"loc INSIDE CIRCLE({lon!r}, {lat!r}, {size * 100!r} km) AND "
            case 2:
                a, b, c = (f"{max(-180, min(180, lon + x * size))!r} {max(-90, min(90, lat + y * size))!r}"
                           for x, y in ((-1, -1), (1.1, -1), (0, 1)))  # fmt: skip
                return f"loc INSIDE POLYGON('POLYGON(({a}, {b}, {c}, {a}))') AND "
            case 3:
                return f"loc INSIDE RECT(179, -20, {random.choice((-179, -170))}, 0) AND "
        west, east = max(-180.0, lon - size), min(180.0, lon + size)
        return f"loc INSIDE RECT({west!r}, {max(-90.0, lat - size)!r}, {east!r}, {min(90.0, lat + size)!r}) AND "

    def segments(self, parts: int) -> list[tuple[str, PostSegment, np.ndarray]]:
        out = []
        for part in range(parts):
            posts = self.posts[part::parts]
            texts = pa.array([post["text"] for post in posts])
            terms, offsets = Tokenizer().terms(texts)
            columns = {name: pa.array([post[name] for post in posts]) for name in ("id", "ts", "lon", "lat")}
            table = pa.table({
                **columns, "id_text": pa.nulls(len(posts), pa.string()), "text": texts,
                "leaf": pa.array(np.zeros(len(posts), np.int32)),
                "terms": pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(terms)),
            })  # fmt: skip
            out.append((str(part), PostSegment.of(table), np.empty(0, np.int64)))
        return out

    def window(self, parts: int) -> PostWindow:
        tokenizer = Tokenizer()
        known = {int(tokenizer.terms(pa.array([word]))[0][0]): word for word in self.words}
        return Windows(np.empty(0, np.uint64)).open(
            self.segments(parts), -1, lambda terms: pa.array([known[t] for t in terms.tolist()])
        )


def parsed(texts: list[str]) -> list[TermsQuery]:
    queries = [parse(text, Tokenizer()).query for text in texts]
    return [query for query in queries if isinstance(query, TermsQuery)]


def rows_of(queries: list[TermsQuery]) -> Rows:
    records = [
        {"op": 0, "id": n, "id_text": None, "ts": None, "sql": None, "digest": n, **encode_query(query)}
        for n, query in enumerate(queries)
    ]
    ops = pa.Table.from_pylist(records, schema=OPS)
    return _rows(ops, np.arange(len(ops)), np.arange(len(ops)), np.zeros(len(ops), np.int64))


def counted(world: World, query: TermsQuery, end: int) -> list[tuple[str, int]]:
    """The definition: the k terms that most posts of the window have, ties by term."""
    assert query.after is not None and query.after.ago is not None
    found: Counter[str] = Counter()
    for post in world.posts:
        in_window = end - query.after.ago < post["ts"] <= end
        if in_window and (query.region is None or contains(query.region, post["lon"], post["lat"])):
            found.update(set(post["text"].split()))
    return sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[: query.k]


def told(found: Reports) -> dict[tuple[int, int], list[tuple[str, int]]]:
    rows = found.lists().to_pylist()
    return {
        (int(row), int(end)): [(each["term"], each["count"]) for each in rows[n]]
        for n, (row, end) in enumerate(zip(found.row, found.window_end, strict=True))
    }


@pytest.mark.parametrize(
    ("seed", "frequent"),
    [(3, 7), *slow((1, 8192), (2, 1), (4, 60))],
)
def test_reports_from_tables_of_cells(seed: int, frequent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of regions large and small, for any number of words that the tables have."""
    monkeypatch.setattr(term_groups, "MANY_ROWS", 1)
    monkeypatch.setattr(term_groups, "MANY_POSTS", 0)
    monkeypatch.setattr(term_groups, "FREQUENT", frequent)
    monkeypatch.setattr(window, "FREQUENT", frequent)
    world = World(seed, 9000)
    sql = [
        f"SELECT TopK(text, {world.random.choice((1, 3, 10, 700))}) FROM stream WHERE {world.region()}"
        f"time AFTER '{world.random.choice((5, 12))} seconds ago' SYNC 4 seconds"
        for _ in range(120)
    ]
    queries = parsed(sql)
    due = all_due(rows_of(queries), 16 * SECOND, 1)
    found = report(due, world.window(3))
    assert told(found) == {(n, 16 * SECOND): counted(world, query, 16 * SECOND) for n, query in enumerate(queries)}
    assert found.empty.tolist() == [0 if counted(world, query, 16 * SECOND) else 1 for query in queries]


@pytest.mark.parametrize("seed", [5, *slow(6)])
def test_reports_of_several_beats(seed: int) -> None:
    world = World(seed, 600)
    sql = [
        f"SELECT TopK(text, {world.random.choice((1, 3, 700))}) FROM stream WHERE {world.region()}"
        f"time AFTER '{world.random.choice((5, 12))} seconds ago' SYNC {world.random.choice((1, 4))} seconds"
        for _ in range(60)
    ]
    queries = parsed(sql)
    rows = rows_of(queries)
    found = report(all_due(rows, 4 * SECOND, 5), world.window(2))
    ends = [(n, 4 * SECOND + i * (query.sync or 0)) for n, query in enumerate(queries) for i in range(5)]
    assert told(found) == {(n, end): counted(world, queries[n], end) for n, end in ends}


def all_due(rows: Rows, begin: int, count: int) -> Due:
    n = len(rows)
    return Due(rows, np.full(n, begin), np.full(n, count), np.zeros(n, np.int64), np.zeros(n, np.bool_))


def test_groups_are_of_one_kind_and_lie_together() -> None:
    world = World(7, 0)
    sql = [
        f"SELECT TopK(text) FROM stream WHERE {world.region()}time AFTER '{world.random.choice((5, 12))} seconds ago'"
        f"{world.random.choice(('', chr(32) + 'AND text CONTAINS ' + repr('rain')))} SYNC 1 second"
        for _ in range(300)
    ]
    rows = rows_of(parsed(sql))
    order, firsts, conditions = term_groups.groups(rows)
    assert sorted(order.tolist()) == list(range(300))
    sizes = np.diff(firsts)
    assert 1 < sizes.max() <= kernels.MOST and sizes.min() >= 1
    for begin, end in pairwise(firsts):
        members = order[begin:end]
        assert len({(conditions[row], *rows.ticks[row, :2].tolist()) for row in members}) == 1
        boxes = rows.boxes[members]
        if len(members) > 1:
            united = (boxes[:, 2].max() - boxes[:, 0].min()) * (boxes[:, 3].max() - boxes[:, 1].min())
            largest = ((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])).max()
            assert united <= term_groups.SPREAD * largest
