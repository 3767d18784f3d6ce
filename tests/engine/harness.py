"""Running batches without Spark, reading the outbox, and random streams to run."""

from collections import Counter
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.common.geo.distance import haversine_km
from nearcast.common.kernels.hashing import hash_strings
from nearcast.common.kernels.mix import id_keys
from nearcast.engine.align import align
from nearcast.engine.begin import begin
from nearcast.engine.local import run_locally
from nearcast.engine.settings import Settings
from nearcast.kinds.nearest.query import NearestQuery
from nearcast.kinds.nearest.state import AnswerSet
from nearcast.reader.current_answer import read_current
from nearcast.reader.reader import Reader
from nearcast.reader.results import read_results
from nearcast.sources.op_records import normalise_ops
from nearcast.sources.raw import Raw
from nearcast.sources.records import normalise
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import RESULTS, Manifest
from nearcast.storage.outbox import MATCH, Results
from tests.engine.oracle import Batch, Oracle, Result

MINUTE = 60_000_000
MIXED = ("id", "n", "kind", "price")  # attributes of mixed types
NOON = 1_700_000_000_000_000 // MINUTE * MINUTE


def posts_tables(posts: list[dict[str, Any]]) -> tuple[list[pa.Table], pa.Table]:
    """Raw posts as normalised tables in their order, and the rejects. A column has one type, those of MIXED may have
    several.
    """
    tables, rejects = [], []
    for _, group in groupby(posts, key=lambda post: {name: type(v) for name, v in post.items() if name in MIXED}):
        table = pa.Table.from_pylist(list(group))
        if not pa.types.is_null(table["ts"].type):
            at = table.schema.get_field_index("ts")
            table = table.set_column(at, "ts", table["ts"].cast(pa.timestamp("us", tz="UTC")))
        good, bad = normalise(table)
        tables.append(good)
        rejects.append(bad)
    return tables, pa.concat_tables(rejects)


def ops_table(ops: list[dict[str, Any]]) -> pa.Table:
    """Raw ops as the pipeline takes them."""
    tables = []
    for _, group in groupby(ops, key=lambda op: type(op["id"])):
        rows = [{"op": op["op"], "id": op["id"], "ts": op.get("ts"), "sql": op.get("sql")} for op in group]
        schema = pa.schema([("op", pa.string()), ("ts", pa.timestamp("us", tz="UTC")), ("sql", pa.string())])
        ids = pa.array([row["id"] for row in rows])
        table = pa.table({"id": ids, **{n: pa.array([r[n] for r in rows], schema.field(n).type) for n in schema.names}})
        good, bad = normalise_ops(Raw(table, pa.table({"reason": [], "raw": []}), lambda rows: [""] * len(rows)))
        assert not len(bad)
        tables.append(good)
    return pa.concat_tables(tables, promote_options="default")


def run(
    root: Path,
    settings: Settings,
    batches: list[Batch],
    workers: tuple[int, ...] = (),
    sample: list[dict] | None = None,
) -> StateDirectory:
    """A state after these batches; `workers`, if given, are taken in turn, the state being aligned each time."""
    state = StateDirectory(root)
    posts = sample if sample is not None else [post for batch in batches for post in batch.posts]
    start(state, settings, posts)
    for number, batch in enumerate(batches):
        if workers:
            settings = replace(settings, workers=workers[number % len(workers)])
            align(state, settings)
        step(state, settings, batch)
    return state


def start(state: StateDirectory, settings: Settings, posts: list[dict[str, Any]]) -> None:
    tables, _ = posts_tables(posts) if posts else ([], None)
    begin(state, settings, pa.concat_tables(tables, promote_options="default").combine_chunks() if tables else None)


def step(state: StateDirectory, settings: Settings, batch: Batch) -> Manifest:
    tables, rejects = posts_tables(batch.posts) if batch.posts else ([], None)
    ops = ops_table(batch.ops) if batch.ops else None
    return run_locally(state, settings, tables, ops, rejects, arrival=batch.arrival)


