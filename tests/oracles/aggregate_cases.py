"""Random posts and random aggregates, with many ties and values of every kind; and the SQL text of an aggregate."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from math import nan
from random import Random
from typing import Any

from hypothesis import strategies as st

from nearcast.common.expressions import And, Expression, Not, Or, Phrase
from nearcast.common.geo.shapes import Circle, Polygon, Rect, Region
from nearcast.common.queries import Predicate, Scalar, TimeBound
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.kinds.aggregates.query import AggregateQuery, Having, Measure, Ordering, Output
from nearcast.language import parse_contains
from tests.oracles.aggregates import EPOCH, MICROSECOND

Post = dict[str, Any]

TOKENIZER = Tokenizer()
NOON = 1_777_636_800_000_000  # 2026-05-01T12:00:00Z, a Friday
MINUTE = 60_000_000

# -- posts -------------------------------------------------------------------------------------------------------------

WORDS = ("flood", "rain", "subway", "café", "🌊", "#flood", "東京", "the", "Straße", "in")
PLACES = (
    (0.0, 0.0), (180.0, 10.0), (-180.0, 10.0), (179.99, -10.0), (0.0, 90.0), (77.0, 90.0), (-120.0, -90.0),
    (-74.0, 40.7), (-74.0, 40.75), (2.35, 48.86), (1e-9, -1e-9), (-0.0439453125, 0.0),
)  # fmt: skip
MILLI = 1000
_OFFSETS = (0, MILLI, -MILLI, MINUTE - MILLI, MINUTE, 7 * MINUTE, 59 * MINUTE, 60 * MINUTE, 720 * MINUTE, -720 * MINUTE)
TIMES = (*(NOON + offset for offset in _OFFSETS), -MILLI, 0, -30 * MINUTE)  # before 1970 too


def moment(micros: int) -> datetime:
    return EPOCH + micros * MICROSECOND


NUMBERS: tuple[Any, ...] = (5, 5.0, 0, -0.0, 0.0, 1, -3, 2.5, 7.25, -2.5, 1_000_000)
STRINGS: tuple[Any, ...] = ("a", "b", "A", "", "5", "true", "é", "🌊", "it's", "2026-05-01T12:00:00Z")
MOMENTS: tuple[Any, ...] = tuple(moment(ts) for ts in (NOON, NOON + 1, NOON - 90 * MINUTE, -1))
NOTHING: tuple[Any, ...] = (None, nan)
NASTY: tuple[Any, ...] = (2**53, 2**53 + 1, 2.0**53, 0.1, 0.2, 1e16, -1e16, 2**62, -(2**63))
ATTRIBUTES: dict[str, tuple[Any, ...]] = {
    "price": (*NUMBERS, *NOTHING),
    "kind": (*STRINGS[:4], None),
    "streetName": STRINGS,
    "open": (True, False, None),
    "seen": (*MOMENTS, None),
    "mixed": (*NUMBERS, *STRINGS, True, False, None, [1, 2], "[1,2]", {"b": [True]}),
    "any": (*NUMBERS[:4], 2**60, *STRINGS[:3], True, False, *MOMENTS, None),
    "weekday": (*(None,) * 9, 5, "Friday"),  # few posts have their own
}  # fmt: skip


def random_posts(random: Random, count: int, nasty: bool = False) -> list[Post]:
    """Posts with different ids; `nasty` adds numbers that doubles cannot add up."""
    prices = (*ATTRIBUTES["price"], *NASTY) if nasty else ATTRIBUTES["price"]
    out = []
    for number in range(count):
        lon, lat = random.choice(PLACES)
        text = " ".join(random.choices(WORDS, k=random.randrange(5))) if random.random() < 0.9 else None
        post = {
            "id": number if number % 4 else f"p{number}", "ts": random.choice(TIMES), "lon": lon, "lat": lat,
            "text": text,
        }  # fmt: skip
        for name, values in {**ATTRIBUTES, "price": prices}.items():
            if random.random() < 0.7:
                post[name] = random.choice(values)
        out.append(post)
    return out


def posts(at_most: int = 60, nasty: bool = False) -> st.SearchStrategy[list[Post]]:
    counts = st.sampled_from([count for count in (0, 1, 2, 3, 5, 10, 25, 60, 200) if count <= at_most])
    return st.builds(lambda seed, n: random_posts(Random(seed), n, nasty), st.integers(0, 10**6), counts)


# -- conditions --------------------------------------------------------------------------------------------------------

lons = st.sampled_from([lon for lon, _ in PLACES] + [-75.0, -73.0, 3.0, 170.0, -170.0])
lats = st.sampled_from([lat for _, lat in PLACES] + [40.0, 41.0, 60.0, -60.0])
rects = st.builds(lambda a, b, c, d: Rect(a, min(b, d), c, max(b, d)), lons, lats, lons, lats)
circles = st.builds(Circle, lons, lats, st.sampled_from([0.0, 0.5, 30.0, 700.0, 9000.0, 25_000.0]))
polygons = st.lists(st.tuples(lons, lats), min_size=3, max_size=5, unique=True).map(lambda r: Polygon((tuple(r),)))
_leaves = st.sampled_from([f'"{word}"' if word == "東京" else word for word in (*WORDS, "unheard")])
expressions = st.recursive(
    _leaves | st.just('"flood rain"'),
    lambda part: (
        st.builds("({} AND {})".format, part, part)
        | st.builds("({} OR {})".format, part, part)
        | st.builds("({} AND NOT {})".format, part, part)
    ),
    max_leaves=3,
).map(lambda text: parse_contains(text, TOKENIZER))

moments = st.sampled_from(TIMES).map(lambda ts: TimeBound(at=ts))
agos = st.sampled_from([0, 1_000_000, MINUTE, 53 * MINUTE, 720 * MINUTE, 10**9 * MINUTE]).map(
    lambda ago: TimeBound(ago=ago)
)
LITERALS: tuple[Scalar, ...] = (5, 5.0, 0, 2.5, -1, "a", "b", "5", "", "it's", True, False, "2026-05-01T12:00:00Z")
DERIVED_LITERALS: dict[str, tuple[Scalar, ...]] = {
    "weekday": (5, 4, 6, "Friday"), "length": (0, 5, 9, 12), "cell": ("s0000", "dr5re", "xbpbp", "a"),
    "hour": ("2026-05-01T12:00:00Z", "1969-12-31T23:00:00+00:00"), "date": ("2026-05-01", 5),
    "minute": ("2026-05-01T12:00:00", "1969-12-31T23:30:00Z"),
}  # fmt: skip
MISFITS = {("weekday", "Friday"), ("date", 5)}
NOBODYS = "nobody has it"
NAMES = (*ATTRIBUTES, *(name for name in DERIVED_LITERALS if name not in ATTRIBUTES), NOBODYS)


@st.composite
def predicates(draw: st.DrawFn, names: Sequence[str] = NAMES) -> Predicate:
    name = draw(st.sampled_from(names))
    literals = DERIVED_LITERALS.get(name, LITERALS)
    if NOBODYS not in names:  # it may become a text, which no misfit is allowed in
        literals = tuple(each for each in literals if (name, each) not in MISFITS)
    values = st.sampled_from(literals)
    op = draw(
        st.sampled_from(["=", "=", "<>", "<", "<=", ">", ">=", "between", "in", "not_in", "is_null", "is_not_null"])
    )
    if op in ("in", "not_in"):
        return Predicate(name, op, tuple(draw(st.lists(values, min_size=1, max_size=3))))
    count = {"between": 2, "is_null": 0, "is_not_null": 0}.get(op, 1)
    return Predicate(name, op, tuple(draw(values) for _ in range(count)))


_spans = st.builds(
    lambda a, b: {"since": min(a, b, key=lambda x: x.at or 0), "until": max(a, b, key=lambda x: x.at or 0)},
    moments, moments,
)  # fmt: skip


@st.composite
def conditions(draw: st.DrawFn, names: Sequence[str] = NAMES) -> dict[str, Any]:
    """None to four of the kinds of conditions."""
    some = st.lists(predicates(names), min_size=1, max_size=2).map(tuple)
    one = (
        st.fixed_dictionaries({"region": rects | circles | polygons})
        | st.fixed_dictionaries({"text": expressions})
        | st.fixed_dictionaries({"predicates": some})
        | st.fixed_dictionaries({"after": moments | agos})
        | _spans
    )
    out: dict[str, Any] = {}
    for _ in range(draw(st.integers(0, 4))):
        out |= draw(one)
    return out


# -- aggregates --------------------------------------------------------------------------------------------------------

numeric = st.sampled_from(["price", "price", "mixed", "any", "length", "weekday"])
TIMELY = ("seen", "ts", "hour", "date")
timely = st.sampled_from(TIMELY)
OPS = ("=", "<>", "<", "<=", ">", ">=")


def measures(names: Sequence[str]) -> st.SearchStrategy[Measure]:
    """All but TopK, which nothing is compared with or ordered by."""
    return (
        st.just(Measure("count"))
        | st.builds(Measure, st.just("count"), st.sampled_from(names))
        | st.builds(Measure, st.sampled_from(["sum", "avg", "min", "max"]), numeric)
        | st.builds(Measure, st.sampled_from(["min", "max"]), timely)
    )


topk = st.builds(Measure, st.just("topk"), st.just("text"), st.sampled_from([1, 3, 10, 100]))


@st.composite
def aggregates(draw: st.DrawFn, known: bool = False) -> AggregateQuery:
    """Anything that a SELECT can say: each attribute of its GROUP BY is selected, and an aggregate if there is none.
    `known`: no attribute that no post has.
    """
    names = [name for name in NAMES if not (known and name == NOBODYS)]
    by = tuple(draw(st.lists(st.sampled_from(names), max_size=3, unique=True)))
    chosen = draw(st.lists(measures(names) | topk, min_size=0 if by else 1, max_size=3, unique=True))
    if not by and [each.function for each in chosen] == ["topk"]:
        chosen.append(Measure("count"))  # a TopK alone is another kind of query
    values: list[Measure | str] = draw(st.permutations([*chosen, *by]))
    outputs = []
    for number, value in enumerate(values):
        alias = "`" in _value(value) or draw(st.booleans())
        outputs.append(Output(f"Column {number}" if alias else default_name(value), value))
    plain = st.sampled_from([each for each in chosen if each.function != "topk"] or [Measure("count")])
    plain |= measures(names)
    told: st.SearchStrategy[Measure | str] = plain | st.sampled_from(by) if by else plain
    having = draw(st.lists(told.flatmap(_having), max_size=2)) if draw(st.booleans()) else []
    order = draw(st.lists(st.builds(Ordering, told, st.booleans()), max_size=3, unique_by=lambda o: o.value))
    return AggregateQuery(
        **draw(conditions(names)),
        outputs=tuple(outputs),
        group_by=by,
        having=tuple(having),
        order=tuple(order),
        limit=draw(st.sampled_from([None, None, None, 0, 1, 3])),
    )


def _having(value: Measure | str) -> st.SearchStrategy[Having]:
    literals: tuple[Scalar, ...] = (0, 1, 2, 5, 2.5, -3)
    if isinstance(value, str):
        literals = DERIVED_LITERALS.get(value, LITERALS)
    elif value.function in ("min", "max") and value.of in TIMELY:
        literals = ("2026-05-01T12:00:00Z", "1970-01-01") if value.of == "ts" else ("2026-05-01T12:00:00Z", 5)
    return st.builds(Having, st.just(value), st.sampled_from(OPS), st.sampled_from(literals))


# -- as text -----------------------------------------------------------------------------------------------------------


def sql_of(query: AggregateQuery) -> str:
    """A text that means the query."""
    parts = ["SELECT APPROXIMATE" if query.approximate else "SELECT", ", ".join(map(_item, query.outputs))]
    parts += ["FROM stream"]
    if where := _where(query):
        parts += ["WHERE", " AND ".join(where)]
    if query.group_by:
        parts += ["GROUP BY", ", ".join(map(_name, query.group_by))]
    if query.having:
        parts += ["HAVING", " AND ".join(f"{_value(h.value)} {h.op} {_literal(h.literal)}" for h in query.having)]
    if query.order:
        parts += ["ORDER BY", ", ".join(_value(o.value) + (" DESC" if o.descending else "") for o in query.order)]
    if query.limit is not None:
        parts += [f"LIMIT {query.limit}"]
    if query.sync is not None:
        parts += [f"SYNC {_seconds(query.sync)}"]
    if query.life is not None:
        parts += [f"FOR {_seconds(query.life)}"]
    return " ".join(parts)


def default_name(value: Measure | str) -> str:
    """Of a column without AS: an attribute's own, or the aggregate as it is written here, in lower case, no blanks."""
    return value if isinstance(value, str) else _value(value).lower().replace(" ", "")


