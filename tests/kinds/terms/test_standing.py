"""Subscriptions to frequent terms (CTQ: SSTD §3.1, Definition 3): the reports that a stream means, in order."""

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearcast.engine.settings import Settings
from nearcast.reader.reader import Reader
from nearcast.reader.results import read_results
from nearcast.storage.directory import StateDirectory
from tests.engine.harness import Streams, check, run, start, step
from tests.engine.oracle import Batch
from tests.marks import slow
from tests.oracles.report_cases import CASES, FIRST, HOUR, MINUTE, ZERO, at, delete, post, subscribe, tick, top
from tests.oracles.reports import SILENCE, Late, Report, ReportOracle

SECOND = MINUTE // 60
SAMPLE = [FIRST]
WINDOWS = ("5 seconds", "40 secs", "90 seconds", "7 minutes", "20 minutes", "1 hour", "5 hours")
BEATS = ("15 seconds", "1 minute", "90 seconds", "7 minutes", "7 minutes", "20 minutes", "1 hour")


# -- what the outbox holds -----------------------------------------------------------------------------------------


def reports_of(state: StateDirectory) -> list[tuple[Any, ...]]:
    """(batch, window_end, query_id, rows, skipped) in the order of the outbox."""
    found = []
    for row in read_results(state):
        if row["kind"] == "report":
            assert set(row) - {"skipped"} == {"query_id", "seq", "batch", "kind", "window_end", "rows"}
            found.append((row["batch"], row["window_end"], row["query_id"], row["rows"], row.get("skipped")))
    return found


def late_of(state: StateDirectory) -> Counter[Late]:
    return Counter((row["query_id"], row["post_id"], row["ts"]) for row in read_results(state) if row["kind"] == "late")


def check_reports(state: StateDirectory, oracle: ReportOracle) -> None:
    """Every report in its batch and its place, every late post once."""
    right = [(each.batch, each.window_end, each.query_id, each.rows, each.skipped) for each in oracle.reports]
    found = reports_of(state)
    for n, (is_there, should_be) in enumerate(zip(found, right, strict=False)):
        assert is_there == should_be, f"report {n}"
    assert len(found) == len(right), (found[len(right) :] or right[len(found) :])[:3]
    assert late_of(state) == oracle.late
    assert state.newest().counts.get("rejects", 0) == oracle.rejects
    assert state.newest().clock == oracle.clock


def told_in(state: StateDirectory) -> list[tuple[Any, ...]]:
    """The reports, whichever batches they were in."""
    return sorted(Report(batch, end, 0, query, rows, n).told for batch, end, query, rows, n in reports_of(state))


# -- random streams ------------------------------------------------------------------------------------------------


class TermStreams(Streams):
    """Streams whose subscriptions are, for a share of them, to frequent terms."""

    def __init__(self, seed: int, ids: int = 25, share: float = 0.8) -> None:
        super().__init__(seed, ids)
        self.of_terms = share
        self.windows: tuple[str, ...] = WINDOWS

    def sql(self, now: int) -> str:
        return self.terms() if self.random.random() < self.of_terms else super().sql(now)

    def terms(self, lives: bool = True, beats: tuple[str, ...] = BEATS) -> str:
        random = self.random
        where = [self.region() if random.random() < 0.7 else "", self.words() if random.random() < 0.4 else ""]
        where.append(random.choice(("",) * 9 + ("price < 6", "kind = 'shop' AND price IS NOT NULL", "kind IS NULL")))
        if random.random() > 0.03:  # those without a window are rejects
            where.append(f"time AFTER '{random.choice(self.windows)} ago'")
        k = random.choice(("text", "text, 1", "text, 2", "text, 3", "text, 10", "text, 40"))
        life = f" FOR {random.randrange(1, 90)} MINUTES" if lives and random.random() < 0.3 else ""
        conditions = " AND ".join(condition for condition in where if condition)
        return (
            f"SELECT TopK({k}) FROM stream{' WHERE ' if conditions else ''}{conditions}"
            f" SYNC {random.choice(beats)}{life}"
        )

    def fresh_post(self, ts: int) -> dict[str, Any]:
        """A post that has not been before."""
        while True:
            known = len(self.written)
            made = self.post(ts)
            if len(self.written) > known:
                return made


