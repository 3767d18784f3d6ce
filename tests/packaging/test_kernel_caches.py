"""Caches of compiled kernels: one for each version of a package, and old ones go when a new one is made."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nearcast import _env

USE = "import sys; sys.path.insert(0, {!r}); import _env; _env.configure(); print(_env.os.environ['NUMBA_CACHE_DIR'])"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where the caches of a test are."""
    return tmp_path / "cache"


def package(folder: Path, kernel: str) -> Path:
    """A package whose one kernel is of a version, where the earlier version of it lay."""
    shutil.rmtree(folder / "package", ignore_errors=True)
    kernels = folder / "package" / "kernels"
    kernels.mkdir(parents=True)
    (kernels / "sums.py").write_text(f"# {kernel}\n")
    shutil.copy(Path(_env.__file__), folder / "package" / "_env.py")
    return folder / "package"


def environment(home: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(home), "PATH": os.environ["PATH"]}


def used(package: Path, home: Path) -> Path:
    """The cache that a process of a package uses, with something in it."""
    done = subprocess.run(
        [sys.executable, "-c", USE.format(str(package))], env=environment(home), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (Path(done.stdout.strip()) / "compiled.nbc").touch()
    return Path(done.stdout.strip())


@contextmanager
def running(code: str, env: dict[str, str]) -> Iterator[str]:
    """A process that goes on after it has printed a line."""
    with subprocess.Popen(
        [sys.executable, "-c", code + "; sys.stdout.flush(); sys.stdin.read()"],
        env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate()


def caches(home: Path) -> set[Path]:
    return set((home / "nearcast").iterdir())


def let_days_pass(cache: Path, days: float) -> None:
    then = time.time() - days * 86400
    for path in (*cache.rglob("*"), cache):
        os.utime(path, (then, then))


def test_the_cache_of_an_earlier_version_goes_when_the_new_one_makes_its_own(tmp_path: Path, home: Path) -> None:
    old = used(package(tmp_path, "one"), home)
    new = used(package(tmp_path, "two"), home)
    assert old != new
    assert caches(home) == {new}


def test_the_cache_of_a_package_that_was_uninstalled_goes(tmp_path: Path, home: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    used(package(tmp_path / "one", "a"), home)
    shutil.rmtree(tmp_path / "one" / "package")
    new = used(package(tmp_path / "two", "a"), home)
    assert caches(home) == {new}


def test_two_checkouts_keep_their_caches(tmp_path: Path, home: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    kept = {used(package(tmp_path / name, "a"), home) for name in ("one", "two")}
    assert len(kept) == 2
    assert caches(home) == kept


def test_a_version_that_was_used_before_keeps_its_cache_and_signs_it_again(tmp_path: Path, home: Path) -> None:
    made = package(tmp_path, "one")
    cache = used(made, home)
    let_days_pass(cache, 100)
    assert used(made, home) == cache
    assert (cache / _env.MARKER).stat().st_mtime > time.time() - 3600
    assert (cache / "compiled.nbc").exists()


def test_a_cache_in_use_stays_until_nobody_uses_it(tmp_path: Path, home: Path) -> None:
    code = USE.format(str(package(tmp_path, "one")))
    with running(code, environment(home)) as old:
        second = used(package(tmp_path, "two"), home)
        assert caches(home) == {Path(old), second}
    third = used(package(tmp_path, "three"), home)
    assert caches(home) == {third}


def test_a_process_that_was_started_by_one_in_use_holds_the_cache_too(tmp_path: Path, home: Path) -> None:
    made = package(tmp_path, "one")
    old = used(made, home)
    inherited = environment(home) | {"NUMBA_CACHE_DIR": str(old)}
    with running(USE.format(str(made)), inherited) as same:
        assert Path(same) == old
        new = used(package(tmp_path, "two"), home)
        assert caches(home) == {old, new}


def test_a_cache_whose_package_lies_elsewhere_by_the_same_path_goes_only_when_long_unused(
    tmp_path: Path, home: Path
) -> None:
    """As of another container, which shares the user's directory."""
    foreign = used(package(tmp_path, "one"), home)
    (foreign / _env.MARKER).write_text(f"{tmp_path / 'package'}\n0 0\n")
    second = used(package(tmp_path, "two"), home)
    assert caches(home) == {foreign, second}
    let_days_pass(foreign, _env.UNUSED_DAYS + 1)
    third = used(package(tmp_path, "three"), home)
    assert caches(home) == {third}


def test_a_cache_without_a_marker_goes_only_when_long_unused(tmp_path: Path, home: Path) -> None:
    old, newer = (home / "nearcast" / f"numba-{name}" for name in ("old", "newer"))
    for cache, days in ((old, _env.UNUSED_DAYS + 1), (newer, _env.UNUSED_DAYS - 1)):
        cache.mkdir(parents=True)
        (cache / "compiled.nbc").touch()
        let_days_pass(cache, days)
    new = used(package(tmp_path, "one"), home)
    assert caches(home) == {newer, new}


def test_what_a_killed_process_left_half_removed_goes_with_the_next(tmp_path: Path, home: Path) -> None:
    half = home / "nearcast" / f"{_env.REMOVED}numba-old-1"
    half.mkdir(parents=True)
    new = used(package(tmp_path, "one"), home)
    assert caches(home) == {new}


def test_other_files_in_the_cache_directory_stay(tmp_path: Path, home: Path) -> None:
    other = home / "nearcast" / "something"
    other.mkdir(parents=True)
    let_days_pass(other, 1000)
    used(package(tmp_path, "one"), home)
    assert other.exists()


def test_many_processes_of_two_versions_at_once_leave_each_its_cache(tmp_path: Path, home: Path) -> None:
    """Whoever makes a new cache removes others: none may lose the one it has just got."""
    old = used(package(tmp_path, "old"), home)
    (tmp_path / "two").mkdir()
    made = [package(tmp_path, "one"), package(tmp_path / "two", "two")]
    code = (
        USE
        + "; sys.stdout.flush(); import os; sys.stdin.read(); print(os.path.exists(_env.os.environ['NUMBA_CACHE_DIR']))"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code.format(str(made[number % 2]))],
            env=environment(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for number in range(8)
    ]  # fmt: skip
    said = [process.communicate()[0].split() for process in processes]
    assert all(there == "True" for _, there in said)
    assert {Path(cache) for cache, _ in said} == caches(home)
    assert old not in caches(home) and len(caches(home)) == 2
