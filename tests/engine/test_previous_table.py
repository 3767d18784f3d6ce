"""Two partitions side by side (PS2Stream §V-B): the outbox and the answers are what the stream means, at each stage."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from nearcast.engine import rebalancing as balance
from nearcast.engine.align import align, placed
from nearcast.engine.batch import BatchPlan, open_segments
from nearcast.engine.begin import begin
from nearcast.engine.rebalancing import adjust, is_due, united
from nearcast.engine.settings import Settings
from nearcast.partitioning.moves import Move
from nearcast.storage.directory import StateDirectory
from nearcast.storage.sweep import sweep
from tests.engine.harness import MINUTE, NOON, check, start, step
from tests.engine.oracle import Batch, Oracle
from tests.engine.test_balance import (
    WORKERS,
    another,
    any_move,
    check_all,
    check_kept,
    gradual,
    made_by_hand,
    move_to,
    often,
    plan_of,
    reowned,
)
from tests.engine.test_crashes import Crash, crashing_at
from tests.engine.test_every_router import random_batches, sample
from tests.marks import slow

__all__ = ["made_by_hand", "often"]  # fixtures


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("keep", ["posts", "none"])
@pytest.mark.parametrize("seed", [1, *slow(2, 3, 4, 5, 6)])
def test_any_partition_may_come_beside_any_other_and_take_over_later(seed: int, keep: str, tmp_path: Path) -> None:
    """From one partition to two and back, for some batches each; now and then another move cuts that short."""
    batches, oracle = random_batches(400 + seed, 14, keep)
    random, seen = Random(seed), set()
    settings = Settings(workers=WORKERS, keep=keep, balance="off", router=random.choice(["kdt", "by_query", "grid"]))
    state = StateDirectory(tmp_path)
    start(state, settings, sample(batches))
    for batch in batches:
        step(state, settings, batch)
        plan = plan_of(state, settings)
        beside = plan.previous is not None
        done = random.choice(["unite", "unite", "adjust", "", ""] if beside else ["adjust", "adjust", ""])
        if done == "unite":
            united(plan)
        elif done:
            adjust(plan, any_move(plan, random) if beside else gradual(plan, random))
        seen.add((beside, done))
        check_kept(state, settings)
    assert {(False, "adjust"), (True, "unite")} <= seen
    check_all(state, oracle)


@pytest.mark.usefixtures("often")
def test_workers_and_routers_may_change_meanwhile(tmp_path: Path) -> None:
    batches, oracle = random_batches(71, 10)
    random = Random(7)
    state, settings = StateDirectory(tmp_path), Settings(workers=2, balance="off")
    start(state, settings, sample(batches))
    for number, batch in enumerate(batches):
        settings = replace(settings, workers=2 + number // 2 % 3, router="kdt" if number == 7 else None)
        begin(state, settings)
        align(state, settings)
        step(state, settings, batch)
        if plan_of(state, settings).previous is None:
            adjust(plan_of(state, settings), gradual(plan_of(state, settings), random))
        check_kept(state, settings)
    check_all(state, oracle)


@pytest.mark.usefixtures("often")
def test_a_crash_at_any_step_loses_nothing_and_doubles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The beginning of the time side by side and its end are cut off at another write, link or sync each time."""
    batches, oracle = random_batches(31, 16)
    random = Random(3)
    state, settings = StateDirectory(tmp_path), Settings(workers=WORKERS, router="kdt", balance="off")
    start(state, settings, sample(batches))
    cut = 0
    for number, batch in enumerate(batches):
        step(state, settings, batch)
        plan = plan_of(state, settings)
        move = gradual(plan, random)
        try:
            with crashing_at(1 + number // 2 % 9, monkeypatch):
                united(plan) if plan.previous is not None else adjust(plan, move)
        except Crash:
            cut += 1
        sweep(state, grace=0.0)
        check_kept(state, settings)
    assert cut > 4
    check_all(state, oracle)


PLACES = [(-170.0 + 17 * n, -80.0 + 8 * n) for n in range(20)]


def asked(first: int) -> list[dict[str, Any]]:
    boxes = [f"RECT({lon - 1}, {lat - 1}, {lon + 1}, {lat + 1})" for lon, lat in PLACES]
    texts = [f"SELECT * FROM stream WHERE loc INSIDE {box} AND text CONTAINS 'a'" for box in boxes]
    return [{"op": "subscribe", "id": f"q{first + n}", "sql": sql} for n, sql in enumerate(texts)]


def posted(number: int) -> list[dict[str, Any]]:
    posts = [{"id": 100 * number + n, "ts": NOON + number * MINUTE, "text": f"a w{n % 7}"} for n in range(20)]
    return [{**post, "lon": lon, "lat": lat} for post, (lon, lat) in zip(posts, PLACES, strict=True)]


def held(plan: BatchPlan) -> dict[str, int]:
    """The segments of subscriptions, and how many of each came after the new partition."""
    segments = open_segments(plan, [ref.name for ref in placed(plan.manifest)])
    return {name: int((segment.rows.seq >= len(PLACES)).sum()) for name, segment in segments.items()}


def test_nothing_changes_hands_until_few_of_the_old_are_left(tmp_path: Path) -> None:
    """Twenty subscriptions and a new partition; twenty more come, and then all but one of the first leave."""
    leave = [{"op": "unsubscribe", "id": f"q{n}"} for n in range(19)]
    batches = [Batch(asked(0), posted(1)), Batch([], posted(2)), Batch(asked(20), posted(3)), Batch(leave, posted(4))]
    batches += [Batch([], posted(number)) for number in range(5, 9)]
    oracle = Oracle(NOON).run(batches)
    state, settings = StateDirectory(tmp_path), Settings(workers=WORKERS, router="by_query", merge=False)
    start(state, settings, sample(batches))
    first: dict[str, int] = {}
    for number, batch in enumerate(batches[:4]):
        step(state, settings, batch)
        plan = plan_of(state, settings)
        if number == 1:
            first, router = held(plan), plan.manifest.router
            after = adjust(plan, gradual(plan, Random(5)))
            assert after.previous == {"router": router, "before": 20, "batch": 1}
            assert after.adjustments[-1]["queries"] == 0
            assert sweep(state, grace=0.0) and (state.root / str(router)).exists()
        elif number > 1:
            assert plan.previous is not None
            assert first.items() <= held(plan).items() and sum(held(plan).values()) >= 20
    for batch in batches[4:]:
        step(state, settings, batch)
    assert state.newest().previous is None
    assert state.newest().adjustments[-1]["cause"].startswith("few subscriptions from before op 20")
    check_kept(state, settings)
    check(state, oracle)


def test_two_partitions_end_by_themselves_though_no_subscription_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(balance, "LONGEST", 6)
    batches = [Batch(asked(0), posted(1)), *(Batch([], posted(number)) for number in range(2, 12))]
    oracle = Oracle(NOON).run(batches)
    state, settings = StateDirectory(tmp_path), Settings(workers=WORKERS, router="kd", balance="off")
    start(state, settings, sample(batches))
    beside = []
    for number, batch in enumerate(batches):
        step(state, settings, batch)
        if not number:
            adjust(plan_of(state, settings), gradual(plan_of(state, settings), Random(2)))
        beside.append(plan_of(state, settings).previous is not None)
    assert beside == [True] * 6 + [False] * 5
    check(state, oracle)


def test_there_is_nothing_to_wait_for_where_no_subscription_stands(tmp_path: Path) -> None:
    state, settings = StateDirectory(tmp_path), Settings(workers=WORKERS, router="kd", balance="off")
    start(state, settings, posted(1))
    step(state, settings, Batch([], posted(1)))
    assert adjust(plan_of(state, settings), gradual(plan_of(state, settings), Random(2))).previous is None


@pytest.mark.parametrize("more", [another, reowned])
def test_another_move_ends_the_time_side_by_side(more: Callable[[BatchPlan, Random], Move], tmp_path: Path) -> None:
    state, settings = StateDirectory(tmp_path), Settings(workers=WORKERS, router="by_query", balance="off")
    start(state, settings, posted(1))
    step(state, settings, Batch(asked(0), posted(1)))
    adjust(plan_of(state, settings), gradual(plan_of(state, settings), Random(2)))
    plan = plan_of(state, settings)
    assert plan.previous is not None and not is_due(plan)
    assert adjust(plan, more(plan, Random(1))).previous is None
    check_kept(state, settings)


TERMS = (
    "SELECT TopK(text, 3) FROM stream WHERE loc INSIDE RECT({}, {}, {}, {}) AND time AFTER '1 minute ago' SYNC 1 minute"
)


def test_what_was_filed_under_another_extent_is_still_wanted(tmp_path: Path) -> None:
    """The summary has cells of the router's extent, and reports on a beat are not written anew when that changes."""
    texts = [TERMS.format(lon - 1, lat - 1, lon + 1, lat + 1) for lon, lat in PLACES]
    ops = [{"op": "subscribe", "id": n, "sql": sql} for n, sql in enumerate(texts)]
    state, settings = StateDirectory(tmp_path / "one"), Settings(workers=2, router="kd", keep="none", balance="off")
    start(state, settings, posted(1))
    step(state, settings, Batch(ops, posted(1)))
    other = StateDirectory(tmp_path / "two")
    start(other, settings, [{**post, "lon": float(n), "lat": 1.0} for n, post in enumerate(posted(1))])
    plan = plan_of(state, settings)
    adjust(plan, move_to(plan_of(other, settings).router.partition, plan.router.partition))
    step(state, settings, Batch([], posted(2)))
    assert state.newest().counts["posts"] == 40
    assert state.newest().counts.get("dropped", 0) == 0
