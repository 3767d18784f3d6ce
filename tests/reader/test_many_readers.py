"""Several processes search while a writer streams, merges, deletes, archives: each answer is right for its batch."""

import multiprocessing
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import nearcast
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine.begin import begin
from nearcast.engine.local import run_locally
from nearcast.engine.settings import Settings
from nearcast.language import parse
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import ARCHIVE
from nearcast.storage.sweep import sweep
from tests.oracles.searches import nearest_rows, range_rows, term_counts

READERS = 8 if os.environ.get("NEARCAST_THOROUGH") else 3
BATCHES, A_BATCH = 40, 60
HOUR = 3_600_000_000
WORDS = ("flood", "coffee", "rain", "train", "music")
SEARCHES = (
    "SELECT * FROM stream WHERE loc INSIDE RECT(-20, -20, 20, 20) AND text CONTAINS 'flood OR coffee'",
    "SELECT * FROM stream WHERE text CONTAINS 'rain' ORDER BY DISTANCE(loc, POINT(1, 2)) LIMIT 5",
    "SELECT TopK(text, 3) FROM stream WHERE loc INSIDE CIRCLE(0, 0, 3000 km)",
)


def batch_of(number: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(number)
    return [
        {
            "id": number * A_BATCH + i, "ts": number * HOUR + i, "lon": float(rng.uniform(-40, 40)),
            "lat": float(rng.uniform(-40, 40)), "text": " ".join(rng.choice(WORDS, 2, replace=False)),
        }
        for i in range(A_BATCH)
    ]  # fmt: skip


def deleted_by(number: int) -> int | None:
    """The post that goes with batch `number`, before its posts are read."""
    return (number - 3) * A_BATCH + number % 7 if number % 5 == 4 else None


def as_table(posts: list[dict[str, Any]]) -> pa.Table:
    table = pa.Table.from_pylist(posts)
    return table.add_column(1, "id_text", pa.nulls(len(table), pa.string()))


def read_along(root: str, looked: Any, out: Any) -> None:
    """Search until the writer's last batch is seen; tell (batch, search, answer) of each. `looked` is released after
    every look at the state.
    """
    state = nearcast.open(root)
    found, last = [], False
    while not last:
        for number, sql in enumerate(SEARCHES):
            answer = state.search(sql)
            rows = list(answer)
            shown = [(row["term"], row["count"]) for row in rows] if number == 2 else [row["id"] for row in rows]
            found.append((answer.batch, number, shown))
        looked.release()
        last = found[-1][0] >= last_batch()
    out.put(found)


def last_batch() -> int:
    return sum(2 if deleted_by(number) is not None else 1 for number in range(BATCHES)) - 1


def test_every_answer_is_the_oracles_on_the_batch_it_names(tmp_path: Path) -> None:
    state, settings = StateDirectory(tmp_path / "state"), Settings(workers=2, retention=20 * HOUR, slot=5 * HOUR)
    begin(state, settings, as_table(batch_of(0)))
    context = multiprocessing.get_context("spawn")
    looked, out = context.Semaphore(0), context.Queue()
    readers = [context.Process(target=read_along, args=(str(state.root), looked, out)) for _ in range(READERS)]
    for reader in readers:
        reader.start()
    for _ in readers:  # by then most of them have loaded what they need
        looked.acquire()
    after: dict[int, list[dict[str, Any]]] = {-1: []}  # what each committed batch holds
    posts: list[dict[str, Any]] = []
    for number in range(BATCHES):
        gone = deleted_by(number)
        if gone is not None:
            ops = {"op": ["delete"], "id": [gone], "id_text": pa.nulls(1, pa.string())}
            nulls = {"ts": pa.nulls(1, pa.int64()), "sql": pa.nulls(1, pa.string())}
            manifest = run_locally(state, settings, ops=pa.table({**ops, **nulls}))
            posts = [post for post in posts if post["id"] != gone]
            after[manifest.batch] = list(posts)
        manifest = run_locally(state, settings, posts=[as_table(batch_of(number))])
        posts += batch_of(number)
        after[manifest.batch] = list(posts)
        sweep(state)
        while looked.acquire(block=False):  # what they have looked at so far
            pass
        looked.acquire(timeout=10)
    assert manifest.batch == last_batch() and manifest.counts["merges"] > 3 and manifest.of(ARCHIVE)

    tokenizer, seen = Tokenizer(), set()
    answers: dict[tuple[int, int], Any] = {}
    for _ in readers:
        for batch, number, shown in out.get(timeout=120):
            seen.add(batch)
            if (batch, number) not in answers:
                query, clock = parse(SEARCHES[number], tokenizer).query, max((p["ts"] for p in after[batch]), default=0)
                oracle = (range_rows, nearest_rows, term_counts)[number]
                rows = oracle(after[batch], query, clock, tokenizer)  # type: ignore[operator]
                answers[batch, number] = rows if number == 2 else [row["id"] for row in rows]
            assert shown == [tuple(r) if number == 2 else r for r in answers[batch, number]], (batch, SEARCHES[number])
    for reader in readers:
        reader.join()
    assert len(seen) > 10
