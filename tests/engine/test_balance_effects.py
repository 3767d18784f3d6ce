"""What an adjustment has done is measured in the batches after it."""

from pathlib import Path

import pytest

from nearcast.cli.status_command import _measured
from nearcast.engine import rebalancing as balance
from nearcast.engine.balance_effects import BATCHES, judged, neighbours, seconds_of, timed
from nearcast.engine.settings import Settings
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import POSTS, STATISTICS, SegmentRef
from tests.engine.harness import NOON, start, step
from tests.engine.oracle import Batch
from tests.engine.test_batches import post


def note(batch: int, owner: int, load: int, seconds: float | None = 1.0, kind: str = STATISTICS) -> SegmentRef:
    facts: dict[str, float] = {"carrying": load // 2, "checking": load - load // 2}
    facts |= {"seconds": seconds} if seconds else {}
    return SegmentRef(kind, f"{batch}-{owner}", 1, 1, batch, owner, facts=facts)


RECORD = {"batch": 4, "workers": 2, "ratio_before": 9.0}


def test_notes_know_how_long_their_batch_took() -> None:
    refs = [note(1, 0, 5, None), note(1, 0, 5, None, kind=POSTS)]
    assert seconds_of(timed(refs, 2.5)) == {1: 2.5}
    assert timed(refs, None) == refs


CASES = {
    "too few batches yet": ([note(5, 0, 2000), note(6, 0, 2000), note(6, 1, 9)], None),
    "as many as it takes": (
        [note(b, w, 2000 * (w + 1), float(b)) for b in (5, 7, 8) for w in (0, 1)],
        {"busiest_measured": 4.0, "ratio_measured": 2.0, "later_s": 7.0},
    ),
    "later ones do not count": (
        [note(b, w, 3000 if b < 9 else 99, 1.0) for b in (5, 7, 8, 9) for w in (0, 1)],
        {"busiest_measured": 3.0, "ratio_measured": 1.0, "later_s": 1.0},
    ),
    "a worker with nothing to do": (
        [note(b, 0, 1000, None) for b in (5, 6, 7)], {"busiest_measured": 1.0, "ratio_measured": None},
    ),
    "what came before it does not count": ([note(b, 0, 1000) for b in (2, 3, 4)], None),
}  # fmt: skip


@pytest.mark.parametrize("name", list(CASES))
def test_the_newest_adjustment_is_judged_once(name: str) -> None:
    refs, expected = CASES[name]
    older = {"batch": 1}
    found = judged([older, RECORD], refs)
    assert found == [older, RECORD | (expected or {})]
    assert judged(found, [note(b, 0, 77) for b in (5, 6, 7)])[-1] == (
        found[-1] if expected else RECORD | {"busiest_measured": 0.077, "ratio_measured": None, "later_s": 1.0}
    )
    assert judged([], refs) == []


def test_its_batch_is_compared_with_those_before() -> None:
    refs = [note(b, w, 1, float(b)) for b in range(1, 8) for w in (0, 1)]
    assert neighbours(refs, 7) == {"batch_s": 7.0, "earlier_s": 5.0}
    assert neighbours(refs[:2], 1) == {"batch_s": 1.0}
    assert neighbours([], 1) == {}


def test_status_tells_it_in_words() -> None:
    times = {"batch_s": 0.5, "earlier_s": 0.25, "later_s": 0.125}
    whole = RECORD | {"busiest_measured": 1234.5, "ratio_measured": None} | times
    assert _measured(whole) == "busiest 1,234.5 ms, L_max / L_min 9 → ∞; its batch 0.50 s (0.25 s before, 0.12 s after)"
    assert _measured(RECORD) == "not yet"
    assert _measured({"batch_s": 2.0}) == "its batch 2.00 s"


def test_a_stream_that_adjusts_measures_its_effects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balance, "PATIENCE", BATCHES)
    state, settings = StateDirectory(tmp_path), Settings(workers=2, router="grid", balance="fm", ratio=1.0)
    start(state, settings, [{"id": 0, "ts": NOON, "lon": 0.0, "lat": 0.0, "text": "x"}, post(1, 0, "y")])
    for number in range(4 * BATCHES):
        posts = [{**post(100 * number + n, number, "a"), "lon": -170.0 + n, "lat": n} for n in range(60)]
        step(state, settings, Batch([], posts))
    made = state.newest().adjustments
    assert made, "it has adjusted"
    for each in made[:-1]:
        assert each["busiest_measured"] > 0 and each["batch_s"] > 0 and each["later_s"] > 0
