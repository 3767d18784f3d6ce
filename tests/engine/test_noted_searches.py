"""Searches that come with the stream are part of the statistics: their types, words and windows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nearcast.common.op_schema import NEVER
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine.batch import BatchPlan
from nearcast.engine.begin import begin
from nearcast.engine.load_notes import KEPT
from nearcast.engine.measured_load import Measured
from nearcast.engine.noted_searches import HALF_LIFE, SAMPLED, joined, no_queries, open_searches
from nearcast.engine.samples import op_sample, own_sample
from nearcast.engine.settings import Settings
from nearcast.partitioning.partition import BY_POST
from nearcast.partitioning.query_statistics import Statistics
from nearcast.partitioning.router_sample import CKQ, CRQ, SKQ, SRQ, STQ
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import SEARCHES
from tests.engine.harness import NOON, ops_table, posts_tables, start, step
from tests.engine.oracle import Batch
from tests.engine.test_batches import post

HERE = "loc INSIDE RECT(-10, -10, 10, 10)"
RANGE = f"SELECT * FROM stream WHERE {HERE} AND text CONTAINS 'smoke' AND time AFTER '1 hour ago'"
NEAREST = "SELECT * FROM stream WHERE text CONTAINS 'ash' ORDER BY DISTANCE(loc, POINT(5, 6)) LIMIT 4"
TERMS = f"SELECT TopK(text, 3) FROM stream WHERE {HERE}"
HOUR = 3600 * 10**6
SETTINGS = Settings(workers=2, router="qt")


def asked(op: str, *texts: str) -> list[dict[str, Any]]:
    return [{"op": op, "id": f"{op}{number}", "sql": sql} for number, sql in enumerate(texts)]


def state_with(root: Path, batches: Sequence[list[dict[str, Any]]], settings: Settings = SETTINGS) -> BatchPlan:
    state = StateDirectory(root)
    start(state, settings, [{"id": 0, "ts": NOON, "lon": 0.0, "lat": 0.0, "text": "smoke"}, post(1, 1, "ash")])
    step(state, settings, Batch([], [post(2, 2, "smoke and ash")]))
    for ops in batches:
        step(state, settings, Batch(ops, []))
    return BatchPlan(str(root), state.newest(), settings, state.newest().batch)


def test_a_search_is_noted_with_its_type_place_words_and_window(tmp_path: Path) -> None:
    plan = state_with(tmp_path, [asked("search", RANGE, NEAREST, TERMS)])
    queries, weight = open_searches(plan)
    assert queries.type.tolist() == [SRQ, SKQ, STQ] and weight.tolist() == [1.0] * 3
    assert queries.boxes.tolist() == [[-10, -10, 10, 10], [5, 6, 5, 6], [-10, -10, 10, 10]]
    assert queries.life.tolist() == [HOUR, NEVER, NEVER] and queries.k.tolist() == [0, 4, 3]
    assert int(Tokenizer().terms(pa.array(["smoke"]))[0][0]) in queries.code[: queries.code_offsets[1]].tolist()
    own = own_sample(plan).queries
    assert own.type.tolist() == [SRQ, SKQ, STQ]


def test_statistics_have_probabilities_of_searches_and_of_subscriptions(tmp_path: Path) -> None:
    standing = asked(
        "subscribe", f"SELECT * FROM stream WHERE {HERE}", f"SELECT * FROM stream WHERE {HERE} FOR 2 HOURS"
    )
    plan = state_with(tmp_path, [standing, asked("search", RANGE, RANGE.replace("smoke", "ash"), TERMS)])
    j = Measured(plan).statistics
    assert j.totals[SRQ] == pytest.approx(2) and j.totals[STQ] == pytest.approx(1) and j.totals[SKQ] == 0
    assert j.totals[CRQ] == pytest.approx(2)
    assert j.mix[SRQ] == pytest.approx(0.4)
    known = j.keywords(SRQ, 0, 0, 0)
    assert sorted(known.tolist()) == [0.5, 0.5]


def test_searches_fade_and_only_the_last_batches_with_any_are_kept(tmp_path: Path) -> None:
    batches = [asked("search", RANGE)] * (KEPT + 3)
    plan = state_with(tmp_path, [*batches, *[[]] * (KEPT + 2)])
    assert len(plan.manifest.of(SEARCHES)) == KEPT, "batches without searches do not age them"
    _, weight = open_searches(plan)
    assert weight[-1] == 1.0 and weight[-1 - HALF_LIFE] == pytest.approx(0.5)
    assert (np.diff(weight) > 0).all()


def test_of_many_searches_some_are_noted_that_stand_for_all(tmp_path: Path) -> None:
    count = 2 * SAMPLED + 1
    plan = state_with(tmp_path, [[{"op": "search", "id": n, "sql": TERMS} for n in range(count)]])
    queries, weight = open_searches(plan)
    assert len(queries) <= SAMPLED and weight.sum() == pytest.approx(count)


def test_a_router_made_from_ops_knows_searches_too(tmp_path: Path) -> None:
    ops = ops_table([*asked("search", RANGE, NEAREST), *asked("subscribe", NEAREST), {"op": "delete", "id": "x"}])
    nothing = np.empty(0, np.uint64), np.empty(0, np.int64)
    assert op_sample(ops, Tokenizer(), nothing).type.tolist() == [SRQ, SKQ, CKQ]
    assert len(op_sample(None, Tokenizer(), nothing)) == len(joined([no_queries()])) == 0


def test_a_qt_tree_is_cut_by_words_where_searches_ask_for_them(tmp_path: Path) -> None:
    """All posts at one point, half with one word and half with another: only words can tell them apart."""
    posts = [{"id": n, "ts": NOON + n, "lon": 1.0, "lat": 1.0, "text": f"topic{n % 8}"} for n in range(400)]
    ops = [
        {"op": "search", "id": n, "sql": f"SELECT * FROM stream WHERE text CONTAINS 'topic{n % 8}'"} for n in range(40)
    ]
    state = StateDirectory(tmp_path)
    begin(state, SETTINGS, posts_tables(posts)[0][0], ops_table(ops))
    partition = BatchPlan(str(tmp_path), state.newest(), SETTINGS).router.partition
    assert (partition.kind == BY_POST).any() and len(partition.keywords)


def test_weights_change_the_mix_and_nothing_within_a_type() -> None:
    from tests.partitioning.routers.twin import make_sample

    sample = make_sample([(0.0, 0.0, [1]), (5.0, 5.0, [2])], [(SRQ, (0, 0, 1, 1), [[1]]), (CRQ, (0, 0, 9, 9), [[2]])])
    plain = Statistics.of(sample, depth=2)
    heavy = plain.weighted(np.array([3.0, 1, 1, 1, 1, 1]))
    assert heavy.mix[SRQ] == pytest.approx(0.75) and plain.mix[SRQ] == pytest.approx(0.5)
    for x in range(4):
        assert heavy.chances(2, x, x).tolist() == plain.chances(2, x, x).tolist()
