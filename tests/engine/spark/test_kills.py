"""Real kills of a real run on Spark: the driver, a Python worker, a task. The outbox is that of an undisturbed run."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearcast.engine.begin import begin
from nearcast.engine.local import run_locally
from nearcast.engine.samples import sampled_ops
from nearcast.engine.settings import Inputs, Settings
from nearcast.reader.results import read_results
from nearcast.sources.records import normalise
from nearcast.sources.world import World
from nearcast.storage.directory import StateDirectory

POSTS, BATCH = 30_000, 3_000

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

COUNTS = "SELECT Count(id), length FROM stream WHERE time AFTER '3 seconds ago' GROUP BY length SYNC 1 second"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files of posts, and subscriptions."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "posts").mkdir()
    world = World(seed=3)
    for part in range(3):
        pq.write_table(world.posts(part * POSTS // 3, POSTS // 3), folder / "posts" / f"{part}.parquet")
    ops = [{"op": "subscribe", "id": name, "sql": sql} for name, sql in world.subscriptions(60)]
    ops.append({"op": "subscribe", "id": "all", "sql": "SELECT id FROM stream WHERE text CONTAINS 'NOT zzz'"})
    ops.append({"op": "subscribe", "id": "counts", "sql": COUNTS})
    ops.append({"op": "subscribe", "id": "totals", "sql": "SELECT Count(id), Max(length) FROM stream SYNC 1 second"})
    (folder / "ops.jsonl").write_text("".join(json.dumps(op) + "\n" for op in ops))
    return folder


def command(inputs: Path, state: Path) -> list[str]:
    return [
        sys.executable, "-m", "nearcast.cli", "run", "--state", str(state), "--until-drained",
        "--posts", str(inputs / "posts"), "--queries", str(inputs / "ops.jsonl"), "--batch-posts", str(BATCH),
    ]  # fmt: skip


def outbox(state: Path) -> list[tuple[Any, ...]]:
    """Everything but `seq` and `batch`, sorted: how a batch is cut may differ after a crash, its results may not."""
    return sorted(
        (str(row["query_id"]), row.get("post_id", -1), row.get("ts", row.get("window_end")), str(row.get("rows")))
        for row in read_results(StateDirectory(state))
    )


@pytest.fixture(scope="module")
def undisturbed(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Any, ...]]:
    """Of the same batches without Spark."""
    root = tmp_path_factory.mktemp("undisturbed") / "state"
    state, settings = StateDirectory(root), Settings(workers=2)
    tables = [pq.read_table(path) for path in sorted((inputs / "posts").iterdir())]
    posts, ops = normalise(pa.concat_tables(tables))[0], sampled_ops(Inputs(ops=(str(inputs / "ops.jsonl"),)))
    begin(state, settings, posts.slice(0, BATCH), ops)
    run_locally(state, settings, ops=ops)
    for at in range(0, POSTS, BATCH):
        run_locally(state, settings, posts=[posts.slice(at, BATCH)])
    expected = outbox(root)
    assert len({post for query, post, *_ in expected if query == "all"}) == POSTS
    assert {"counts", "totals"} <= {query for query, *_ in expected}
    return expected


def python_workers(driver: psutil.Process) -> list[psutil.Process]:
    """The processes that Spark's Python daemon has forked to work in."""

    def runs_python_for_spark(process: psutil.Process | None) -> bool:
        return process is not None and "pyspark.worker" in process.cmdline()

    found = []
    for process in driver.children(recursive=True):
        with contextlib.suppress(psutil.Error):  # the JVM's short-lived children come and go
            if runs_python_for_spark(process) and runs_python_for_spark(process.parent()):
                found.append(process)
    return found


def wait_for_batch(state: Path, batch: int, process: subprocess.Popen[bytes]) -> None:
    directory = StateDirectory(state)
    while process.poll() is None and (not directory.exists() or directory.newest().batch < batch):
        time.sleep(0.02)


def kill_driver(inputs: Path, state: Path, after: int, pause: float) -> None:
    process = subprocess.Popen(command(inputs, state), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for_batch(state, after, process)
    time.sleep(pause)
    process.send_signal(signal.SIGKILL)
    process.wait()


def finish(inputs: Path, state: Path) -> None:
    done = subprocess.run(command(inputs, state), timeout=300, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]


def test_killing_the_driver_loses_nothing_and_doubles_nothing(
    inputs: Path, undisturbed: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    rng = random.Random(7)
    kills = 6 if os.environ.get("NEARCAST_THOROUGH") else 1
    for kill in range(kills):
        kill_driver(inputs, tmp_path / "state", kill * 2 - 1 if kill else 3, rng.random() * 0.6)
    finish(inputs, tmp_path / "state")
    assert outbox(tmp_path / "state") == undisturbed


@pytest.mark.slow
def test_killing_python_workers_loses_nothing_and_doubles_nothing(
    inputs: Path, undisturbed: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    state = tmp_path / "state"
    process = subprocess.Popen(command(inputs, state), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    killed = 0
    for batch in (1, 3, 5):
        wait_for_batch(state, batch, process)
        for worker in python_workers(psutil.Process(process.pid))[-1:]:
            worker.kill()
            killed += 1
    assert process.wait(timeout=300) == 0 and killed >= 2
    assert outbox(state) == undisturbed


@pytest.mark.slow
def test_a_second_run_goes_on_does_nothing_or_refuses_in_one_line(
    inputs: Path, undisturbed: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    state = tmp_path / "state"
    finish(inputs, state)
    version = StateDirectory(state).newest().version
    finish(inputs, state)  # the same files: nothing
    assert StateDirectory(state).newest().version == version and outbox(state) == undisturbed
    more = tmp_path / "more"
    more.mkdir()
    pq.write_table(World(seed=3).posts(POSTS, 500), more / "9.parquet")
    arguments = command(inputs, state)
    arguments[arguments.index("--posts") + 1] = str(more)
    subprocess.run(arguments, check=True, timeout=300, capture_output=True)
    assert len(outbox(state)) > len(undisturbed)
    checkpoint = state / "checkpoint"
    checkpoint.rename(tmp_path / "elsewhere")
    refused = subprocess.run(command(inputs, state), timeout=300, capture_output=True, check=False)
    assert refused.returncode == 2
    assert [line for line in refused.stderr.decode().splitlines() if "checkpoint is missing" in line]
    assert "Traceback" not in refused.stderr.decode()
