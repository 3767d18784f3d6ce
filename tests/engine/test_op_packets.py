"""Every worker hears of every op, and gets the whole of those that concern it."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nearcast.common.op_schema import NEVER, OPS, RANGE, SEARCH, SUBSCRIBE
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine import packets as kinds
from nearcast.engine.batch import BatchPlan
from nearcast.engine.begin import begin
from nearcast.engine.op_encoding import encode_ops, file_ops
from nearcast.engine.op_packets import HEAD, HOME, KEEPS, OpShare, pack_ops, unpack_ops
from nearcast.engine.op_resolution import resolve
from nearcast.engine.settings import Settings
from nearcast.kinds.nearest.nearest_filing import newest_only
from nearcast.sources.op_records import normalise_ops
from nearcast.sources.raw import Raw, reject_table
from nearcast.storage.directory import StateDirectory
from nearcast.storage.subscriptions.rows import packed_order
from nearcast.storage.subscriptions.subscription_set import EndLog, SubscriptionSet
from nearcast.storage.term_table import frequencies

WEST, EAST = "loc INSIDE RECT(-170, 40, -169.9, 40.1)", "loc INSIDE RECT(160, -80, 170, 80)"
NEAREST = "SELECT * FROM stream WHERE text CONTAINS 'tea' ORDER BY DISTANCE(loc, POINT(1, 2)) LIMIT 3"
RELEVANT = "SELECT * FROM stream ORDER BY RELEVANCE(POINT(0, 5), 'tea rain', 0.4) DESC LIMIT 5 WINDOW 9 POSTS"
RECORDS: list[dict[str, Any]] = [
    {"op": "subscribe", "sql": f"SELECT * FROM stream WHERE {WEST} AND text CONTAINS 'tea OR rain AND NOT sun'"},
    {"op": "subscribe", "sql": f"SELECT * FROM stream WHERE {EAST} FOR 1 hour"},
    {"op": "subscribe", "sql": "SELECT * FROM stream WHERE loc INSIDE CIRCLE(170, 0, 50 km) AND likes > 3"},
    {"op": "subscribe", "sql": "SELECT * FROM stream WHERE text CONTAINS 'flood'"},
    {"op": "subscribe", "sql": NEAREST},
    {"op": "subscribe", "sql": "SELECT Count(id), weekday FROM stream GROUP BY weekday SYNC 1 minute"},
    {"op": "subscribe", "sql": RELEVANT},
    {"op": "search", "sql": f"SELECT * FROM stream WHERE {WEST} AND time AFTER '1 hour ago'"},
    {"op": "unsubscribe", "ts": 1_600_000_000},
    {"op": "delete"},
]  # fmt: skip


def encoded(records: list[dict[str, Any]]) -> pa.Table:
    filled = [{"ts": None, "sql": None, **record} for record in records]
    table = pa.Table.from_pylist(
        filled, pa.schema([("op", pa.string()), ("id", pa.int64()), ("ts", pa.int64()), ("sql", pa.string())])
    )
    raw, refused = normalise_ops(Raw(table, reject_table([], []), lambda rows: ["" for _ in rows]))
    ops, rejects = encode_ops(raw, Tokenizer())
    assert not len(refused) and not len(rejects), (refused.to_pylist(), rejects.to_pylist())
    return file_ops(ops, frequencies([]))


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[int, BatchPlan]:
    made = {}
    for workers in (1, 2, 11):
        state = StateDirectory(tmp_path_factory.mktemp("state") / str(workers))
        begin(state, chosen := Settings(workers=workers))
        made[workers] = BatchPlan(str(state.root), state.newest(), chosen, 1)
    return made


def sent(plan: BatchPlan, splits: list[pa.Table]) -> list[tuple[pa.Table, OpShare]]:
    """What each worker gets of ops that came in some splits, in pieces of two, whose packets arrive last first."""
    inboxes: list[list[bytes]] = [[] for _ in range(plan.settings.workers)]
    for order, ops in enumerate(splits):
        for piece, first in enumerate(range(0, len(ops), 2)):
            for worker, packet in pack_ops(plan, ops.slice(first, 2), order, piece):
                inboxes[worker].insert(0, packet)
    got = []
    for worker, inbox in enumerate(inboxes):
        tables = kinds.unpack(inbox)
        got.append(unpack_ops(tables[kinds.OPS], tables.get(kinds.QUERIES), worker))
    return got


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(st.sampled_from(RECORDS), min_size=1, max_size=6), min_size=1, max_size=3),
    st.sampled_from([1, 2, 11]),
)
def test_heads_come_to_all_and_queries_to_those_they_concern(
    plans: dict[int, BatchPlan], split: list[list[dict[str, Any]]], workers: int
) -> None:
    numbered = iter(range(100))
    splits = [encoded([{**record, "id": next(numbered)} for record in part]) for part in split]
    ops, plan = pa.concat_tables(splits), plans[workers]
    rows = ops.to_pylist()
    homes = np.zeros(len(rows), np.int64)
    for worker, (heads, share) in enumerate(sent(plan, splits)):
        assert heads.to_pylist() == [{name: row[name] for name in HEAD} for row in rows]
        got = dict(zip(share.places.tolist(), share.ops.to_pylist(), strict=True))
        for at, row in enumerate(rows):
            if row["op"] == SUBSCRIBE and row["asks"] == RANGE:
                new = resolve(ops.slice(at, 1), SubscriptionSet({}, EndLog.empty()), None, 0).rows
                keepers, home = plan.keepers(new)
                wanted = bool(keepers[0, worker])
                assert not wanted or share.roles[share.places == at] & KEEPS
                assert (bool((share.roles[share.places == at] & HOME).any())) == (home[0] == worker)
                homes[at] += home[0] == worker
            else:
                wanted = row["op"] == SUBSCRIBE or (row["op"] == SEARCH and worker == 0)
            assert (at in got) == wanted
            if wanted:
                lists = {name: got[at][name] or [] for name in ("shape", "code", "words", "scoring")}
                assert {**got[at], **lists} == row
    assert all(n == 1 for n, row in zip(homes, rows, strict=True) if row["op"] == SUBSCRIBE and row["asks"] == RANGE)


def test_columns_that_say_nothing_do_not_travel(plans: dict[int, BatchPlan]) -> None:
    ops = encoded([{"op": "subscribe", "id": 1, "sql": RECORDS[3]["sql"]}]).set_column(
        4, "sql", pa.nulls(1, pa.string())
    )
    (_, head), (_, query) = pack_ops(plans[1], ops, 0)
    assert kinds.unpack([head])[kinds.OPS].column_names == ["op", "id", "digest", "to0"]
    assert kinds.unpack([query])[kinds.QUERIES].column_names == ["op", "id", "digest", "code", "role"]
    assert unpack_ops(kinds.unpack([head])[kinds.OPS], None, 0)[0]["life"].to_pylist() == [NEVER]


def test_one_to_the_nearest_that_its_batch_replaces_is_told_also_where_the_later_query_does_not_come(
    plans: dict[int, BatchPlan],
) -> None:
    """Time: nearest 7, range 7 (kept by one worker), and a nearest 8 that stays."""
    texts = [(7, NEAREST), (7, RECORDS[0]["sql"]), (8, NEAREST)]
    ops = encoded([{"op": "subscribe", "id": id_, "sql": sql} for id_, sql in texts])
    got = sent(plans[2], [ops])
    assert sorted(len(share.ops) for _, share in got) == [2, 3]
    for heads, share in got:
        resolved = resolve(heads, SubscriptionSet({}, EndLog.empty()), None, 100, share)
        assert resolved.replaced.tolist() == [100]
        assert newest_only(resolved).seq.tolist() == [102]
        assert resolved.ends.seq.tolist() == [100]
        assert resolved.counts["replaced"] == 1


@pytest.mark.parametrize("count", [0, 1, 2, 3, 1000, 1025])
def test_a_packed_order_is_that_of_the_highest_bits(count: int) -> None:
    codes = np.random.default_rng(count).integers(0, 2**64, count, dtype=np.uint64)
    codes[: count // 2] &= np.uint64(2**64 - 2**50)
    room = max(count - 1, 0).bit_length()
    assert packed_order(codes).tolist() == sorted(range(count), key=lambda row: (int(codes[row]) >> room, row))


def test_an_empty_table_of_ops_sends_nothing(plans: dict[int, BatchPlan], tmp_path: Path) -> None:
    assert list(pack_ops(plans[2], OPS.empty_table(), 0)) == []
