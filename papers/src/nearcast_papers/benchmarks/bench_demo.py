"""How long a newcomer waits: from `nearcast demo` to its first result, with kernels compiled before or not."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nearcast.storage.directory import StateDirectory
from nearcast_papers.benchmarks.figures import Progress, figure
from nearcast_papers.benchmarks.machine import machine

SUMMARY = "seconds from nearcast demo to its first result"
AIM = 30  # seconds
PATIENCE = 600  # seconds, after which it counts as failed
LOOK = 0.05  # seconds between two looks


def run(
    progress: Progress, *, runs: int = 3, cold: bool = False, seed: int = 1, folder: str | None = None
) -> dict[str, Any]:
    """`runs` demos one after another. With `cold` each has an empty cache, so that its kernels are compiled first."""
    facts, taken = machine(), []
    for number in range(runs):
        with TemporaryDirectory(prefix="nearcast-bench-", dir=folder) as scratch:
            taken.append(first_result(Path(scratch), cold, seed))
        progress(f"demo: first result after {taken[-1]:.1f} s, {number + 1} of {runs}")
    figures = {"first_result_s": figure(taken, at_most=AIM)}
    return {
        "bench": "demo",
        "machine": facts,
        "parameters": {"runs": runs, "cold": cold, "seed": seed},
        "figures": figures,
    }


def first_result(folder: Path, cold: bool, seed: int) -> float:
    """Seconds from the start of the command until a committed batch has a result."""
    state = StateDirectory(folder / "state")
    command = [sys.executable, "-m", "nearcast", "demo", "--state", str(state.root), "--seed", str(seed)]
    began = time.perf_counter()
    demo = subprocess.Popen(
        command, env=environment(folder, cold), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while not (state.exists() and state.newest().next_seq):
            if demo.poll() is not None or time.perf_counter() > began + PATIENCE:
                raise RuntimeError("the demo ended without a result, or had none for ten minutes")
            time.sleep(LOOK)
        return time.perf_counter() - began
    finally:
        demo.send_signal(signal.SIGINT)
        demo.wait()


def environment(folder: Path, cold: bool) -> dict[str, str]:
    """That of this process; where it is to be cold, with a place of its own for compiled kernels."""
    if not cold:
        return dict(os.environ)
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    return kept | {"XDG_CACHE_HOME": str(folder / "cache")}