def outbox(state: StateDirectory, kind: int = MATCH) -> Counter[Result]:
    """The results of one kind, and how often each is there; a result must stand where its `seq` says."""
    manifest = state.newest()
    found: Counter[Result] = Counter()
    refs = sorted(manifest.of(RESULTS), key=lambda ref: ref.facts["seq"])
    place = 0
    for ref in refs:
        assert ref.facts["seq"] == place
        results = Results.open(state.path(ref.name))
        assert len(results) == ref.rows
        place += len(results)
        posts = results.posts.to_pylist()
        for row in results.table.to_pylist():
            if row["kind"] == kind:
                post = posts[row["post"]]
                query = row["query"] if row["query_text"] is None else row["query_text"]
                post_id = post["id"] if post["id_text"] is None else post["id_text"]
                found[query, post_id, post["ts"], post["lon"], post["lat"]] += 1
    assert manifest.next_seq == place
    return found


def check(state: StateDirectory, oracle: Oracle) -> None:
    """The outbox holds what the oracle says, each once; the counts agree."""
    found = outbox(state)
    missing, extra = oracle.results - found.keys(), found.keys() - oracle.results
    assert not missing, f"{len(missing)} of {len(oracle.results)} missing: {sorted(missing, key=str)[:5]}"
    assert not extra, f"{len(extra)} too many: {sorted(extra, key=str)[:5]}"
    assert max(found.values(), default=1) == 1, [result for result, times in found.items() if times > 1][:5]
    manifest = state.newest()
    assert manifest.counts.get("rejects", 0) == oracle.rejects
    if oracle.keep == "posts":
        assert (manifest.clock if manifest.clock is not None else float("-inf")) == oracle.clock
        assert manifest.counts.get("duplicates", 0) == oracle.duplicates


def check_nearest(state: StateDirectory, oracle: Oracle) -> int:
    """The current answer of every id is the oracle's, in its order, and what `enter` and `leave` make of nothing; how
    many posts there are in them.
    """
    answers = AnswerSet.open(state, state.newest())
    reader = Reader(state)
    folded = fold(state)
    count = standing = 0
    for query_id in oracle.versions:
        right = oracle.current(query_id)
        version = oracle.versions[query_id][-1] if oracle.versions[query_id] else None
        if version is not None and version.end <= version.start:  # no post has its time: it may have been dropped
            standing += int((answers.keys == key_of(query_id)).sum())
            continue
        if right is None:
            assert not folded.get(query_id), query_id
            continue
        standing += 1
        found = list(read_current(reader, query_id))
        query = oracle.versions[query_id][-1].query
        assert isinstance(query, NearestQuery)
        where = [(row["id"], row["distance_km"]) for row in found]
        km = [haversine_km(query.lon, query.lat, post["lon"], post["lat"]) for post in right]
        assert where == [(post["id"], d) for post, d in zip(right, km, strict=True)], query_id
        posts = Counter((post["id"], post["ts"]) for post in right)
        assert folded.get(query_id, Counter()) == posts, query_id
        count += len(right)
    assert len(answers) == standing
    return count


def key_of(query_id: int | str) -> np.uint64:
    textual = isinstance(query_id, str)
    number = hash_strings(*_bytes(query_id)) if textual else np.array([query_id])
    return id_keys(number.astype(np.int64), np.array([textual]))[0]


def _bytes(text: int | str) -> tuple[np.ndarray, np.ndarray]:
    data = np.frombuffer(str(text).encode(), np.uint8)
    return data, np.array([0, len(data)])


def fold(state: StateDirectory) -> dict[int | str, Counter[tuple[int | str, int]]]:
    """By query what has entered and not left, as (post, ts)."""
    answers: dict[int | str, Counter[tuple[int | str, int]]] = {}
    for row in read_results(state):
        posts = answers.setdefault(row["query_id"], Counter())
        post = row.get("post_id"), row.get("ts")
        if row["kind"] == "enter":
            posts[post] += 1
        elif row["kind"] == "leave":
            assert posts[post] > 0, row
            posts[post] -= 1
            if not posts[post]:
                del posts[post]
    return answers


# -- random streams --------------------------------------------------------------------------------

WORDS = ("flood", "fire", "bus stop", "café", "rue", "straße", "#storm", "@mayor", "東京", "wi-fi", "the", "the", "a")
RARE = ("zebra", "quokka", "gnu")


