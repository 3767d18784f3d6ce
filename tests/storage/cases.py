"""Subscriptions and posts for the conformance suite: few words, few places and few times, so that much matches."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from nearcast.common.expressions import And, Expression, Not, Or, Phrase
from nearcast.common.geo import containment as regions
from nearcast.common.geo.shapes import Circle, Polygon, Rect, Region
from nearcast.common.geo.wkt import TINY
from nearcast.common.op_schema import BEGINNING, NEVER
from nearcast.language.encode import encode_expression
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.subscriptions.rows import Rows

# Terms that share what an index may keep of a term: the top 23 bits (some with 0, which stands for any word), the top 6
# bits, the low bits.
TERMS = (0x9E3779B97F4A7C15, 0x9E3779B97F4A7C16, 0x9E3779C000000001, 0x1234567890ABCDEF, 7, 1 << 40, 2**64 - 1, 1 << 63)
TAGS = (0x0F0F0F0F0F0F0F0F, 0x0F0F0F0F0F0F0F10)


@dataclass(frozen=True)
class Subscription:
    id: int | str
    region: Region | None = None
    text: Expression | None = None
    start: int = BEGINNING
    end: int = NEVER
    life: int = NEVER


@dataclass(frozen=True)
class Post:
    lon: float
    lat: float
    ts: int = 5
    terms: tuple[int, ...] = ()


def word(term: int) -> Phrase:
    return Phrase((term,), ("",))


def phrase(*terms: int) -> Phrase:
    return Phrase(terms, ("",) * len(terms))


def rows_of(subscriptions: list[Subscription], first_seq: int = 0) -> Rows:
    """Subscriptions as an index takes them; the op that made number i is first_seq + i."""
    boxes, kinds, shapes, codes, ends = [], [], [], [], []
    for each in subscriptions:
        kind, box, shape = regions.encode(each.region)
        code = encode_expression(each.text)
        boxes.append(box)
        kinds.append(kind)
        shapes.append(shape)
        codes.append(code or [])
        ends.append(BEGINNING if code is None else each.end)
    count = len(subscriptions)
    texts = [each.id if isinstance(each.id, str) else None for each in subscriptions]
    ids = [abs(hash(each.id)) % 1000 if isinstance(each.id, str) else each.id for each in subscriptions]
    return Rows(
        seq=np.arange(first_seq, first_seq + count, dtype=np.int64),
        id=np.array(ids, np.int64),
        id_text=pa.array(texts, pa.string()),
        start=np.array([each.start for each in subscriptions], np.int64),
        end=np.array(ends, np.int64),
        life=np.array([each.life for each in subscriptions], np.int64),
        digest=np.arange(count, dtype=np.uint64),
        home=np.ones(count, np.uint8),
        kinds=np.array(kinds, np.uint8),
        boxes=np.array(boxes, np.float64).reshape(-1, 4),
        shape=np.array([value for shape in shapes for value in shape], np.float64),
        shape_offsets=offsets_of(shapes).astype(np.uint32),
        code=np.array([value for code in codes for value in code], np.uint64),
        code_offsets=offsets_of(codes).astype(np.uint32),
        predicates=pa.array([], pa.string()),
        columns=pa.array([], pa.string()),
        sql=pa.array([], pa.string()),
    )


def columns_of(posts: list[Post]) -> PostColumns:
    return PostColumns(
        np.array([post.lon for post in posts], np.float64),
        np.array([post.lat for post in posts], np.float64),
        np.array([post.ts for post in posts], np.int64),
        np.array([term for post in posts for term in post.terms], np.uint64),
        offsets_of([post.terms for post in posts]),
    )


def offsets_of(lists: list) -> np.ndarray:
    return np.cumsum([0, *(len(each) for each in lists)]).astype(np.int64)


# -- random ones -----------------------------------------------------------------------------------


def _places(half: float) -> st.SearchStrategy[float]:
    """Coordinates in [-half, half]: ends, borders of cells of some level and their neighbours, and any."""
    level = st.sampled_from((1, 2, 4, 6, 8, 18))
    border = st.tuples(level, st.integers(0, 1 << 18)).map(
        lambda at: -half + 2 * half * (at[1] % (1 << at[0])) / (1 << at[0])
    )
    near = st.sampled_from((-half, half, 0.0, -0.0, half / 2, np.nextafter(half, 0.0), 11.25, 11.251, 12.0))
    beside = st.tuples(border, st.sampled_from((-np.inf, np.inf))).map(lambda at: float(np.nextafter(*at)))
    fair = st.floats(-half, half, allow_nan=False)
    clear = st.one_of(near, border, beside, fair).map(lambda value: value if abs(value) > TINY else 0.0)
    return clear.map(lambda value: float(min(max(value, -half), half)))


lons, lats = _places(180.0), _places(90.0)
sizes = st.sampled_from((0.0, 0.001, 0.1, 3.0, 40.0, 200.0))  # degrees: from 100 m to the world


@st.composite
def rects(draw: st.DrawFn) -> Rect:
    west, south = draw(lons), draw(lats)
    if draw(st.booleans()):  # any two corners: it crosses the antimeridian in half of the cases
        other = draw(lats)
        return Rect(west, min(south, other), draw(lons), max(south, other))
    return Rect(west, south, min(180.0, west + draw(sizes)), min(90.0, south + draw(sizes)))


circles = st.builds(Circle, lons, lats, st.sampled_from((0.0, 0.1, 5.0, 300.0, 2000.0, 9000.0, 15000.0, 20100.0)))
rings = st.lists(st.tuples(lons, lats), min_size=3, max_size=6).map(tuple)
polygons = st.lists(rings, min_size=1, max_size=2).map(lambda parts: Polygon(tuple(parts)))
areas = st.one_of(st.none(), rects(), rects(), circles, polygons)

literals = st.one_of(
    st.sampled_from(TERMS).map(word),
    st.sampled_from(TERMS).map(word),
    st.sampled_from(TAGS).map(word),
    st.lists(st.sampled_from(TERMS), min_size=2, max_size=3).map(lambda terms: phrase(*terms)),
)
several = st.lists(literals, min_size=1, max_size=5)
texts = st.one_of(
    st.none(),
    several.map(lambda parts: And(tuple(parts))),
    several.map(lambda parts: Or(tuple(parts))),
    several.map(lambda parts: Not(Or(tuple(parts)))),
    st.recursive(
        literals,
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: And(tuple(parts))),
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: Or(tuple(parts))),
            inner.map(Not),
        ),
        max_leaves=6,
    ),
)
times = st.integers(0, 12)
subscriptions = st.builds(
    Subscription,
    id=st.one_of(st.integers(0, 5), st.sampled_from(("a", "b"))),
    region=areas,
    text=texts,
    start=st.one_of(st.just(BEGINNING), st.just(BEGINNING), times),
    end=st.one_of(st.just(NEVER), st.just(NEVER), times),
    life=st.one_of(st.just(NEVER), st.just(NEVER), st.integers(1, 8), st.just(NEVER - 1)),
)
words_of_a_post = st.lists(st.sampled_from(TERMS), max_size=8)
post_terms = st.one_of(
    words_of_a_post.map(tuple),
    words_of_a_post.map(lambda terms: tuple(terms * 12)),
    st.tuples(words_of_a_post, st.lists(st.sampled_from(TAGS), min_size=1, max_size=2)).map(
        lambda parts: (*parts[0], 0, *parts[1])
    ),
)
posts = st.builds(Post, lon=lons, lat=lats, ts=times, terms=post_terms)


def crowd(seed: int, count: int, posts_count: int) -> tuple[list[Subscription], list[Post]]:
    """Many of both, clustered, so that cells and lists are crowded; quicker to make than Hypothesis would."""
    random = np.random.default_rng(seed)
    centres = np.stack([random.uniform(-180, 180, 6), random.uniform(-90, 90, 6)], axis=1)
    centres[0], centres[1] = (180.0, 0.0), (0.0, 90.0)

    def place() -> tuple[float, float]:
        lon, lat = centres[random.integers(6)] + random.normal(0, random.choice((0.001, 0.5, 20.0)), 2)
        return float((lon + 180.0) % 360.0 - 180.0), float(np.clip(lat, -90.0, 90.0))

    def area() -> Region | None:
        lon, lat = place()
        size = float(10 ** random.uniform(-3, 2.3))
        match random.integers(4):
            case 0:
                return Circle(lon, lat, size * 111)
            case 1:
                corners = np.clip([(lon, lat), (lon + size, lat), (lon + size / 2, lat + size)], (-180, -90), (180, 90))
                return Polygon((tuple(map(tuple, corners.tolist())),))
            case 2 if random.random() < 0.1:
                return None
        east = lon + size
        return Rect(lon, lat, east if east <= 180 else max(east - 360, -180.0), min(90.0, lat + size))

    def text() -> Expression | None:
        picked = [word(TERMS[min(len(TERMS) - 1, int(random.exponential(2.5)))]) for _ in range(random.integers(1, 6))]
        match random.integers(6):
            case 0:
                return None
            case 1:
                return Or(tuple(picked))
            case 2:
                return And((picked[0], *(Not(each) for each in picked[1:])))
            case 3:
                return Not(And(tuple(picked)))
            case 4:
                return phrase(*(each.terms[0] for each in picked[:2]))
        return And(tuple(picked[:3]))

    made = [Subscription(int(number), area(), text()) for number in range(count)]
    written = []
    for _ in range(posts_count):
        lon, lat = place()
        terms = tuple(TERMS[min(len(TERMS) - 1, int(x))] for x in random.exponential(2.5, random.integers(0, 12)))
        written.append(Post(lon, lat, int(random.integers(12)), terms))
    return made, written
