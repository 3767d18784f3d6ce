"""`--balance global` cut off at any write, link, removal or sync while two partitions stand side by side: the outbox
and the answers are those of a run that nobody balances and nothing cuts off.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nearcast.engine import rebalancing as balance
from nearcast.engine.settings import Settings
from nearcast.reader.current_answer import read_current
from nearcast.reader.reader import Reader
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import Manifest
from tests.engine.test_balance import check_kept
from tests.engine.test_crashes import SQL, Crash, crashing_at, outbox, stream

# batch   0   1     2   3     4   5        6   7     8       9
#         ops posts ops posts ops posts    ops posts ops     posts
#                                 ^ a second partition       ^ the end of it: nine old subscriptions are left
BEGINS, ENDS, UNTIL = 5, 8, 10
PLAIN = Settings(workers=3, router="kdt", balance="off")
GLOBAL = Settings(workers=3, router="kdt", balance="global", ratio=1.01)


@pytest.fixture(autouse=True)
def readily(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any new partition is worth it, and takes over though most of the subscriptions are old ones."""
    monkeypatch.setattr("nearcast.partitioning.balancers.text_cuts.repartition", lambda *_: True)
    monkeypatch.setattr(balance, "FEW", 0.9)


def told(state: StateDirectory) -> tuple[list[Any], ...]:
    """The outbox but for `seq`, which depends on who reports a pair, and answers of searches and of standing ones."""
    rows = outbox(state)
    assert sorted(row[1] for row in rows) == list(range(len(rows)))
    reader = Reader(state)
    current = [list(read_current(reader, name)) for name in ("n0", "n2", "n4", "r0", "r2", "r4")]
    found = sorted((row["id"], row["ts"]) for row in reader.search("SELECT * FROM stream"))
    return sorted((row[0], *row[2:]) for row in rows), current, found, [row["id"] for row in reader.search(SQL)]


class Stages:
    """The state before each batch of an undisturbed run, and what changes on the disk in each batch."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.state = StateDirectory(root / "whole")
        self.steps: dict[int, int] = {}
        self.commits: dict[int, int] = {}  # of adjustments: the step before
        stream(self.state, GLOBAL, BEGINS)
        commit = balance.commit
        for batch in range(BEGINS, ENDS + 1):
            shutil.copytree(self.state.root, self.before(batch))
            with crashing_at(0, monkeypatch) as count, monkeypatch.context() as patch:

                def noted(*args: Any, batch: int = batch, count: list[int] = count) -> Manifest:
                    self.commits[batch] = count[0]
                    return commit(*args)

                patch.setattr(balance, "commit", noted)
                stream(self.state, GLOBAL, batch + 1)
            self.steps[batch] = count[0]
        stream(self.state, GLOBAL, UNTIL)

    def before(self, batch: int) -> Path:
        return self.root / f"before{batch}"

    def cut_off(self, batch: int, step: int, monkeypatch: pytest.MonkeyPatch) -> StateDirectory:
        """The state of a run whose batch is cut off at this step, and goes on."""
        state = StateDirectory(self.root / "cut")
        shutil.rmtree(state.root, ignore_errors=True)
        shutil.copytree(self.before(batch), state.root)
        with crashing_at(step, monkeypatch), pytest.raises(Crash):
            stream(state, GLOBAL, batch + 1)
        stream(state, GLOBAL, UNTIL)
        return state


def compare(root: Path, monkeypatch: pytest.MonkeyPatch, some: Callable[[Stages], Iterable[tuple[int, int]]]) -> None:
    """Runs that are cut off, each in a batch and at a step of it, with one that nothing disturbs."""
    plain = StateDirectory(root / "plain")
    stream(plain, PLAIN, UNTIL)
    expected = told(plain)
    assert len(expected[0]) > 500 and plain.newest().counts["reports"] > 10
    stages = Stages(root, monkeypatch)
    assert list(stages.commits) == [BEGINS, ENDS] and stages.state.newest().adjustments[-1]["queries"] > 0
    assert told(stages.state) == expected
    for batch, step in some(stages):
        state = stages.cut_off(batch, step, monkeypatch)
        assert told(state) == expected, f"batch {batch} cut off at step {step}"
        check_kept(state, GLOBAL)


@pytest.mark.slow
def test_a_crash_about_the_commits_of_two_partitions_loses_nothing_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def about_commits(stages: Stages) -> Iterator[tuple[int, int]]:
        yield BEGINS, stages.commits[BEGINS] + 2
        yield BEGINS + 2, stages.steps[BEGINS + 2] // 2
        yield ENDS, stages.commits[ENDS]

    compare(tmp_path, monkeypatch, about_commits)


@pytest.mark.slow
def test_a_crash_at_any_step_beside_two_partitions_loses_nothing_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_over(stages: Stages) -> Iterator[tuple[int, int]]:
        """All steps of the adjustments; of the batches before and between them every seventh."""
        for batch, steps in stages.steps.items():
            adjusting = stages.commits.get(batch, steps) - 10
            yield from ((batch, step) for step in range(1, steps + 1) if step > adjusting or step % 7 == 0)

    compare(tmp_path, monkeypatch, all_over)