class Streams:
    """Random ops and posts over few words, places and minutes, so that much matches and much coincides."""

    def __init__(self, seed: int, ids: int = 25, nearest: float = 0.0) -> None:
        self.random = Random(seed)
        self.ids = ids
        self.share = nearest  # of the subscriptions
        self.next_post = 0
        self.written: list[dict[str, Any]] = []
        self.deleted: set[int | str] = set()

    def place(self) -> tuple[float, float]:
        random = self.random
        if random.random() < 0.15:
            return random.choice((-180.0, 180.0, 0.0, 90.0)), random.choice((-90.0, 90.0, 0.0, 45.0))
        lon, lat = random.choice(((2.35, 48.86), (179.9, -16.5), (-73.9, 40.7), (10.0, 89.0)))
        spread = random.choice((0.001, 0.1, 3.0))
        lon = (lon + random.gauss(0, spread) + 180.0) % 360.0 - 180.0
        return lon, max(-90.0, min(90.0, lat + random.gauss(0, spread)))

    def text(self) -> str:
        words = [*WORDS, self.random.choice(RARE)]
        return " ".join(self.random.choice(words) for _ in range(self.random.randrange(9)))

    def post(self, ts: int) -> dict[str, Any]:
        random = self.random
        again = [post for post in self.written[-60:] if post["id"] not in self.deleted]
        if again and random.random() < 0.08:
            old = random.choice(again)
            if random.random() < 0.5:
                return dict(old)  # a duplicate
            lon, lat = self.place()  # an update: the same thing, elsewhere or later
            post = {**old, "lon": lon, "lat": lat, "ts": ts if old["ts"] is not None else None, "text": self.text()}
        else:
            self.next_post += 1
            lon, lat = self.place()
            number = self.next_post
            post = {
                "id": number if random.random() < 0.7 else f"p{number}",
                "ts": ts,
                "lon": lon,
                "lat": lat,
                "text": self.text(),
            }
            post["price"] = random.choice((None, 1, 5, 9))
            post["kind"] = random.choice((None, "shop", "road"))
            match random.randrange(40):
                case 0:
                    post["lat"] = 91.0
                case 1:
                    post["ts"] = None
                case 2:
                    post["lon"] = None
        self.written.append(post)
        return post

    def region(self) -> str:
        random = self.random
        lon, lat = self.place()
        size = 10 ** random.uniform(-2, 2.2)
        match random.randrange(6):
            case 0:
                return ""
            case 1:
                return f"loc INSIDE CIRCLE({lon!r}, {lat!r}, {size * 100!r} km)"
            case 2:
                a, b, c = (f"{max(-180, min(180, lon + x * size))!r} {max(-90, min(90, lat + y * size))!r}"
                           for x, y in ((-1, -1), (1, -1), (0, 1)))  # fmt: skip
                return f"loc INSIDE POLYGON('POLYGON(({a}, {b}, {c}, {a}))')"
            case 3:
                return f"loc INSIDE RECT(170, -60, -170, {random.choice((0, 90))})"
        west, south = lon - size, max(-90.0, lat - size)
        west = west if west >= -180 else max(west + 360, -180.0)
        east = lon + size
        east = east if east <= 180 else min(east - 360, 180.0)
        return f"loc INSIDE RECT({west!r}, {south!r}, {east!r}, {min(90.0, lat + size)!r})"

    def words(self) -> str:
        random = self.random
        picked = [random.choice((*WORDS, *RARE)) for _ in range(random.randrange(1, 5))]
        match random.randrange(7):
            case 0:
                return ""
            case 1:
                return f"text OVERLAPS '{' '.join(picked)}'"
            case 2:
                return f"text CONTAINS '{' OR '.join(picked)}'"
            case 3:
                return f"text CONTAINS 'NOT {picked[0]}'"
            case 4:
                return f"""text CONTAINS '"{picked[0]} {picked[-1]}" OR ({picked[0]} AND NOT {picked[-1]})'"""
        return f"text CONTAINS '{' '.join(picked[:2])}'"

    def sql(self, now: int) -> str:
        random = self.random
        conditions = [self.region(), self.words()]
        match random.randrange(12):
            case 0:
                conditions.append("price < 6")
            case 1:
                conditions.append("kind = 'shop' AND price IS NOT NULL")
            case 2:
                conditions.append("kind IS NULL")
            case 3:
                conditions.append(f"time AFTER {(now + random.randrange(-9, 9) * MINUTE) // 1000}")
            case 4:
                since = now + random.randrange(-20, 5) * MINUTE
                conditions.append(
                    f"time BETWEEN {since // 1000} AND {(since + random.randrange(1, 30) * MINUTE) // 1000}"
                )
        where = " AND ".join(condition for condition in conditions if condition)
        life = f" FOR {random.randrange(1, 40)} MINUTES" if random.random() < 0.2 else ""
        return f"SELECT {random.choice(('*', '*', 'id, text'))} FROM stream{' WHERE ' if where else ''}{where}{life}"

    def nearest(self, now: int) -> str:
        """As `sql`, of the nearest to a place where posts are, or to one that has several names."""
        words = self.words()
        plain = f"SELECT * FROM stream{' WHERE ' if words else ''}{words}"
        sql = self.sql(now) if self.random.random() < 0.4 else plain
        columns = "SELECT *" if self.random.random() < 0.7 else "SELECT id, price"  # the id is compared
        sql = columns + sql[sql.index(" FROM ") :]
        life = sql.find(" FOR ")
        lon, lat = self.place()
        order = f" ORDER BY DISTANCE(loc, POINT({lon!r}, {lat!r})) LIMIT {self.random.choice((1, 2, 3, 7, 40))}"
        return sql + order if life < 0 else sql[:life] + order + sql[life:]

    def op(self, now: int, oracle: Oracle) -> dict[str, Any]:
        """Most are subscriptions, of few ids, so that they repeat, replace and end each other."""
        random = self.random
        query_id: int | str = random.randrange(self.ids)
        query_id = f"q{query_id}" if query_id % 3 else query_id
        ts = now + random.randrange(-10, 10) * MINUTE if random.random() < 0.3 else None
        kind = random.random()
        if kind < 0.12:
            return {"op": "unsubscribe", "id": query_id, "ts": ts}
        if kind < 0.18 and oracle.posts:
            post_id = random.choice(oracle.posts)["id"]
            self.deleted.add(post_id)
            return {"op": "delete", "id": post_id}
        if kind < 0.22:
            return {"op": "subscribe", "id": query_id, "sql": random.choice(("SELECT nothing", "SELECT * FORM stream"))}
        versions = oracle.versions.get(query_id, [])
        if versions and random.random() < 0.3:  # the same again
            return {"op": "subscribe", "id": query_id, "sql": versions[-1].sql, "ts": ts}
        ask = self.nearest if self.share and random.random() < self.share else self.sql
        return {"op": "subscribe", "id": query_id, "sql": ask(now), "ts": ts}


