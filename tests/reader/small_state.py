"""A small state, made without Spark, that the tests of readers and of the command line look at.

batch 0  subscribe floods, coffee (id, text only), 17 (by columns)   start: the beginning
batch 1  posts 1, 2, "b" at 12:00, 12:01, 12:02
batch 2  unsubscribe coffee; subscribe later (ts 13:00); search s1
batch 3  post 4 at 12:03; two rejects
"""

from pathlib import Path
from typing import Any

import pyarrow as pa

from nearcast.common.post_schema import REJECTS
from nearcast.engine.begin import begin
from nearcast.engine.local import run_locally
from nearcast.engine.settings import Settings
from nearcast.sources.records import normalise
from nearcast.storage.directory import StateDirectory

NOON = 1_777_636_800_000_000  # 2026-05-01T12:00:00Z
MINUTE = 60_000_000
FLOODS = "SELECT * FROM stream WHERE loc INSIDE RECT(-75, 40, -73, 41) AND text CONTAINS 'flood'"
COFFEE = "SELECT id, text FROM stream WHERE text OVERLAPS 'coffee espresso'"
LATER = "SELECT * FROM stream WHERE text CONTAINS 'rain'"


def posts(*rows: tuple[int | str, int, str, dict[str, Any]]) -> pa.Table:
    records = [
        {"id": id_, "ts": (NOON + minute * MINUTE) // 1000, "lat": 40.5, "lon": -74.0, "text": text, **more}
        for id_, minute, text, more in rows
    ]
    tables = [normalise(pa.Table.from_pylist([record]))[0] for record in records]
    return pa.concat_tables(tables, promote_options="default").combine_chunks()


def ops(*rows: dict[str, Any]) -> pa.Table:
    names = ("op", "id", "id_text", "ts", "sql", "min_lon", "min_lat", "max_lon", "max_lat", "text")
    types = (pa.string(), pa.int64(), pa.string(), pa.int64(), pa.string(), *[pa.float64()] * 4, pa.string())
    full = [{"id": 0} | row for row in rows]
    return pa.table(
        {name: pa.array([row.get(name) for row in full], kind) for name, kind in zip(names, types, strict=True)}
    )


def make_state(root: Path) -> Path:
    state, settings = StateDirectory(root), Settings(workers=2)
    begin(state, settings, None)
    box = {"min_lon": -75.0, "min_lat": 40.0, "max_lon": -73.0, "max_lat": 41.0}
    run_locally(
        state,
        settings,
        ops=ops(
            {"op": "subscribe", "id": 1, "id_text": "floods", "sql": FLOODS},
            {"op": "subscribe", "id": 2, "id_text": "coffee", "sql": COFFEE},
            {"op": "subscribe", "id": 17, "text": "subway", **box},
        ),
    )
    first = posts(
        (1, 0, "flood in the subway", {"price": 3}),
        (2, 1, "espresso time", {}),
        ("b", 2, 'another flood, "they" said\nyes', {"tags": "x"}),
    )
    run_locally(state, settings, posts=[first])
    run_locally(
        state,
        settings,
        ops=ops(
            {"op": "unsubscribe", "id": 2, "id_text": "coffee"},
            {"op": "subscribe", "id": 3, "id_text": "later", "sql": LATER, "ts": NOON + 60 * MINUTE},
            {"op": "search", "id": 4, "id_text": "s1", "sql": "SELECT id FROM stream WHERE text CONTAINS 'flood'"},
        ),
    )
    rejects = pa.table([["broken JSON", "latitude out of range"], ["{", "{}"]], schema=REJECTS)
    run_locally(state, settings, posts=[posts((4, 3, "flood and coffee", {}))], rejects=rejects)
    return root
