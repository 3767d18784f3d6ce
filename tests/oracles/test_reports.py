"""The oracle of reports, held to cases that were worked out by hand."""

import time
from collections import Counter
from random import Random

import pytest

from nearcast.kinds.terms.query import TermsQuery
from nearcast.language import parse
from tests.engine.oracle import TOKENIZER, Batch
from tests.oracles.report_cases import CASES, FIRST, HOUR, MINUTE, ZERO, at, post, spelled, subscribe, tick, top
from tests.oracles.reports import SILENCE, ReportOracle
from tests.oracles.searches import term_counts

SECONDS = "SELECT TopK(text) FROM stream WHERE text CONTAINS 'word' AND time AFTER '10 seconds ago' SYNC 1 second"


def told(oracle: ReportOracle) -> list[str]:
    return spelled((each.window_end, each.query_id, each.rows, each.skipped) for each in oracle.reports)


@pytest.mark.parametrize("name", CASES)
def test_what_reports_mean(name: str) -> None:
    case = CASES[name]
    retention = None if case.retention is None else case.retention * MINUTE
    oracle = ReportOracle(FIRST["ts"], lateness=case.lateness * MINUTE, retention=retention).run(case.batches)
    assert told(oracle) == case.reports
    assert oracle.late == Counter({(q, p, ts): 1 for q, p, ts in oracle.late if (q, p) in case.late})
    assert sorted({(q, p) for q, p, _ in oracle.late}, key=str) == sorted(case.late, key=str)
    assert oracle.rejects == case.rejects


@pytest.mark.parametrize(
    ("empty", "sent", "skipped"), [(1439, 1439, []), (1440, 1440, []), (1441, 1440, [1]), (9999, 1440, [8559])]
)
@pytest.mark.parametrize("cuts", [1, 7])
def test_after_1440_empty_reports_one_tells_how_many_more_there_were(
    empty: int, sent: int, skipped: list[int], cuts: int
) -> None:
    """From a start at minute 10 nothing, then one post at a beat, which ten windows have."""
    word = at(10) + empty * 1_000_000
    batches = [Batch([subscribe("q", SECONDS, 10)])]
    batches += [Batch([], [{**tick(n, 0), "ts": at(10) + empty * 1_000_000 * n // cuts}]) for n in range(1, cuts)]
    batches += [Batch([], [{**post(1, 0), "ts": word}, {**tick(0, 0), "ts": word + 12_000_000}])]
    oracle = ReportOracle(FIRST["ts"]).run(batches)
    reports = [(each.window_end - word) // 1_000_000 for each in oracle.reports]
    assert reports == [*range(-empty, sent - empty), *(-1 for _ in skipped), *range(12)]
    assert [each.skipped for each in oracle.reports if each.skipped is not None] == skipped
    assert [bool(each.rows) for each in oracle.reports[-12:]] == [True] * 10 + [False] * 2


def test_a_subscription_that_ends_in_silence_tells_how_much_it_was() -> None:
    """72 hours of full minutes, and nothing in them."""
    sql = top(10, 1, where="text CONTAINS 'word'", life="72 HOURS")
    batches = [Batch([subscribe("q", sql)], [tick(n, 60 * n + 2) for n in range(60)]), Batch([], [tick(99, 99 * 60)])]
    oracle = ReportOracle(FIRST["ts"]).run(batches)
    assert [each.skipped for each in oracle.reports] == [None] * SILENCE + [72 * 60 - SILENCE]
    assert oracle.reports[-1].window_end == at(72 * 60)  # the start is at minute 1, and so is the end
    assert [each.batch for each in oracle.reports] == [0] * SILENCE + [1]


def test_years_of_silence_take_no_time() -> None:
    began = time.process_time()
    year = 365 * 24 * HOUR
    batches = [Batch([subscribe("q", SECONDS)], [post(1, 1)])]
    batches += [Batch([], [{**post(n, 0), "ts": ZERO + n * year}]) for n in range(2, 12)]
    oracle = ReportOracle(FIRST["ts"]).run(batches)
    assert len(oracle.reports) == 10 + SILENCE + 9 * (1 + 10 + SILENCE)  # the last post's beat is to come
    assert time.process_time() - began < 5


@pytest.mark.parametrize("seed", range(5))
def test_in_order_every_beat_has_the_rows_of_a_search_of_all_posts(seed: int) -> None:
    """No beat is left out and none is too many, found by looking at every one of them."""
    random = Random(100 + seed)
    posts = [post(n, random.uniform(1, 90), random.choice(("a", "b c", "", "a c d")), price=n % 3) for n in range(40)]
    clock = max(each["ts"] for each in posts)
    for n in range(12):
        where = random.choice(("", "text CONTAINS 'NOT a'", "price < 2"))
        window, beat, life = random.choice((3, 10.5, 45)), random.choice((1, 7, 20)), random.randrange(1, 100)
        begin = random.randrange(90)
        sql = top(window, beat, random.choice((1, 2, 9)), where, f"{life} MINUTES")
        oracle = ReportOracle(FIRST["ts"]).run([Batch([subscribe(n, sql, begin)], posts)])
        query = parse(sql, TOKENIZER).query
        assert isinstance(query, TermsQuery)
        stop = min(at(begin + life), clock)
        beats = [moment for moment in range(at(begin), stop, MINUTE) if moment % (beat * MINUTE) == 0]
        assert [each.window_end for each in oracle.reports] == beats
        for each in oracle.reports:
            rows = [(row["term"], row["count"]) for row in each.rows]
            assert rows == term_counts(posts, query, each.window_end, TOKENIZER)


@pytest.mark.parametrize("seed", range(5))
def test_where_disorder_stays_within_the_lateness_the_cut_does_not_show(seed: int) -> None:
    random = Random(seed)
    lateness = 5 * MINUTE
    times = sorted(at(random.uniform(1, 90)) for _ in range(60))
    posts = [{**post(n, 0, random.choice("abc")), "ts": ts} for n, ts in enumerate(times)]
    ops = [subscribe(n, top(random.choice((3, 10, 45)), random.choice((1, 7, 20))), 10 * n) for n in range(6)]
    whole = ReportOracle(FIRST["ts"], lateness=lateness).run([Batch(ops, posts)])
    for size in (1, 4, 25):
        mixed = sorted(posts, key=lambda each: each["ts"] + random.randrange(lateness))
        parts = [mixed[i : i + size] for i in range(0, 60, size)]
        asked = [ops, *([] for _ in parts)] if size == 4 else [*([] for _ in parts[1:]), ops]
        batches = [Batch(asked[n], part) for n, part in enumerate(parts)]
        cut = ReportOracle(FIRST["ts"], lateness=lateness).run(batches)
        assert sorted(each.told for each in cut.reports) == sorted(each.told for each in whole.reports)
        assert not cut.late
    assert len(whole.reports) > 50
