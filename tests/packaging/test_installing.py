"""`pip install nearcast` is all that a user needs: from the sdist into an empty environment, and the demo runs."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.packaging.test_distributions import ROOT, built

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
    """(whether it went well, what it said), with nothing of the repository's environment."""
    kept = ("PATH", "LANG", "JAVA_HOME", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE", "PIP_CERT")
    bare = {name: os.environ[name] for name in kept if name in os.environ}
    bare |= {"HOME": os.environ.get("HOME", str(home)), "XDG_CACHE_HOME": str(home / "cache")}
    ran = subprocess.run(command, cwd=home, env=bare, capture_output=True, text=True)
    return ran.returncode == 0, ran.stdout + ran.stderr


def nearcast(home: Path, *words: str) -> tuple[bool, str]:
    return done([str(home / "venv" / "bin" / "nearcast"), *words], home)


def test_the_demo_runs_and_its_state_can_be_searched(home: Path) -> None:
    well, said = nearcast(home, "demo", "--state", str(home / "state"), "--seconds", "5")
    assert well, said
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