def random_batches(
    streams: TermStreams, count: int, oracle: ReportOracle, disorder: int = 5, duplicates: bool = True
) -> list[Batch]:
    """Batches that the oracle has followed: some posts late by minutes, now and then some hours of silence."""
    random = streams.random
    now = ZERO + MINUTE
    batches: list[Batch] = []
    for _ in range(count):
        clock = now if oracle.clock == float("-inf") else int(oracle.clock)
        ops = [streams.op(clock, oracle) for _ in range(random.choice((0, 5, 14)))]
        if random.random() < 0.1:
            now += random.randrange(1, 90) * 4 * MINUTE
        posts = []
        for _ in range(random.choice((0, 1, 40, 60, 60))):
            now += random.choice((0, 0, MINUTE // 3, MINUTE))
            moment = now - random.choice((0, 0, 0, disorder)) * MINUTE * random.randrange(3)
            posts.append(streams.post(moment) if duplicates else streams.fresh_post(moment))
        batches.append(Batch(ops, posts))
        oracle.batch(batches[-1])
    return batches


def full(oracle: ReportOracle) -> int:
    return sum(1 for report in oracle.reports if report.rows)


@pytest.mark.parametrize(
    ("seed", "workers", "lateness"), [(17, 2, 3), (21, 5, 3), *slow((10, 1, 0), (13, 5, 0), (24, 2, 12))]
)
def test_any_stream_gives_the_reports_it_means(seed: int, workers: int, lateness: int, tmp_path: Path) -> None:
    oracle = ReportOracle(FIRST["ts"], lateness=lateness * MINUTE)
    batches = random_batches(TermStreams(seed), 12, oracle)
    assert full(oracle) > 500
    assert bool(oracle.late) == (lateness < 10)  # of the disorder
    state = run(tmp_path, Settings(workers=workers, lateness=lateness * MINUTE), batches, sample=SAMPLE)
    check_reports(state, oracle)
    check(state, oracle)  # matches of the others, duplicates


def test_stop_words_are_left_out(tmp_path: Path) -> None:
    settings = Settings(workers=2, stop_words=("The", "a"))
    batches = [Batch([subscribe("q", top())], [post(1, 2, "the flood"), post(2, 3, "A the flood rises"), tick(3, 11)])]
    rows = [row["rows"] for row in read_results(run(tmp_path, settings, batches, sample=SAMPLE))]
    assert rows == [[{"term": "flood", "count": 2}, {"term": "rises", "count": 1}]]


def test_tables_of_cells_change_no_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are made for many subscriptions and posts; here for any."""
    monkeypatch.setattr("nearcast.kinds.terms.index.MANY_ROWS", 1)
    monkeypatch.setattr("nearcast.kinds.terms.index.MANY_POSTS", 0)
    oracle = ReportOracle(FIRST["ts"], lateness=MINUTE)
    batches = random_batches(TermStreams(31), 12, oracle)
    assert full(oracle) > 300
    check_reports(run(tmp_path, Settings(workers=2, lateness=MINUTE), batches, sample=SAMPLE), oracle)


@pytest.mark.parametrize("router", ["kdt", "qt-text"])
def test_a_router_that_cuts_by_words_changes_no_report(router: str, tmp_path: Path) -> None:
    oracle = ReportOracle(FIRST["ts"], lateness=MINUTE)
    batches = random_batches(TermStreams(42), 10, oracle)
    assert full(oracle) > 300
    settings = Settings(workers=3, lateness=MINUTE, router=router)
    check_reports(
        run(tmp_path, settings, batches, sample=[FIRST, *(each for b in batches for each in b.posts)]), oracle
    )


def test_the_number_of_workers_may_change_between_batches(tmp_path: Path) -> None:
    oracle = ReportOracle(FIRST["ts"], lateness=2 * MINUTE)
    batches = random_batches(TermStreams(11), 14, oracle)
    assert full(oracle) > 300
    settings = Settings(lateness=2 * MINUTE)
    check_reports(run(tmp_path, settings, batches, workers=(1, 3, 3, 2), sample=SAMPLE), oracle)


@pytest.mark.parametrize("fan", [2, 3])
def test_merging_changes_no_report(fan: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every few batches all segments become one; every other batch nothing is merged."""
    monkeypatch.setattr("nearcast.storage.compaction_policy.to_merge.__defaults__", (fan,))
    monkeypatch.setattr("nearcast.storage.compaction_policy.run_to_merge.__defaults__", (fan,))
    oracle = ReportOracle(FIRST["ts"])
    state, settings = StateDirectory(tmp_path), Settings(workers=fan - 1)
    start(state, settings, SAMPLE)
    for number, batch in enumerate(random_batches(TermStreams(20 + fan), 16, oracle)):
        step(state, replace(settings, merge=fan == 2 or number % 2 == 0), batch)
    assert full(oracle) > 200
    check_reports(state, oracle)


# -- cuts ----------------------------------------------------------------------------------------------------------


def test_where_disorder_stays_within_the_lateness_the_cut_does_not_show(tmp_path: Path) -> None:
    """Subscriptions with their times, before, among and after the posts, which come up to four minutes late."""
    lateness = 4 * MINUTE
    streams = TermStreams(5, share=1.0)
    random = streams.random
    posts = [streams.post(at(1 + number * 1.5)) for number in range(80)]
    ops = [subscribe(n, streams.terms(), n * 2.5 - 20) for n in range(40)]
    whole = [Batch(ops, posts)]
    right = ReportOracle(FIRST["ts"], lateness=lateness).run(whole)
    assert full(right) > 200

    def mixed() -> list[dict[str, Any]]:
        return sorted(posts, key=lambda each: (each["ts"] or at(60)) + random.randrange(lateness))

    late = mixed()
    cuts = {
        "one batch": (1, whole),
        "ops first": (3, [Batch(ops), Batch([], mixed())]),
        "small": (2, [Batch(ops), *(Batch([], late[i : i + 9]) for i in range(0, 80, 9))]),
        "among": (2, [Batch(ops[i // 2 : i // 2 + 10], late[i : i + 20]) for i in range(0, 80, 20)]),
        "after": (5, [Batch([], late[:50]), Batch([], late[50:]), Batch(ops)]),
    }
    expected = sorted(each.told for each in right.reports)
    for name, (workers, batches) in cuts.items():
        state = run(tmp_path / name, Settings(workers=workers, lateness=lateness), batches, sample=SAMPLE)
        assert told_in(state) == expected, name
        assert not late_of(state), name


# -- one meaning at a time -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_meaning(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    retention = None if case.retention is None else case.retention * MINUTE
    settings = Settings(workers=1 + len(name) % 3, lateness=case.lateness * MINUTE, retention=retention)
    oracle = ReportOracle(FIRST["ts"], lateness=settings.lateness, retention=retention).run(case.batches)
    check_reports(run(tmp_path, settings, case.batches, sample=SAMPLE), oracle)


def test_a_report_is_what_the_same_text_asked_at_that_moment_finds(tmp_path: Path) -> None:
    #  the clock stands at minute 60, where all beats meet: what is searched then is reported with the next post
    streams = TermStreams(8)
    texts = [streams.terms(lives=False, beats=("20 seconds", "1 minute", "12 minutes", "1 hour")) for _ in range(40)]
    texts = [text for text in texts if "ago" in text]
    posts = [streams.fresh_post(at(1 + n / 2)) for n in range(118)]
    state, settings = StateDirectory(tmp_path), Settings()
    start(state, settings, SAMPLE)
    step(state, settings, Batch([subscribe(n, text) for n, text in enumerate(texts)], [*posts, tick(1, 60)]))
    reader = Reader(state)
    found = [list(reader.search(text)) for text in texts]
    assert sum(1 for rows in found if rows) > 8
    step(state, settings, Batch([], [tick(2, 60.001)]))
    last = [report for report in reports_of(state) if report[0] == 1]
    assert last == [(1, at(60), n, rows, None) for n, rows in enumerate(found)]


# -- silence -------------------------------------------------------------------------------------------------------

SECONDS = "SELECT TopK(text) FROM stream WHERE text CONTAINS 'word' AND time AFTER '10 seconds ago' SYNC 1 second"


@pytest.mark.parametrize("empty", [1440, 1441])
def test_empty_reports_in_a_row_are_counted_across_batches(empty: int, tmp_path: Path) -> None:
    """A start at minute 10; nothing in several batches, workers changing; then words, silence and the end."""
    word = at(10) + empty * SECOND
    ops = [subscribe("q", SECONDS, 10), subscribe("r", SECONDS + " FOR 55 MINUTES", 10)]
    batches = [Batch(ops, [tick(0, 10)])]
    batches += [Batch([], [{**tick(n, 0), "ts": at(10) + empty * SECOND * n // 4}]) for n in range(1, 4)]
    batches += [Batch([], [{**post(1, 0), "ts": word}])]
    batches += [Batch([], [{**tick(9, 0), "ts": word + 1}])]
    batches += [Batch([{"op": "unsubscribe", "id": "q", "ts": at(64)}], [tick(10, 60)]), Batch([], [tick(11, 80)])]
    oracle = ReportOracle(FIRST["ts"]).run(batches)
    skipped = [(each.query_id, each.skipped) for each in oracle.reports if each.skipped]
    ends = [("q", 54 * 60 - empty - 10 - SILENCE), ("r", 55 * 60 - empty - 10 - SILENCE)]
    assert skipped == [("q", 1), ("r", 1)][: 2 * (empty - SILENCE)] + ends
    check_reports(run(tmp_path, Settings(), batches, workers=(1, 3), sample=SAMPLE), oracle)


def test_years_without_posts_are_passed_quickly(tmp_path: Path) -> None:
    year = 365 * 24 * HOUR
    ops = [subscribe(n, SECONDS.replace("10 seconds", f"{n + 1} seconds")) for n in range(5)]
    ops += [subscribe("since 1970", SECONDS, -ZERO / MINUTE), subscribe("hours", top(60, 1), 5)]
    batches = [Batch(ops, [post(1, 1)])]
    batches += [Batch([], [{**post(n, 0), "ts": ZERO + 3 * n * year}]) for n in range(2, 6)]
    oracle = ReportOracle(FIRST["ts"]).run(batches)
    assert sum(each.skipped or 0 for each in oracle.reports) > 2_000_000_000
    state, settings = StateDirectory(tmp_path), Settings(workers=2)
    start(state, settings, SAMPLE)
    step(state, settings, batches[0])
    began = time.process_time()
    for batch in batches[1:]:
        step(state, settings, batch)
    assert time.process_time() - began < 30  # most of it to compile, if it is the first test to run
    check_reports(state, oracle)


# -- keeping -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 3])
def test_posts_that_are_not_kept_are_in_reports_all_the_same(workers: int, tmp_path: Path) -> None:
    """Subscriptions first, then posts, of which some are late; two subscriptions end on the way."""
    streams = TermStreams(30 + workers, share=0.9)
    oracle = ReportOracle(FIRST["ts"], keep="none", lateness=MINUTE)
    batches = [Batch([subscribe(n, streams.sql(ZERO + MINUTE)) for n in range(40)])]
    for number in range(7):
        moments = [1 + number * 8 + n / 4 - streams.random.choice((0, 0, 1, 9)) for n in range(32)]
        posts = [streams.fresh_post(at(max(1, moment))) for moment in moments]
        batches.append(Batch([{"op": "unsubscribe", "id": number}] if number in (3, 5) else [], posts))
    oracle.run(batches)
    assert full(oracle) > 200 and oracle.late
    settings = Settings(workers=workers, keep="none", lateness=MINUTE)
    check_reports(run(tmp_path, settings, batches, sample=SAMPLE), oracle)


def test_posts_that_are_not_kept_count_once_and_not_after_their_deletion(tmp_path: Path) -> None:
    batches = [
        Batch([subscribe("q", top(20, 10))], [post(1, 5, "a"), post(2, 6, "b"), post(2, 6, "b")]),
        Batch([], [post(2, 6, "b"), post(3, 11, "c")]),
        Batch([delete(1)], [post(3, 11, "c"), post(4, 21, "d")]),
        Batch([], [tick(1, 31)]),
    ]
    state = run(tmp_path, Settings(workers=2, keep="none"), batches, sample=SAMPLE)
    rows = [{row["term"]: row["count"] for row in report[3]} for report in reports_of(state)]
    assert rows == [{"a": 1, "b": 1}, {"b": 1, "c": 1}, {"c": 1, "d": 1}]


@pytest.mark.parametrize("workers", [1, 3])
def test_posts_older_than_retention_are_late_and_in_no_report(workers: int, tmp_path: Path) -> None:
    """Half an hour is kept, in slots of ten minutes; posts come up to 50 minutes late."""
    retention = 30 * MINUTE
    streams = TermStreams(40 + workers, share=1.0)
    streams.windows = ("90 seconds", "20 minutes", "30 minutes", "30.1 minutes")
    oracle = ReportOracle(FIRST["ts"], retention=retention)
    batches = []
    for number in range(9):
        clock = ZERO + MINUTE if oracle.clock == float("-inf") else int(oracle.clock)
        ops = [streams.op(clock, oracle) for _ in range(6 if number < 6 else 0)]
        ops = [{**op, "ts": max(op["ts"], clock)} if op.get("ts") is not None else op for op in ops]
        late = [streams.random.choice((0, 0, 0, 0, 0, 0, 20, 50)) for _ in range(30)]
        posts = [streams.fresh_post(at(max(1, 1 + number * 15 + n / 2 - late[n]))) for n in range(30)]
        batches.append(Batch(ops, posts))
        oracle.batch(batches[-1])
    assert full(oracle) > 100 and oracle.rejects
    too_old = [1 for _, _, ts in oracle.late if ts < oracle.clock - 4 * retention]
    assert too_old and len(oracle.late) > len(too_old)
    settings = Settings(workers=workers, retention=retention, slot=10 * MINUTE)
    check_reports(run(tmp_path, settings, batches, sample=SAMPLE), oracle)


def test_a_window_as_long_as_retention_has_its_posts_however_long_its_report_waits(tmp_path: Path) -> None:
    """The beat of the longest window fires ten minutes after its end: by then its first posts have expired."""
    settings = Settings(workers=2, retention=30 * MINUTE, slot=5 * MINUTE, lateness=10 * MINUTE)
    ops = [subscribe("long", top(30, 10, where="text CONTAINS 'word'")), subscribe("step", top(30, 7, 40))]
    batches = [Batch(ops)]
    for number in range(14):
        batches.append(Batch([], [post(20 * number + n, 1 + 7 * number + n / 2, f"word w{n}") for n in range(14)]))
    batches += [Batch([], [tick(1, 400)]), Batch([], [tick(2, 411)])]
    oracle = ReportOracle(FIRST["ts"], lateness=settings.lateness, retention=settings.retention).run(batches)
    assert max(row["count"] for each in oracle.reports for row in each.rows) == 60
    check_reports(run(tmp_path, settings, batches, sample=SAMPLE), oracle)


# -- real posts ----------------------------------------------------------------------------------------------------


def test_real_posts(shared_data: Path, tmp_path: Path) -> None:
    """Notes of some months in the order of their ids, which is nearly that of their times."""
    table = pq.read_table(shared_data / "osm_notes.parquet").slice(0, 3000).select(["id", "ts", "lon", "lat", "text"])
    table = table.set_column(1, "ts", table["ts"].cast(pa.int64()))
    notes = [{**row, "text": row["text"] or ""} for row in table.to_pylist()]
    streams = TermStreams(50)
    ops = []
    for number in range(40):
        near = streams.random.choice(notes)
        size = 10 ** streams.random.uniform(-1, 1.8)
        west, east = max(-180.0, near["lon"] - size), min(180.0, near["lon"] + size)
        south, north = max(-90.0, near["lat"] - size), min(90.0, near["lat"] + size)
        where = f"loc INSIDE RECT({west!r}, {south!r}, {east!r}, {north!r})"
        window, beat = streams.random.choice((30, 1440, 10_000, 40_000)), streams.random.choice((1440, 5000, 10_080))
        ops.append(subscribe(number, top(window, beat, streams.random.choice((1, 10, 40, 1000)), where)))
    batches = [Batch(ops, notes[:700]), Batch([], notes[700:2000]), Batch([], notes[2000:])]
    lateness = 24 * HOUR
    oracle = ReportOracle(notes[0]["ts"], lateness=lateness).run(batches)
    assert full(oracle) > 500
    check_reports(run(tmp_path, Settings(workers=2, lateness=lateness), batches, sample=notes[:500]), oracle)
