"""Whatever changes hands between batches, the outbox and the answers are what the stream means."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from nearcast.common.errors import BadInput
from nearcast.common.op_schema import NEVER
from nearcast.engine import rebalancing as balance
from nearcast.engine.align import align, placed
from nearcast.engine.balance_strategies import NAMES, check_balance, decide, picked
from nearcast.engine.batch import BatchPlan, open_segments
from nearcast.engine.load_notes import KEPT
from nearcast.engine.measured_load import Measured
from nearcast.engine.rebalancing import adjust
from nearcast.engine.samples import own_sample
from nearcast.engine.settings import Settings
from nearcast.partitioning.moves import Loads, Move, worker_loads
from nearcast.partitioning.partition import Partition
from nearcast.partitioning.routers.registry import Router, build, routers
from nearcast.reader.reader import Reader
from nearcast.reader.status import read_status
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import STATISTICS
from nearcast.storage.subscriptions.subscription_set import read_logs, standing_ends
from nearcast.storage.sweep import sweep
from tests.engine.harness import MINUTE, NOON, WORDS, check, check_nearest, start, step
from tests.engine.oracle import Batch, Oracle
from tests.engine.test_crashes import Crash, crashing_at
from tests.engine.test_every_router import random_batches, sample
from tests.kinds.terms.test_standing import FIRST, SAMPLE, ReportOracle, TermStreams, check_reports
from tests.kinds.terms.test_standing import random_batches as terms_batches
from tests.marks import slow
from tests.partitioning.routers.made import MADE

REST = ("grid", "everyone", "kdt", "by_query", "by_post")  # beside the QT-tree and one with nodes of every kind

WORKERS = 3


@pytest.fixture(autouse=True)
def made_by_hand() -> Iterator[None]:
    routers().update({name: Router(name, builder) for name, builder in MADE.items()})
    yield
    for name in MADE:
        del routers()[name]


def plan_of(state: StateDirectory, settings: Settings) -> BatchPlan:
    manifest = state.newest()
    return BatchPlan(str(state.root), manifest, settings, manifest.batch)


def move_to(partition: Partition, old: Partition) -> Move:
    nothing = np.zeros(len(old.node))
    loads = Loads(nothing, nothing, partition.load)
    return Move("forced", "a test", partition, loads, 0, 0, np.ones(1), worker_loads(partition, partition.load))


def reowned(plan: BatchPlan, random: Random) -> Move:
    """All leaves to anyone."""
    old = plan.router.partition
    owner = np.array([random.randrange(plan.settings.workers) for _ in range(old.leaves)], np.int32)
    return move_to(replace(old, owner=owner, workers=plan.settings.workers), old)


def another(plan: BatchPlan, random: Random) -> Move:
    """Any router's partition of what the state holds."""
    new = build(random.choice(list(routers())), own_sample(plan), plan.settings.workers)
    return move_to(replace(new, name=plan.router.name), plan.router.partition)


def gradual(plan: BatchPlan, random: Random) -> Move:
    """A partition that comes to stand beside the one there is."""
    return replace(another(plan, random), gradual=True)


def any_move(plan: BatchPlan, random: Random) -> Move:
    return random.choice((reowned, reowned, another, gradual))(plan, random)


def check_kept(state: StateDirectory, settings: Settings) -> None:
    """Every worker has each subscription that its leaves keep and that has a time to live, once."""
    plan = plan_of(state, settings)
    refs = placed(plan.manifest)
    parts = open_segments(plan, [ref.name for ref in refs])
    ends = standing_ends(parts, read_logs(state, plan.manifest))
    first = NEVER if plan.manifest.first_post is None else plan.manifest.first_post
    for worker in range(settings.workers):
        own = np.concatenate([[-1], *(parts[ref.name].rows.seq for ref in refs if ref.owner == worker)])
        assert len(np.unique(own)) == len(own)
        for ref in refs:
            rows = parts[ref.name].rows
            alive = ends[ref.name].applied(rows, np.arange(len(rows)), first) > rows.start
            kept = rows.seq[plan.keepers(rows)[0][:, worker] & alive]
            assert np.isin(kept, own).all()


