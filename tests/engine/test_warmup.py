"""The first batches of a run find every kernel compiled: what the warm-up has not called, no one has compiled."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba.core.dispatcher

from nearcast.common.kinds import kind_named
from nearcast.engine import warmup
from nearcast.engine.begin import begin
from nearcast.engine.local import run_locally
from nearcast.engine.samples import sampled_posts
from nearcast.engine.settings import Inputs, Settings
from nearcast.sources.formats import whole_file
from nearcast.sources.op_records import read_ops
from nearcast.sources.records import normalise
from nearcast.sources.world import World
from nearcast.sources.world_source import world_spec
from nearcast.storage.directory import StateDirectory

RATE = 3000
FIELDS: dict[str, Any] = {"seed": 1, "start": 1_700_000_000_000_000, "rate": float(RATE)}


def warmed(folder: Path) -> None:
    warmup.subscriptions(folder)
    warmup.posts_and_words(folder)
    warmup.more_ops(folder)
    warmup.rest(folder)


def first_batches(folder: Path) -> None:
    """A world with subscriptions by region and words, as the demo has it."""
    world, state, settings = World(**FIELDS), StateDirectory(folder / "state"), Settings()
    begin(state, settings, lambda: sampled_posts(Inputs((world_spec(World(**FIELDS)),))))
    ops = [json.dumps({"op": "subscribe", "id": name, "sql": sql}) for name, sql in world.subscriptions(200)]
    (folder / "ops.jsonl").write_text("\n".join(ops) + "\n", encoding="utf-8")
    raw, rejects = read_ops(whole_file(str(folder / "ops.jsonl")))
    run_locally(state, settings, ops=raw, rejects=rejects)
    for first, count in ((0, RATE), (RATE, 4 * RATE)):
        half = count // 2
        manifest = run_locally(
            state, settings, posts=[normalise(world.posts(at, half))[0] for at in (first, first + half)]
        )
    assert manifest.next_seq > 0, "no results: the batches show nothing"


def warmed_for_reports(folder: Path) -> None:
    warmed(folder)
    warmup.standing(folder, kind_named("aggregates"))


def first_reports(folder: Path) -> None:
    """Standing aggregates, whose beats come several times in a batch and again in the next."""
    world, state, settings = World(**FIELDS), StateDirectory(folder / "state"), Settings()
    begin(state, settings, lambda: sampled_posts(Inputs((world_spec(World(**FIELDS)),))))
    texts = (
        "SELECT TopK(text, 5), weekday FROM stream GROUP BY weekday SYNC 1 second",
        "SELECT TopK(text, 3), Count(id), length FROM stream WHERE time AFTER '2 secs ago' GROUP BY length SYNC 1 sec",
        "SELECT Count(id), Avg(length), hour FROM stream WHERE text CONTAINS 'coffee' GROUP BY hour SYNC 1 second",
    )
    ops = [json.dumps({"op": "subscribe", "id": f"q{n}", "sql": sql}) for n, sql in enumerate(texts)]
    (folder / "ops.jsonl").write_text("\n".join(ops) + "\n", encoding="utf-8")
    raw, rejects = read_ops(whole_file(str(folder / "ops.jsonl")))
    run_locally(state, settings, ops=raw, rejects=rejects)
    for first in range(0, 9 * RATE, 3 * RATE):
        manifest = run_locally(state, settings, posts=[normalise(world.posts(first, 3 * RATE))[0]])
    assert manifest.next_seq > 10, "no reports: the batches show nothing"


def called() -> list[str]:
    """The kernels that this process has, each with the types it was called with."""
    return [
        f"{name}.{kernel.py_func.__name__}{types}"
        for name, module in sys.modules.items()
        if name.startswith("nearcast.") and ".kernels." in name
        for kernel in vars(module).values()
        if isinstance(kernel, numba.core.dispatcher.Dispatcher) and kernel.__module__ == name
        for types in kernel.overloads
    ]


def called_by(function: str, folder: Path) -> set[str]:
    """What a process of its own calls: this one has called more."""
    code = (
        "import json; from pathlib import Path; from tests.engine import test_warmup as t; "
        f"t.{function}(Path({str(folder)!r})); print(json.dumps(t.called()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_the_first_batches_of_range_subscriptions_call_no_kernel_that_the_warm_up_has_not_compiled(
    tmp_path: Path,
) -> None:
    (tmp_path / "warm").mkdir()
    ready = called_by("warmed", tmp_path / "warm")
    assert sorted(called_by("first_batches", tmp_path) - ready) == []


def test_the_first_reports_call_no_kernel_that_the_warm_up_has_not_compiled(tmp_path: Path) -> None:
    (tmp_path / "warm").mkdir()
    ready = called_by("warmed_for_reports", tmp_path / "warm")
    assert sorted(called_by("first_reports", tmp_path) - ready) == []