def random_batches(
    streams: Streams, count: int, keep: str = "posts", disorder: int = 5, strays: bool = False
) -> tuple[list[Batch], Oracle]:
    """Batches of ops and posts, and the oracle that has followed them. With `strays`, each batch of posts arrives at a
    known time and ends with one from too far in the future.
    """
    random = streams.random
    now = NOON
    batches: list[Batch] = []
    oracle = Oracle(NOON, keep)
    for _ in range(count):
        clock = now if oracle.clock == float("-inf") else int(oracle.clock)
        ops = [streams.op(clock, oracle) for _ in range(random.choice((0, 6, 25)))]
        posts = []
        for _ in range(random.choice((0, 1, 30, 60))):
            now += random.choice((0, 0, MINUTE // 3, MINUTE))
            posts.append(streams.post(now - random.choice((0, 0, 0, disorder)) * MINUTE * random.randrange(3)))
        if posts and strays:
            posts.append({**posts[0], "id": 10**9 + len(batches), "ts": now + 86_400_000_001})
        batches.append(Batch(ops, posts, arrival=now) if strays else Batch(ops, posts))
        oracle.batch(batches[-1])
    return batches, oracle


def shuffled(posts: list[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    order = np.random.default_rng(seed).permutation(len(posts))
    return [posts[i] for i in order]