def _item(output: Output) -> str:
    return _value(output.value) + (f" AS {_name(output.name)}" if output.name != default_name(output.value) else "")


def _value(value: Measure | str) -> str:
    if isinstance(value, str):
        return _name(value)
    of = "id" if value.of is None else _name(value.of)
    function = {"topk": "TopK"}.get(value.function, value.function.capitalize())
    return f"{function}({of}, {value.k})" if value.function == "topk" and value.k != 10 else f"{function}({of})"


def _name(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"


def _where(query: AggregateQuery) -> list[str]:
    out = []
    if query.region is not None:
        out.append(f"loc INSIDE {_region(query.region)}")
    if query.text is not None:
        out.append(f"text CONTAINS {_literal(_words(query.text))}")
    if query.after is not None:
        out.append(f"time AFTER {_bound(query.after)}")
    if query.since is not None and query.until is not None:
        out.append(f"time BETWEEN {_bound(query.since)} AND {_bound(query.until)}")
    return out + [_predicate(predicate) for predicate in query.predicates]


def _region(region: Region) -> str:
    match region:
        case Rect(a, b, c, d):
            return f"RECT({a!r}, {b!r}, {c!r}, {d!r})"
        case Circle(lon, lat, km):
            return f"CIRCLE({lon!r}, {lat!r}, {km!r} km)"
        case Polygon(rings):
            closed = [", ".join(f"{x!r} {y!r}" for x, y in (*ring, ring[0])) for ring in rings]
            return f"POLYGON('POLYGON({', '.join(f'({ring})' for ring in closed)})')"


def _words(expression: Expression) -> str:
    """In brackets wherever there are parts."""

    def joined(word: str, parts: Sequence[Expression]) -> str:
        return f" {word} ".join(f"({_words(part)})" if isinstance(part, And | Or) else _words(part) for part in parts)

    match expression:
        case And(parts):
            return joined("AND", parts)
        case Or(parts):
            return joined("OR", parts)
        case Not(part):
            return f"NOT {joined('', [part])}"
        case Phrase(_, words):
            return words[0] if len(words) == 1 else f'"{" ".join(words)}"'


def _bound(bound: TimeBound) -> str:
    if bound.at is not None:
        return f"'{moment(bound.at).isoformat()}'"
    assert bound.ago is not None
    return f"'{_seconds(bound.ago)} ago'"


def _seconds(micros: int) -> str:
    return f"{timedelta(microseconds=micros) / timedelta(seconds=1)!r} seconds"


def _predicate(predicate: Predicate) -> str:
    name, values = _name(predicate.name), [_literal(value) for value in predicate.values]
    match predicate.op:
        case "is_null" | "is_not_null":
            return f"{name} {predicate.op.replace('_', ' ').upper()}"
        case "between":
            return f"{name} BETWEEN {values[0]} AND {values[1]}"
        case "in" | "not_in":
            return f"{name} {predicate.op.replace('_', ' ').upper()} ({', '.join(values)})"
    return f"{name} {predicate.op} {values[0]}"


def _literal(value: Scalar) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).upper() if isinstance(value, bool) else repr(value)