def check_all(state: StateDirectory, oracle: Oracle) -> None:
    check(state, oracle)
    if oracle.keep == "posts":
        check_nearest(state, oracle)
        found = sorted((str(row["id"]), row["ts"]) for row in Reader(state).search("SELECT * FROM stream"))
        assert found == sorted((str(each["id"]), each["ts"]) for each in oracle.posts)


def run(
    root: Path,
    settings: Settings,
    batches: list[Batch],
    moves: Callable[[BatchPlan], Move | None],
    seen: list[dict[str, Any]] | None = None,
) -> StateDirectory:
    """A state after these batches, with a move after each."""
    state = StateDirectory(root)
    start(state, settings, seen or sample(batches))
    for batch in batches:
        step(state, settings, batch)
        move = moves(plan_of(state, settings))
        if move is not None:
            adjust(plan_of(state, settings), move)
            check_kept(state, settings)
    return state


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merge after every third segment, so that what was lost is cleaned up."""
    monkeypatch.setattr("nearcast.storage.compaction_policy.to_merge.__defaults__", (3,))


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("name", ["qt", "mixed", *slow(*REST)])
def test_leaves_may_change_hands_at_every_batch(name: str, tmp_path: Path) -> None:
    batches, oracle = random_batches(311, 9)
    random = Random(1)
    settings = Settings(workers=WORKERS, router=name, balance="off")
    state = run(tmp_path, settings, batches, lambda plan: reowned(plan, random))
    check_all(state, oracle)
    assert len(state.newest().adjustments) == 9


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("keep", ["posts", *slow("none")])
def test_the_partition_may_become_another_at_every_batch(keep: str, tmp_path: Path) -> None:
    batches, oracle = random_batches(51, 12, keep)
    random = Random(51)
    settings = Settings(workers=WORKERS, keep=keep, balance="off")
    check_all(run(tmp_path, settings, batches, lambda plan: any_move(plan, random)), oracle)


@pytest.mark.parametrize("name", ["by_query", *slow("grid", "quad")])
def test_small_places_and_no_id_twice(name: str, tmp_path: Path) -> None:
    """So that nothing else takes out a pair that came twice, and no worker keeps everything anyway."""
    places = [(-170.0 + 17 * n, -80.0 + 8 * n) for n in range(20)]
    boxes = [f"RECT({lon - 1}, {lat - 1}, {lon + 1}, {lat + 1})" for lon, lat in places]
    asked = [f"SELECT * FROM stream WHERE loc INSIDE {box} AND text CONTAINS 'a'" for box in boxes]
    ops = [{"op": "subscribe", "id": f"q{n}", "sql": sql} for n, sql in enumerate(asked)]
    batches = [Batch(ops)]
    for number in range(6):
        ids = range(100 * number, 100 * number + 20)
        posts = [{"id": n, "ts": NOON + number * MINUTE, "text": f"a w{n % 7}"} for n in ids]
        batches.append(Batch([], [{**p, "lon": lon, "lat": lat} for p, (lon, lat) in zip(posts, places, strict=True)]))
    oracle = Oracle(NOON).run(batches)
    assert len(oracle.results) == 120
    random = Random(4)
    settings = Settings(workers=WORKERS, router=name, balance="off", merge=False)
    check_all(run(tmp_path, settings, batches, lambda plan: reowned(plan, random)), oracle)


PAIRS = [
    ("grid", "pm"), ("agrid", "shift"), ("quad", "borders"), ("qt", "pm+fm+fg"), ("kdt", "local"), ("kdt", "global"),
]  # fmt: skip
MORE_PAIRS = [
    ("grid", "fm"), ("grid", "local"), ("kd", "shift"), ("qt", "pm+fm"), ("qt", "fg"), ("qt", "global"),
    ("text-metric", "local"), ("mixed", "local"), ("mixed", "fm"),
]  # fmt: skip
PAIRS += slow(*MORE_PAIRS)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize(("router", "strategy"), PAIRS)
def test_every_strategy_leaves_all_as_it_is(
    router: str, strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Acting at the least imbalance, on what was measured in the batches themselves."""
    monkeypatch.setattr("nearcast.partitioning.balancers.text_cuts.repartition", lambda *_: True)
    batches, oracle = random_batches(77, 8)
    settings = Settings(workers=WORKERS, router=router)

    def decided(plan: BatchPlan) -> Move | None:
        if not plan.manifest.of(STATISTICS):
            return None
        move = decide(strategy, Measured(plan), 1.01)
        if move is not None:  # what was predicted is a partition, and all measured work is in it
            assert np.isclose(move.before.sum(), Measured(plan).work.loads.sum()) or strategy == "global"
        return move

    state = run(tmp_path, settings, batches, decided)
    check_all(state, oracle)
    assert len(state.newest().adjustments) > 1


