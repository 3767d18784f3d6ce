"""The oracle of standing aggregates, held to cases that were worked out by hand and to searches at each beat."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from nearcast.common.queries import TimeBound
from nearcast.kinds.aggregates.query import AggregateQuery
from nearcast.language import parse
from tests.engine.oracle import TOKENIZER, Batch
from tests.oracles.aggregate_report_cases import CASES, count, spelled
from tests.oracles.aggregate_reports import AggregateReports, reports
from tests.oracles.aggregates import aggregate
from tests.oracles.report_cases import FIRST, MINUTE, at, post, subscribe, tick


def told(oracle: AggregateReports) -> list[str]:
    return spelled((each.window_end, each.query_id, each.rows, each.skipped) for each in oracle.reports)


@pytest.mark.parametrize("name", CASES)
def test_what_standing_aggregates_mean(name: str) -> None:
    case = CASES[name]
    retention = None if case.retention is None else case.retention * MINUTE
    oracle = reports(case.batches, FIRST["ts"], case.lateness * MINUTE, retention)
    assert told(oracle) == case.reports
    assert set(oracle.late.values()) <= {1}
    assert sorted(((q, p) for q, p, _ in oracle.late), key=str) == sorted(case.late, key=str)
    assert oracle.rejects == case.rejects


@pytest.mark.parametrize(("empty", "sent", "skipped"), [(1440, 1440, []), (1441, 1440, [1]), (3000, 1440, [1560])])
@pytest.mark.parametrize("items", ["Count(id)", "Count(id), weekday"])
def test_after_1440_empty_reports_one_tells_how_many_more_there_were(
    items: str, empty: int, sent: int, skipped: list[int]
) -> None:
    """From a start at minute 10 nothing, then one post at a beat, which ten windows have."""
    rest = "GROUP BY weekday" if "weekday" in items else ""
    sql = count(items, 10 / 60, 1 / 60, "text CONTAINS 'word'", rest)
    word = at(10) + empty * 1_000_000
    late = [{**post(1, 0), "ts": word}, {**tick(0, 0), "ts": word + 12_000_000}]
    oracle = reports([Batch([subscribe("q", sql, 10)]), Batch([], late)], FIRST["ts"])
    ends = [(each.window_end - word) // 1_000_000 for each in oracle.reports]
    assert ends == [*range(-empty, sent - empty), *(-1 for _ in skipped), *range(12)]
    assert [each.skipped for each in oracle.reports if each.skipped is not None] == skipped
    assert [[row["count(id)"] for row in each.rows] for each in oracle.reports[-12:-2]] == [[1]] * 10
    nothing = [] if rest else [{"count(id)": 0}]
    assert oracle.reports[0].rows == oracle.reports[-1].rows == nothing


SHAPES = [
    ("Count(id), Sum(price), Max(ts)", ""), ("Count(id), price, hour", "GROUP BY price, hour"),
    ("TopK(text, 3), kind, Avg(price)", "GROUP BY kind ORDER BY Avg(price) DESC"),
    ("Count(id), length", "GROUP BY length HAVING Count(id) > 2"),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_in_order_every_beat_has_the_rows_of_a_search_of_all_posts(seed: int) -> None:
    """No beat is left out and none is too many, found by looking at every one of them."""
    random = Random(seed)
    posts = [
        post(n, random.uniform(1, 90), random.choice(("a", "b c", "", "a c d")), price=n % 3, kind=random.choice("xy"))
        for n in range(40)
    ]
    clock = max(each["ts"] for each in posts)
    for n in range(12):
        items, rest = random.choice(SHAPES)
        window, beat, life = random.choice((3, 10.5, 45, None)), random.choice((1, 7, 20)), random.randrange(1, 100)
        begin = random.randrange(90)
        where = random.choice(("", "text CONTAINS 'NOT a'", "price < 2"))
        sql = count(items, window, beat, where, rest, f"{life} MINUTES")
        oracle = reports([Batch([subscribe(n, sql, begin)], posts)], FIRST["ts"])
        query = parse(sql, TOKENIZER).query
        assert isinstance(query, AggregateQuery)
        if window is None:
            query = replace(query, since=TimeBound(at=at(begin)), until=TimeBound(ago=0))
        beats = [
            moment for moment in range(at(begin), min(at(begin + life), clock), MINUTE) if not moment % (beat * MINUTE)
        ]
        assert [each.window_end for each in oracle.reports] == beats
        for each in oracle.reports:
            assert each.rows == aggregate(posts, query, each.window_end, TOKENIZER)


@pytest.mark.parametrize("seed", range(3))
def test_where_disorder_stays_within_the_lateness_the_cut_does_not_show(seed: int) -> None:
    random = Random(seed)
    lateness = 5 * MINUTE
    times = sorted(at(random.uniform(1, 90)) for _ in range(60))
    posts = [{**post(n, 0, kind=random.choice("abc")), "ts": ts} for n, ts in enumerate(times)]
    items = "Count(id), kind, Max(ts)"
    ops = [
        subscribe(
            n, count(items, random.choice((3, 10, 45, None)), random.choice((1, 7, 20)), "", "GROUP BY kind"), 10 * n
        )
        for n in range(6)
    ]
    whole = reports([Batch(ops, posts)], FIRST["ts"], lateness)
    for size in (1, 4, 25):
        mixed = sorted(posts, key=lambda each: each["ts"] + random.randrange(lateness))
        parts = [mixed[i : i + size] for i in range(0, 60, size)]
        asked = [ops, *([] for _ in parts)] if size == 4 else [*([] for _ in parts[1:]), ops]
        cut = reports([Batch(asked[n], part) for n, part in enumerate(parts)], FIRST["ts"], lateness)
        assert Counter(told(cut)) == Counter(told(whole))
        assert not cut.late
    assert len(whole.reports) > 50
