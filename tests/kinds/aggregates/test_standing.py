"""Standing aggregates (STAR §5): the reports that a stream means, in order, beside the oracle."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from nearcast.engine.settings import Settings
from nearcast.kinds.aggregates import time_layers as layers
from nearcast.kinds.aggregates.interval_counts import Partials
from nearcast.reader.row_format import json_row
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import PARTIALS
from tests.engine.harness import check, run
from tests.kinds.terms.test_standing import SAMPLE, TermStreams, late_of, random_batches, reports_of
from tests.marks import slow
from tests.oracles.aggregate_report_cases import CASES
from tests.oracles.aggregate_reports import AggregateReports, reports
from tests.oracles.report_cases import FIRST, MINUTE


def written(value: Any) -> Any:
    """As the outbox has it."""
    return json_row({"": value})[""] if isinstance(value, datetime | float) else value


def check_reports(state: StateDirectory, oracle: AggregateReports) -> None:
    """Every report in its batch and its place, every late post once."""
    right = [
        (e.batch, e.window_end, e.query_id, [{k: written(v) for k, v in row.items()} for row in e.rows], e.skipped)
        for e in oracle.reports
    ]
    found = reports_of(state)
    for n, (is_there, should_be) in enumerate(zip(found, right, strict=False)):
        assert is_there == should_be, f"report {n}"
    assert len(found) == len(right), (found[len(right) :] or right[len(found) :])[:3]
    assert late_of(state) == oracle.late
    assert state.newest().counts.get("rejects", 0) == oracle.rejects
    assert state.newest().clock == oracle.clock


@pytest.mark.parametrize("workers", [1, *slow(3)])
@pytest.mark.parametrize("name", CASES)
def test_what_standing_aggregates_mean(name: str, workers: int, tmp_path: Path) -> None:
    case = CASES[name]
    lateness, retention = case.lateness * MINUTE, None if case.retention is None else case.retention * MINUTE
    settings = Settings(workers=workers, lateness=lateness, retention=retention)
    state = run(tmp_path, settings, case.batches, sample=SAMPLE)
    check_reports(state, reports(case.batches, FIRST["ts"], lateness, retention))


class AggregateStreams(TermStreams):
    """Streams whose subscriptions are, for the most part, aggregates on a beat."""

    MEASURES = ("Count(id)", "Count(*)", "Count(price)", "Sum(price)", "Avg(price)", "Min(price)", "Max(price)",
                "Max(ts)", "Min(length)", "TopK(text, 3)", "Sum(length)")  # fmt: skip
    KEYS = ("kind", "price", "weekday", "minute", "length", "hour")

    def sql(self, now: int) -> str:
        return self.aggregate() if self.random.random() < 0.85 else super().sql(now)

    def aggregate(self) -> str:
        random = self.random
        by = random.sample(self.KEYS, random.choice((0, 0, 1, 1, 2)))
        measures = random.sample(self.MEASURES, random.choice((1, 1, 2, 3)))
        if measures == ["TopK(text, 3)"] and not by:  # that is another kind
            measures.append("Count(id)")
        where = [self.region() if random.random() < 0.5 else "", self.words() if random.random() < 0.4 else ""]
        where.append(
            random.choice(("",) * 4 + ("price < 6", "kind = 'shop' AND price IS NOT NULL", "weekday IN (2, 3)"))
        )
        if random.random() < 0.8:
            where.append(f"time AFTER '{random.choice(self.windows)} ago'")
        conditions = " AND ".join(condition for condition in where if condition)
        order = random.choice(("", "", f" ORDER BY {measures[0]} DESC" if not measures[0].startswith("TopK") else ""))
        limit = random.choice(("", "", " LIMIT 2"))
        group = f" GROUP BY {', '.join(by)}" if by else ""
        having = random.choice(("", "", " HAVING Count(id) > 1"))
        life = f" FOR {random.randrange(1, 90)} MINUTES" if random.random() < 0.3 else ""
        beats = ("1 minute", "90 seconds", "7 minutes", "7 minutes", "20 minutes", "1 hour")
        return (
            f"SELECT {', '.join([*measures, *by])} FROM stream{' WHERE ' if conditions else ''}{conditions}"
            f"{group}{having}{order}{limit} SYNC {random.choice(beats)}{life}"
        )


@pytest.mark.parametrize(
    ("seed", "workers", "lateness", "router"),
    [(31, 2, 3, None), (33, 5, 0, "qt"), *slow((30, 1, 0, None), (34, 2, 12, "kdt"), (35, 5, 3, None))],
)
def test_any_stream_gives_the_reports_it_means(
    seed: int, workers: int, lateness: int, router: str | None, tmp_path: Path
) -> None:
    oracle = AggregateReports(FIRST["ts"], lateness=lateness * MINUTE)
    batches = random_batches(AggregateStreams(seed), 10, oracle)
    assert sum(1 for report in oracle.reports if report.rows) > 200
    settings = Settings(workers=workers, lateness=lateness * MINUTE, router=router)
    state = run(tmp_path, settings, batches, sample=SAMPLE)
    check_reports(state, oracle)
    check(state, oracle)


def test_so_it_does_where_every_window_is_made_of_layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LONG": 1, "PAYS": 1.0, "FEW": 0}.items():
        monkeypatch.setattr(layers, name, value)
    oracle = AggregateReports(FIRST["ts"])
    state = run(tmp_path, Settings(workers=2), random_batches(AggregateStreams(36), 10, oracle), sample=SAMPLE)
    check_reports(state, oracle)
    held = [Partials.open(state.path(ref.name)) for ref in state.newest().of(PARTIALS)]
    assert sum(len(each.sizes) for file in held for each in file.layers.values()) > 10


@pytest.mark.slow
def test_files_of_what_was_counted_are_merged_and_forgotten(tmp_path: Path) -> None:
    oracle = AggregateReports(FIRST["ts"])
    batches = random_batches(AggregateStreams(41), 40, oracle)
    state = run(tmp_path, Settings(workers=2), batches, sample=SAMPLE)
    check_reports(state, oracle)
    assert 0 < len(state.newest().of(PARTIALS)) < 20
