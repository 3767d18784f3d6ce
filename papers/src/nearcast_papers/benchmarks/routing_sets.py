"""The workloads that routers are compared on: posts and queries of each paper's sets, to build from and fresh ones.

| set | posts | queries |
|---|---|---|
| q1, q2, q3 | as given | PS2Stream's (PS2Stream §VI-A) |
| srq, skq, stq, crq, ckq, ctq | as given | SSTD's types (SSTD §7.1): one word, 0.01% of the space, k = 10 |
| mix | as given | equally many of each of these types |
| tornado | as given | CRQs of three of a post's words, sides of 0.1% of the space's (Tornado §6) |
| tornado-skewed | as given | the same about posts of crowded places: a cell with n posts is drawn with n² |
| tornado-selective | as given | the same of the three rarest words of a post |
| srq-uni, crq-uni, srq-gau, crq-gau | moved to uniform or normal places (SSTD §7.2) | SSTD's |

Posts fill 72 hours, which is as long as SSTD's queries look back or live: so a search and a subscription meet as many.
Queries are about posts of the sample. The fresh ones are other draws, and the fresh posts those of the next 72 hours.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.common.errors import BadInput
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.partitioning.router_sample import CKQ, CRQ, CTQ, SKQ, STQ, TYPES, Queries, RouterSample, SampledPosts
from nearcast.sources.world import World
from nearcast.storage.subscriptions.rows import Rows, take_lists
from nearcast_papers.benchmarks.bulk_queries import rows_of, term_counts
from nearcast_papers.query_sets import PostSample, q1, q2, q3, sstd

HOUR = 3_600_000_000
SPAN = 72 * HOUR
K = 10
THIN = 20_000  # posts in 72 hours
TORNADO_SIDE = 0.001  # of the space's sides
CROWDED = 64  # cells a side by which crowded places are told
WHOLE_WORLD = (-180.0, -90.0, 180.0, 90.0)

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Half:
    """Posts and queries, either those to build from or fresh ones. `rows` are the queries with the boxes as asked;
    `type` is that of each.
    """

    posts: SampledPosts
    rows: Rows
    type: np.ndarray

    @property
    def sample(self) -> RouterSample:
        rows, near = self.rows, np.isin(self.type, (SKQ, CKQ))
        boxes = np.where(near[:, None], middles(rows.boxes)[:, [0, 1, 0, 1]], rows.boxes)
        k = np.where(near | np.isin(self.type, (STQ, CTQ)), K, 0).astype(np.int64)
        life = np.full(len(rows), SPAN, np.int64)
        return RouterSample(
            self.posts, Queries(self.type, boxes, rows.code, rows.code_offsets.astype(np.int64), life, k)
        )


@dataclass(frozen=True)
class Ground:
    """Posts that sets are made on: those of the sample and the fresh ones, as tables, in the space `extent` (min_lon,
    min_lat, max_lon, max_lat).
    """

    known: pa.Table
    fresh: pa.Table
    extent: Box

    @cached_property
    def source(self) -> PostSample:
        return PostSample.of(self.known)

    @cached_property
    def frequencies(self) -> tuple[np.ndarray, np.ndarray]:
        return term_counts(self.known["text"])

    @cached_property
    def posts(self) -> tuple[SampledPosts, SampledPosts]:
        return posts_of(self.known), posts_of(self.fresh)

    def moved(self, where: str, seed: int) -> "Ground":
        """The same posts at uniform (`uni`) or normal (`gau`) places, as in SSTD §7.2: σ = 1 degree about the
        middle of the space.
        """
        west, south, east, north = self.extent

        def place(table: pa.Table, number: int) -> pa.Table:
            rng = np.random.default_rng((seed, 0x6E0, number))
            if where == "uni":
                lon, lat = rng.uniform(west, east, len(table)), rng.uniform(south, north, len(table))
            else:
                lon, lat = ((a + b) / 2 + rng.normal(0, 1, len(table)) for a, b in ((west, east), (south, north)))
            places = {"lon": np.clip(lon, -180, 180), "lat": np.clip(lat, -90, 90)}
            return pa.table({"ts": table["ts"], "text": table["text"], **places})

        return Ground(place(self.known, 0), place(self.fresh, 1), self.extent)


def generated(posts: int, seed: int, within: Box = WHOLE_WORLD) -> Ground:
    """Twice so many posts of the generator's world, or about so many of a part of it; a few fill less than 72 hours, as
    a thin stream is slow to make.
    """
    rate, made, share = max(posts, THIN) / (SPAN / 1e6), 2 * posts, 1.0
    if within != WHOLE_WORLD:
        share = max(float(_inside(World(seed=seed, rate=rate).posts(0, THIN), within).mean()), 1 / THIN)
        made = int(2.5 * posts / share)
    table = World(seed=seed, rate=rate / share).posts(0, made)
    table = _only_within(table, within).slice(0, 2 * posts)
    return Ground(table.slice(0, len(table) // 2), table.slice(len(table) // 2), within)


def real(path: Path, posts: int, seed: int, within: Box = WHOLE_WORLD) -> Ground:
    """At most twice so many posts of a Parquet file, drawn at random, evenly over the time; the space is theirs."""
    if not path.is_file():
        raise BadInput(f"{path} is no file: give posts as Parquet with the columns lon, lat and text")
    table = pq.read_table(path)
    if not {"lon", "lat", "text"} <= set(table.column_names):
        raise BadInput(f"{path} has no columns lon, lat and text, only {', '.join(table.column_names)}")
    table = _only_within(table.select(["lon", "lat", "text"]).drop_null(), within)
    half = min(posts, len(table) // 2)
    order = np.random.default_rng((seed, 0x4EA1)).permutation(len(table))[: 2 * half]
    table = table.take(pa.array(order))
    table = table.append_column("ts", pa.array(np.arange(2 * half) * SPAN // max(half, 1)))
    lon, lat = table["lon"].to_numpy(), table["lat"].to_numpy()
    extent = (float(lon.min()), float(lat.min()), float(lon.max()), float(lat.max()))
    return Ground(table.slice(0, half), table.slice(half), extent)


def _inside(table: pa.Table, box: Box) -> np.ndarray:
    west, south, east, north = box
    lon, lat = (table[name].to_numpy() for name in ("lon", "lat"))
    out: np.ndarray = (west <= lon) & (lon <= east) & (south <= lat) & (lat <= north)
    return out


def _only_within(table: pa.Table, box: Box) -> pa.Table:
    table = table if box == WHOLE_WORLD else table.filter(pa.array(_inside(table, box)))
    if len(table) < 2:
        raise BadInput(f"there are no posts in {box}: give another --extent")
    return table


Make = Callable[[Ground, int, int, int], pa.Table]  # ground, count, seed, first → queries


def _sstd(ground: Ground, count: int, seed: int, first: int) -> pa.Table:
    return sstd(ground.source, count, seed, first, extent=ground.extent)


def _tornado(ground: Ground, count: int, seed: int, first: int) -> pa.Table:
    return _of_three_words(ground.source, ground, count, seed, first)


def _skewed(ground: Ground, count: int, seed: int, first: int) -> pa.Table:
    source = ground.source
    cells = _cells(source.lon, source.lat)
    weight = np.bincount(cells, minlength=CROWDED**2)[cells].astype(np.float64)
    rng = np.random.default_rng((seed, 0x5CE3))
    drawn = rng.choice(len(cells), len(cells), p=weight / weight.sum())
    return _of_three_words(_only(source, drawn), ground, count, seed, first)


def _selective(ground: Ground, count: int, seed: int, first: int) -> pa.Table:
    source = ground.source
    post = np.repeat(np.arange(len(source.lon)), np.diff(source.start))
    order = np.lexsort((-source.terms, post))
    place = np.arange(len(order)) - source.start[post]
    kept = order[place < 3]
    start = np.r_[0, np.cumsum(np.minimum(np.diff(source.start), 3))]
    return _of_three_words(replace(source, terms=source.terms[kept], start=start), ground, count, seed, first)


def _of_three_words(source: PostSample, ground: Ground, count: int, seed: int, first: int) -> pa.Table:
    return sstd(source, count, seed, first, words=(3, 3), area_share=TORNADO_SIDE**2, extent=ground.extent)


MIX = -1
SETS: dict[str, tuple[str, Make, int]] = {  # whose places, queries, type
    "q1": ("given", lambda ground, *more: q1(ground.source, *more), CRQ),
    "q2": ("given", lambda ground, *more: q2(ground.source, *more), CRQ),
    "q3": ("given", lambda ground, *more: q3(ground.source, *more), CRQ),
    **{name: ("given", _sstd, kind) for kind, name in enumerate(TYPES)},
    "mix": ("given", _sstd, MIX),
    "tornado": ("given", _tornado, CRQ),
    "tornado-skewed": ("given", _skewed, CRQ),
    "tornado-selective": ("given", _selective, CRQ),
    **{f"{TYPES[kind]}-{where}": (where, _sstd, kind) for where in ("uni", "gau") for kind in (0, CRQ)},
}


class Grounds:
    """The posts as given, and moved where a set wants them so; each made once."""

    def __init__(self, given: Ground, seed: int) -> None:
        self._made, self._seed = {"given": given}, seed

    def __getitem__(self, where: str) -> Ground:
        if where not in self._made:
            self._made[where] = self._made["given"].moved(where, self._seed)
        return self._made[where]


def make_set(name: str, grounds: Grounds, queries: int, seed: int) -> tuple[Half, Half]:
    """(to build from, fresh): so many queries each."""
    if name not in SETS:
        raise BadInput(f"there is no set {name!r}: there is {', '.join(SETS)}")
    where, make, kind = SETS[name]
    ground = grounds[where]
    halves = []
    for number, posts in enumerate(ground.posts):
        table = make(ground, queries, seed, number * queries)
        rows = rows_of(table, ground.frequencies)
        type_ = (rows.id % len(TYPES) if kind == MIX else np.full(len(rows), kind)).astype(np.uint8)
        halves.append(Half(posts, without_words(rows, np.isin(type_, (STQ, CTQ))), type_))
    return halves[0], halves[1]


def posts_of(table: pa.Table) -> SampledPosts:
    lon, lat, ts = (table[name].to_numpy() for name in ("lon", "lat", "ts"))
    return SampledPosts(lon, lat, ts.astype(np.int64), *Tokenizer().terms(table["text"]))


def without_words(rows: Rows, which: np.ndarray) -> Rows:
    """The same rows, some of them freed of their words: frequent terms are asked for of all posts of a region."""
    sizes = np.where(which, 0, np.diff(rows.code_offsets.astype(np.int64)))
    code, _ = take_lists(rows.code, rows.code_offsets, np.flatnonzero(~which))
    return replace(rows, code=code, code_offsets=np.r_[0, np.cumsum(sizes)].astype(rows.code_offsets.dtype))


def middles(boxes: np.ndarray) -> np.ndarray:
    """(lon, lat) of the middle of each box."""
    width = (boxes[:, 2] - boxes[:, 0]) % 360.0
    lon = (boxes[:, 0] + width / 2 + 180.0) % 360.0 - 180.0
    return np.stack([lon, (boxes[:, 1] + boxes[:, 3]) / 2], axis=1)


def _cells(lon: np.ndarray, lat: np.ndarray) -> np.ndarray:
    x, y = (
        np.minimum((v - v.min()) / max(float(np.ptp(v)), 1e-9) * CROWDED, CROWDED - 1).astype(int) for v in (lon, lat)
    )
    return y * CROWDED + x


def _only(source: PostSample, posts: np.ndarray) -> PostSample:
    terms, start = take_lists(source.terms, source.start, posts)
    return replace(source, lon=source.lon[posts], lat=source.lat[posts], terms=terms, start=start)
