"""`pip install nearcast` is all that a user needs: from the sdist into an empty environment, and the demo runs."""

import os
import signal
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest

from nearcast.storage.directory import StateDirectory
from tests.packaging.test_distributions import ROOT, built

PATIENCE = 900  # seconds, in which a slow machine has compiled the kernels

pytestmark = [pytest.mark.slow, pytest.mark.spark]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place outside the repository, with an environment that has only Nearcast in it."""
    home = tmp_path_factory.mktemp("home")
    python = home / "venv" / "bin" / "python"
    venv.create(home / "venv", with_pip=True)
    if not done([str(python), "-m", "pip", "download", "-q", "--no-deps", "--retries", "0", "hatchling"], home)[0]:
        pytest.skip("no package registry can be reached")
    sdist = built(ROOT, "sdist", home)
    well, said = done([str(python), "-m", "pip", "install", "-q", str(sdist)], home)
    assert well, said
    return home


def done(command: list[str], home: Path) -> tuple[bool, str]:
    """(whether it went well, what it said)."""
    ran = subprocess.run(command, cwd=home, env=bare(home), capture_output=True, text=True)
    return ran.returncode == 0, ran.stdout + ran.stderr


def bare(home: Path) -> dict[str, str]:
    """An environment with nothing of the repository's."""
    kept = ("PATH", "LANG", "JAVA_HOME", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE", "PIP_CERT")
    found = {name: os.environ[name] for name in kept if name in os.environ}
    return found | {"HOME": os.environ.get("HOME", str(home)), "XDG_CACHE_HOME": str(home / "cache")}


def nearcast(home: Path, *words: str) -> tuple[bool, str]:
    return done([str(home / "venv" / "bin" / "nearcast"), *words], home)


def demo_until_its_first_results(home: Path) -> None:
    state, began = StateDirectory(home / "state"), time.monotonic()
    command = [str(home / "venv" / "bin" / "nearcast"), "demo", "--state", str(state.root)]
    with (home / "said").open("w") as said:
        demo = subprocess.Popen(command, cwd=home, env=bare(home), stdout=said, stderr=said)
        try:
            while not (state.exists() and state.newest().next_seq):
                assert demo.poll() is None and time.monotonic() < began + PATIENCE, (home / "said").read_text()
                time.sleep(0.2)
        finally:
            demo.send_signal(signal.SIGINT)
            demo.wait()


def test_the_demo_runs_and_its_state_can_be_searched(home: Path) -> None:
    demo_until_its_first_results(home)
    well, said = nearcast(home, "results", "--state", str(home / "state"), "--format", "json")
    assert well and said.count('"kind"') > 0, said
    well, said = nearcast(home, "search", "--state", str(home / "state"), "SELECT * FROM stream LIMIT 3")
    assert well and "3" in said, said


def test_bench_says_in_one_line_how_to_get_the_benchmarks(home: Path) -> None:
    well, said = nearcast(home, "bench")
    assert not well
    assert said.strip() == "nearcast: no benchmarks are installed here: pip install nearcast-papers brings them"


def test_nothing_comes_from_the_repository(home: Path) -> None:
    python = str(home / "venv" / "bin" / "python")
    well, said = done([python, "-c", "import nearcast; print(nearcast.__file__)"], home)
    assert well and Path(said.strip()).is_relative_to(home)
    assert Path(sys.prefix) not in Path(said.strip()).parents