@pytest.mark.slow
@pytest.mark.usefixtures("often")
def test_reports_are_what_they_mean(tmp_path: Path) -> None:
    oracle = ReportOracle(FIRST["ts"])
    batches = terms_batches(TermStreams(17), 7, oracle)
    assert len(oracle.reports) > 20
    random = Random(3)
    settings = Settings(workers=WORKERS, router="kdt", balance="off")
    check_reports(run(tmp_path, settings, batches, lambda plan: any_move(plan, random), SAMPLE), oracle)


@pytest.mark.slow
def test_workers_may_come_and_go_among_adjustments(tmp_path: Path) -> None:
    batches, oracle = random_batches(63, 8)
    random = Random(2)
    state, settings = StateDirectory(tmp_path), Settings(workers=2, balance="off")
    start(state, settings, sample(batches))
    for number, batch in enumerate(batches):
        settings = replace(settings, workers=2 + number // 2 % 3)
        align(state, settings)
        step(state, settings, batch)
        adjust(plan_of(state, settings), any_move(plan_of(state, settings), random))
        check_kept(state, settings)
    check_all(state, oracle)


# -- crashes -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("often")
def test_a_crash_at_any_step_of_an_adjustment_loses_nothing_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each batch the adjustment is cut off at another write, link or sync; the stream goes on, or it is tried
    again first.
    """
    batches, oracle = random_batches(29, 15)
    random = Random(9)
    state, settings = StateDirectory(tmp_path), Settings(workers=WORKERS, router="kdt", balance="off")
    start(state, settings, sample(batches))
    cut = done = 0
    for number, batch in enumerate(batches):
        step(state, settings, batch)
        move = any_move(plan_of(state, settings), random)
        before = state.newest().version
        try:
            with crashing_at(1 + number % 13, monkeypatch):
                adjust(plan_of(state, settings), move)
        except Crash:
            cut += 1
            done += state.newest().version > before  # the last sync fails after the link: it is committed
            if number % 2:
                adjust(plan_of(state, settings), any_move(plan_of(state, settings), random))
        sweep(state, grace=0.0)
        check_kept(state, settings)
    assert cut > 6 and done > 0
    check_all(state, oracle)


def test_half_written_files_of_an_adjustment_are_nobodys(tmp_path: Path) -> None:
    batches, oracle = random_batches(311, 6)
    state, settings = StateDirectory(tmp_path), Settings(workers=WORKERS, balance="off")
    start(state, settings, sample(batches))
    for batch in batches:
        step(state, settings, batch)
        number = state.newest().version + 1
        (state.root / "router" / f"{number:012d}-deadbeef.arrow").write_bytes(b"ARROW1")
        (state.segments / "subscriptions" / f"b{number:09d}-w000-deadbeef0000.arrow").write_bytes(b"ARROW1")
        adjust(plan_of(state, settings), reowned(plan_of(state, settings), Random(number)))
    assert sweep(state, grace=0.0) > 0
    check_all(state, oracle)


# -- deciding ------------------------------------------------------------------------------------------------------


def crowd(number: int, count: int) -> Batch:
    """Posts in one part of the world."""
    random = Random(number)
    ids = range(10**6 * number, 10**6 * number + count)
    posts = [{"id": n, "ts": NOON + number * MINUTE, "text": random.choice(WORDS)} for n in ids]
    return Batch([], [{**post, "lon": 2 + 20 * random.random(), "lat": 40 + 15 * random.random()} for post in posts])


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changing costs nothing, so that a small stream is worth it."""
    monkeypatch.setattr("nearcast.engine.balance_strategies.A_CHANGE", 0.0)
    monkeypatch.setattr("nearcast.engine.balance_strategies.A_QUERY", 0.0)


def followed(root: Path, settings: Settings, batches: int = 10) -> StateDirectory:
    """A grid over the world, and then all posts in one place."""
    state = StateDirectory(root)
    spread = [
        {"id": n, "ts": NOON, "lon": n % 40 * 9 - 179.0, "lat": n // 40 * 9 - 89.0, "text": "a"} for n in range(800)
    ]
    start(state, settings, spread)
    ops = [
        {"op": "subscribe", "id": n, "sql": "SELECT * FROM stream WHERE loc INSIDE RECT(2, 40, 22, 55)"}
        for n in range(3)
    ]
    step(state, settings, Batch(ops))
    for number in range(1, batches):
        step(state, settings, crowd(number, 300))
    return state


@pytest.mark.usefixtures("cheap")
@pytest.mark.parametrize("router", ["qt", "kdt", "agrid"])
def test_auto_follows_a_crowd_and_then_rests(router: str, tmp_path: Path) -> None:
    state = followed(tmp_path, Settings(workers=2, router=router), 14)
    told = state.newest().adjustments
    assert told
    assert all(b["batch"] - a["batch"] >= balance.PATIENCE for a, b in pairwise(told))
    assert {*told[0]} >= {"batch", "strategy", "cause", "queries", "busiest_before", "busiest_after"}
    assert told[-1]["busiest_after"] < told[0]["busiest_before"]
    status = read_status(state)
    assert status.adjustments == told and [each["worker"] for each in status.owners] == [0, 1]


@pytest.mark.usefixtures("cheap")
@pytest.mark.parametrize("more", [{"balance": "off"}, {"workers": 1}])
def test_nothing_is_noted_or_done_where_nobody_asks(more: dict[str, Any], tmp_path: Path) -> None:
    manifest = followed(tmp_path, Settings(**{"workers": 2, "router": "kd", **more})).newest()
    assert not manifest.adjustments and not manifest.of(STATISTICS)


def test_auto_leaves_what_does_not_pay(tmp_path: Path) -> None:
    assert not followed(tmp_path, Settings(workers=2, router="kd")).newest().adjustments


def test_notes_of_long_ago_are_forgotten(tmp_path: Path) -> None:
    manifest = followed(tmp_path, Settings(workers=2), 2 * KEPT).newest()
    assert {ref.batch for ref in manifest.of(STATISTICS)} == set(range(manifest.batch - KEPT + 1, manifest.batch + 1))


@pytest.mark.parametrize(
    ("name", "router", "words"),
    [
        ("best", "grid", "there is no --balance best"), ("fg", "kdt", "is for the routers qt"),
        ("shift", "kdt", "is for the routers agrid"), ("borders", "qt-text", "is for the routers"),
        ("pm", "everyone", "nothing to balance"), ("global", "grid", "looks at no queries"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(name: str, router: str, words: str) -> None:
    with pytest.raises(BadInput, match=words) as refused:
        check_balance(name, router)
    assert "\n" not in str(refused.value)


def test_auto_has_a_strategy_for_every_router() -> None:
    for router in routers():
        assert picked("auto", router) in NAMES[1:]
        check_balance("auto", router)
        if picked("auto", router) != "off" and router not in MADE:
            check_balance(picked("auto", router), router)


def test_auto_balances_a_partition_whose_router_is_not_installed_here() -> None:
    assert picked("auto", "of another distribution") == "pm+fm"
