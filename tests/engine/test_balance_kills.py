"""Real kills of a real run on Spark about the commits of adjustments. The outbox is that of a run without any."""

import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from nearcast.storage.directory import StateDirectory
from tests.engine.spark.test_kills import command, inputs, outbox, undisturbed, wait_for_batch

__all__ = ["inputs", "undisturbed"]  # fixtures

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark")]
BALANCED = ["--router", "agrid", "--workers", "3", "--balance", "shift"]


def test_killing_the_driver_about_an_adjustment_loses_nothing_and_doubles_nothing(
    inputs: Path, undisturbed: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    """The third batch of posts is the first after which leaves may change hands: batch 3, as the first has ops."""
    rng = random.Random(5)
    state = tmp_path / "state"
    arguments = [*command(inputs, state), *BALANCED]
    for batch in (2, 3):
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for_batch(state, batch, process)
        time.sleep(rng.random() * 0.3)
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = subprocess.run(arguments, timeout=300, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert StateDirectory(state).newest().adjustments
    assert outbox(state) == undisturbed
