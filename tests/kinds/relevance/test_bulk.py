"""Subscriptions to the most relevant as columns: what they mean, what is refused, and the rows that come of them."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.arrays import frozen
from nearcast.common.op_schema import NEAREST, RANGE, RELEVANT, TERMS
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine.op_encoding import encode_ops
from nearcast.engine.op_resolution import resolve
from nearcast.engine.samples import op_sample
from nearcast.kinds.relevance.query import HALF_WORLD_KM
from nearcast.language.bulk_columns import TOO_LONG
from nearcast.sources.formats import whole_file
from nearcast.sources.op_records import NUMBER_COLUMNS, TEXT_COLUMNS, read_ops
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_set import EndLog, SubscriptionSet

TOKENIZER = Tokenizer()
COLUMNS = {name: pa.float64() for name in NUMBER_COLUMNS} | {name: pa.string() for name in TEXT_COLUMNS}
GOOD: dict[str, Any] = {"lon": 1.0, "lat": 2.0, "words": "ramen sushi", "alpha": 0.5, "k": 20, "window_posts": 1000}
HOUR = 3600 * 1_000_000


def raw_ops(records: list[dict[str, Any]]) -> pa.Table:
    count = len(records)
    fixed = {"op": ["subscribe"] * count, "id": list(range(count)), "id_text": pa.nulls(count, pa.string())}
    fixed |= {"ts": pa.nulls(count, pa.int64()), "sql": pa.array([r.get("sql") for r in records], pa.string())}
    used = [name for name in COLUMNS if any(name in record for record in records)]
    return pa.table(fixed | {name: pa.array([r.get(name) for r in records], COLUMNS[name]) for name in used})


def rows_of(records: list[dict[str, Any]]) -> Rows:
    ops, rejects = encode_ops(raw_ops(records), TOKENIZER)
    assert rejects["reason"].to_pylist() == []
    return resolve(ops, SubscriptionSet({}, EndLog.concat([])), None, 0).rows


def written(record: dict[str, Any]) -> str:
    """The SQL that means what the columns mean."""
    conditions = [f"text CONTAINS '{record['text']}'"] if "text" in record else []
    if "min_lon" in record:
        corners = ", ".join(repr(record[name]) for name in ("min_lon", "min_lat", "max_lon", "max_lat"))
        conditions.append(f"loc INSIDE RECT({corners})")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    reach = f", {record['reach_km']!r} km" if "reach_km" in record else ""
    window = f"{record['window_posts']} POSTS" if "window_posts" in record else f"{record['window_seconds']!r} seconds"
    place = f"POINT({record['lon']!r}, {record['lat']!r})"
    call = f"RELEVANCE({place}, '{record['words']}', {record['alpha']!r}{reach})"
    life = f" FOR {record['for_seconds']} seconds" if "for_seconds" in record else ""
    return f"SELECT * FROM stream{where} ORDER BY {call} DESC LIMIT {record['k']} WINDOW {window}{life}"


profiles = st.fixed_dictionaries(
    {
        "lon": st.floats(-180, 180),
        "lat": st.floats(-90, 90),
        "alpha": st.sampled_from([0.0, 1.0]) | st.floats(0, 1),
        "k": st.integers(1, 1000),
        "words": st.sampled_from(["ramen", "b a b", "Straße café", "#flood now", "東京", "wi-fi wi", "x" * 300]),
    },
    optional={
        "reach_km": st.floats(0.001, 1e5),
        "text": st.sampled_from(["ramen", "ramen AND NOT sushi"]),
        "for_seconds": st.integers(1, 10**6),
    },
)
windows = st.one_of(
    st.integers(1, 10**9).map(lambda n: {"window_posts": n}), st.floats(0.1, 1e7).map(lambda s: {"window_seconds": s})
)
boxes = st.just({}) | st.just({"min_lon": 170.0, "min_lat": -1.0, "max_lon": -170.0, "max_lat": 2.0})
records = st.builds(lambda *parts: {k: v for part in parts for k, v in part.items()}, profiles, windows, boxes)


@given(st.lists(records, min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_columns_are_the_same_subscription_as_their_sql(some: list[dict[str, Any]]) -> None:
    bulk, refused = encode_ops(raw_ops(some), TOKENIZER)
    one_by_one, _ = encode_ops(raw_ops([{"sql": written(record)} for record in some]), TOKENIZER)
    assert not len(refused) and len(bulk) == len(one_by_one) == len(some)
    for name in ("asks", "words", "scoring", "k", "at_lon", "at_lat", "code", "min_lon", "life", "digest"):
        assert bulk[name].to_pylist() == one_by_one[name].to_pylist(), name


def test_a_profile_is_alpha_reach_and_window() -> None:
    ops, _ = encode_ops(
        raw_ops([GOOD, {**GOOD, "reach_km": 5, "window_posts": None, "window_seconds": 0.25, "words": "b a! B"}]),
        TOKENIZER,
    )
    assert ops["scoring"].to_pylist() == [[0.5, HALF_WORLD_KM, 1000.0, 0.0], [0.5, 5.0, 0.0, 250_000.0]]
    assert ops["words"].to_pylist()[1] == sorted(TOKENIZER.term(word) for word in "ab")
    assert ops["window"].to_pylist() == ops["sync"].to_pylist() == [0, 0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"alpha": 1.5}, "alpha is not a number from 0"),
        ({"alpha": -0.1}, "alpha is not a number from 0"),
        ({"alpha": None}, "takes an alpha too"),
        ({"alpha": None, "window_posts": None, "words": None, "reach_km": 3.0}, "takes an alpha too"),
        ({"words": None}, "give at least one in words"),
        ({"words": " !!! "}, "give at least one in words"),
        ({"words": "ramen OR sushi"}, "RELEVANCE takes plain words"),
        ({"words": "ramen AND NOT sushi"}, "RELEVANCE takes plain words"),
        ({"words": "NOT"}, "RELEVANCE takes plain words"),
        ({"k": None}, "k is not a whole number"),
        ({"k": 0}, "k is not a whole number"),
        ({"k": 1.5}, "k is not a whole number"),
        ({"lon": 181}, "most relevant to a place: give lon"),
        ({"lat": None}, "most relevant to a place: give lon"),
        ({"reach_km": 0}, "reach_km is not"),
        ({"reach_km": float("inf")}, "reach_km is not"),
        ({"window_posts": None}, "give window_posts or window_seconds"),
        ({"window_seconds": 60}, "give window_posts or window_seconds"),
        ({"window_posts": 0}, "window_posts is not a whole number"),
        ({"window_posts": 2.5}, "window_posts is not a whole number"),
        ({"window_posts": None, "window_seconds": 0}, "window_seconds is not a length of time"),
        ({"window_posts": None, "window_seconds": -5}, "window_seconds is not a length of time"),
        ({"window_posts": None, "window_seconds": 1e-9}, "window_seconds is not a length of time"),
        ({"window_posts": None, "window_seconds": 1e300}, "window_seconds is not a length of time"),
        ({"window_posts": None, "window_seconds": 7201}, TOO_LONG),
        ({"window_posts": None, "window_seconds": 60, "sync_seconds": 60}, "sync_seconds makes no sense"),
        ({"min_lon": 1.0}, "bad rectangle"),
    ],
)
def test_what_makes_no_sense_is_refused_alone(change: dict[str, Any], reason: str) -> None:
    ops, rejects = encode_ops(raw_ops([GOOD, {**GOOD, **change}, GOOD]), TOKENIZER, longest=2 * HOUR)
    assert ops["id"].to_pylist() == [0, 2]
    assert ops["words"].to_pylist()[0] == ops["words"].to_pylist()[1] != []
    (told,) = rejects["reason"].to_pylist()
    assert reason in told


@pytest.mark.parametrize(("seconds", "reasons"), [(7200.0, []), (7200.1, [TOO_LONG])])
def test_a_window_may_be_as_long_as_posts_are_kept(seconds: float, reasons: list[str]) -> None:
    timed = {name: value for name, value in GOOD.items() if name != "window_posts"} | {"window_seconds": seconds}
    for record in (timed, {"sql": written(timed)}):
        assert encode_ops(raw_ops([record]), TOKENIZER, longest=2 * HOUR)[1]["reason"].to_pylist() == reasons


MIXED: list[dict[str, Any]] = [
    GOOD,
    {"text": "coffee"},
    {"lon": 3.0, "lat": 4.0, "k": 7},
    {"window_seconds": 60, "sync_seconds": 10, "k": 3},
    {**GOOD, "lon": -5.0, "words": "tea", "alpha": 1.0, "k": 1},
    {"sql": written({**GOOD, "words": "one two three"})},
    {"sql": "SELECT * FROM stream WHERE text CONTAINS 'x'"},
]


def test_the_kinds_of_one_batch_do_not_mix() -> None:
    ops, rejects = encode_ops(raw_ops(MIXED), TOKENIZER)
    assert not len(rejects)
    assert ops["asks"].to_pylist() == [RELEVANT, RANGE, NEAREST, TERMS, RELEVANT, RELEVANT, RANGE]
    assert [len(words) for words in ops["words"].to_pylist()] == [2, 0, 0, 0, 1, 3, 0]
    assert [len(profile) for profile in ops["scoring"].to_pylist()] == [4, 0, 0, 0, 4, 4, 0]
    assert len(set(ops["digest"].to_pylist())) == len(MIXED)


@pytest.mark.parametrize(
    "change",
    [
        {"lon": 1.5}, {"lat": 2.5}, {"words": "ramen"}, {"alpha": 0.25}, {"k": 21}, {"window_posts": 1001},
        {"reach_km": 5}, {"window_posts": None, "window_seconds": 1000}, {"text": "ramen"}, {"for_seconds": 5},
        {"window_posts": None, "window_seconds": 0.001},
    ],
)  # fmt: skip
def test_another_meaning_is_another_digest(change: dict[str, Any]) -> None:
    ops, _ = encode_ops(raw_ops([GOOD, {**GOOD, **change}, {**GOOD, "words": "sushi RAMEN sushi"}]), TOKENIZER)
    first, other, same = ops["digest"].to_pylist()
    assert first == same != other


def test_other_conditions_or_columns_are_another_digest() -> None:
    select, where = "SELECT {} FROM stream {} ", ("", "WHERE price < 5", "WHERE price < 50")
    asked = "ORDER BY RELEVANCE(POINT(1, 2), 'a b', 0.5) DESC LIMIT 5 WINDOW 100 POSTS"
    texts = [select.format(columns, each) + asked for columns in ("*", "id") for each in where]
    ops, _ = encode_ops(raw_ops([{"sql": text} for text in texts]), TOKENIZER)
    assert len(set(ops["digest"].to_pylist())) == len(texts)


def test_either_zero_is_one_place() -> None:
    ops, _ = encode_ops(raw_ops([{**GOOD, "lon": 0.0}, {**GOOD, "lon": -0.0}]), TOKENIZER)
    assert len(set(ops["digest"].to_pylist())) == 1


def test_rows_have_the_words_and_profiles_of_those_that_ask() -> None:
    rows = rows_of(MIXED)
    assert rows.having("scoring").tolist() == [True, False, False, False, True, True, False]
    assert rows.having("points").tolist() == [False, False, True, False, False, False, False]
    assert rows.having("ticks").tolist() == [False, False, False, True, False, False, False]
    assert np.diff(rows.words_offsets.astype(np.int64)).tolist() == [2, 0, 0, 0, 1, 3, 0]
    assert rows.scoring[0].tolist() == [1.0, 2.0, 20.0, 0.5, HALF_WORLD_KM, 1000.0, 0.0]
    assert rows.scoring[4].tolist() == [-5.0, 2.0, 1.0, 1.0, HALF_WORLD_KM, 1000.0, 0.0]
    assert not rows.scoring[~rows.having("scoring")].any()


def listed(rows: Rows) -> list[tuple[list[int], list[float]]]:
    """The words and the profile of each row, however they are stored."""
    edges = rows.words_offsets.tolist() or [0] * (len(rows) + 1)
    profiles = rows.scoring.tolist() or [[0.0] * 7] * len(rows)
    words = rows.words.tolist()
    return [(words[edges[i] : edges[i + 1]], profiles[i]) for i in range(len(rows))]


@given(st.lists(st.lists(st.integers(0, len(MIXED) - 1), max_size=5), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_rows_taken_and_joined_keep_their_words(picks: list[list[int]]) -> None:
    rows = rows_of(MIXED)
    parts = [rows.take(np.array(pick, np.int64)) for pick in picks]
    whole = listed(rows)
    for part, pick in zip(parts, picks, strict=True):
        assert listed(part) == [whole[i] for i in pick]
        assert part.having("scoring").tolist() == [bool(whole[i][0]) for i in pick]
        assert bool(len(part.scoring)) == bool(len(part.words_offsets)) == part.having("scoring").any()
    joined = Rows.join(parts)
    assert listed(joined) == [whole[i] for pick in picks for i in pick]
    assert listed(Rows.from_arrays(joined.arrays())) == listed(joined)


def test_rows_of_other_kinds_carry_nothing_for_it() -> None:
    rows = rows_of([{"text": "coffee"}, {"lon": 3.0, "lat": 4.0, "k": 7}])
    assert (len(rows.scoring), len(rows.words), len(rows.words_offsets)) == (0, 0, 0)
    assert not rows.having("scoring").any()
    arrays = {
        name: array
        for name, array in rows.arrays().items()
        if name not in ("row_words", "row_words_offsets", "row_scoring")
    }
    assert not Rows.from_arrays(arrays).having("scoring").any()  # as states from before have them


def test_columns_come_from_a_file(tmp_path: Any) -> None:
    (tmp_path / "ops.jsonl").write_text(
        '{"id": 1, "lon": 1, "lat": 2, "words": "ramen", "alpha": 0, "k": 5, "window_posts": 100}\n'
        '{"id": 2, "alpha": "much", "words": "x"}\n'
        '{"op": "subscribe", "id": "b", "alpha": 1}\n'
    )
    raw, rejects = read_ops(whole_file(str(tmp_path / "ops.jsonl")))
    assert rejects["reason"].to_pylist() == ["bad alpha"]
    ops, refused = encode_ops(raw, TOKENIZER)
    assert (ops["asks"].to_pylist(), ops["scoring"].to_pylist()) == ([RELEVANT], [[0.0, HALF_WORLD_KM, 100.0, 0.0]])
    assert len(refused) == 1


def test_routers_are_not_built_from_them() -> None:
    nothing = np.empty(0, np.uint64)
    found = op_sample(raw_ops(MIXED), TOKENIZER, (frozen(nothing), frozen(nothing)))
    assert len(found.type) == sum("alpha" not in each and "RELEVANCE" not in each.get("sql", "") for each in MIXED)
    assert not len(op_sample(raw_ops([GOOD]), TOKENIZER, (frozen(nothing), frozen(nothing))).type)
