"""Kinds of subscriptions that a run will meet are known before its first batch."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearcast.engine import kernel_forecast as forecast
from nearcast.engine.settings import Inputs
from nearcast.storage.directory import StateDirectory

PLACE = "loc INSIDE RECT(0, 0, 1, 1)"
RANGE = f"SELECT * FROM stream WHERE {PLACE} AND text CONTAINS 'sync OR distance OR relevance'"
NEAREST = "SELECT * FROM stream ORDER BY DISTANCE(loc, POINT(0, 50)) LIMIT 5"
TERMS = f"SELECT TopK(text, 5) FROM stream WHERE {PLACE} AND time AFTER '1 hour ago' sync 1 minute"
COUNT = f"SELECT Count(id) FROM stream WHERE {PLACE} GROUP BY weekday SYNC 1 minute"
RELEVANT = "SELECT * FROM stream ORDER BY relevance (POINT(0, 50), 'rain', 0.4) DESC LIMIT 5 WINDOW 9 POSTS"


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    directory = StateDirectory(tmp_path / "state")
    directory.create({})
    return directory


def written(path: Path, *texts: str) -> str:
    path.write_text("".join(json.dumps({"op": "subscribe", "id": sql, "sql": sql}) + "\n" for sql in texts), "utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("texts", "kinds"),
    [
        ([NEAREST], ["nearest"]),
        ([RANGE, TERMS], ["terms"]),
        ([COUNT], ["aggregates"]),
        ([RELEVANT, RANGE], ["relevance"]),
        ([NEAREST, COUNT, RELEVANT], ["aggregates", "nearest", "relevance"]),
    ],
)
def test_kinds_are_forecast_in_files_of_ops(
    state: StateDirectory, tmp_path: Path, texts: list[str], kinds: list[str]
) -> None:
    assert forecast.forecast(state, Inputs(ops=(written(tmp_path / "ops.jsonl", *texts),))) == kinds


def test_ranges_need_nothing_more(state: StateDirectory, tmp_path: Path) -> None:
    plain = f"SELECT * FROM stream WHERE {PLACE} AND text CONTAINS 'flood'"
    assert forecast.forecast(state, Inputs(ops=(written(tmp_path / "ops.jsonl", plain),))) == []
    assert forecast.forecast(state, Inputs()) == []


def test_what_waits_in_the_inbox_is_forecast(state: StateDirectory) -> None:
    state.add_to_inbox({"op": "subscribe", "id": "near", "sql": NEAREST})
    assert forecast.forecast(state, Inputs()) == ["nearest"]


@pytest.mark.parametrize(
    ("columns", "kinds"),
    [
        ({"k": [3], "lon": [0.0], "lat": [0.0]}, ["nearest"]),
        ({"window_seconds": [60.0], "sync_seconds": [60.0]}, ["terms"]),
        ({"k": [3], "lon": [0.0], "lat": [0.0], "alpha": [0.5], "words": ["rain"]}, ["nearest", "relevance"]),
        ({"text": ["rain"], "k": pa.nulls(1, pa.int64())}, []),
    ],
)
def test_columns_tell_of_subscriptions_in_bulk(
    state: StateDirectory, tmp_path: Path, columns: dict[str, Any], kinds: list[str]
) -> None:
    pq.write_table(pa.table({"id": [1], **columns}), tmp_path / "ops.parquet")
    assert forecast.forecast(state, Inputs(ops=(str(tmp_path / "ops.parquet"),))) == kinds


def test_a_file_that_cannot_be_read_hides_nothing_else(state: StateDirectory, tmp_path: Path) -> None:
    state.add_to_inbox({"op": "subscribe", "id": "near", "sql": NEAREST})
    assert forecast.forecast(state, Inputs(ops=(str(tmp_path / "nowhere"),))) == ["nearest"]


def test_what_is_compiled_is_not_compiled_again(state: StateDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    state.add_to_inbox({"op": "subscribe", "id": "near", "sql": NEAREST})
    state.add_to_inbox({"op": "subscribe", "id": "best", "sql": RELEVANT})
    monkeypatch.setattr(forecast, "is_warm_for", lambda kind: kind.name == "nearest")
    assert forecast.to_compile(state, Inputs()) == ["relevance"]
    monkeypatch.setattr(forecast, "is_warm_for", lambda _: True)
    assert forecast.to_compile(state, Inputs()) == []
