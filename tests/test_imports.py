"""What the import contract in pyproject.toml cannot say: what importing does, and that kernels use nothing else."""

import ast
import os
import runpy
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import nearcast
from nearcast import _env

PACKAGE = Path(nearcast.__file__).parent
KERNEL_LIBRARIES = {"numpy", "numba", "llvmlite", "math", "__future__", "typing"}  # llvmlite is how Numba is extended


def python(code: str, **environment: str) -> str:
    """What a fresh interpreter prints, with only `environment` added to a bare one."""
    bare = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG", "TMPDIR"}}
    done = subprocess.run([sys.executable, "-c", code], env=bare | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def imports_of(file: Path) -> set[str]:
    """The absolute names of the modules that a file imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add("." if node.level else node.module or "")
    return names


def test_importing_nearcast_loads_no_heavy_library() -> None:
    libraries = "pyspark py4j numba numpy pyarrow pandas scipy shapely matplotlib typer rich lark"
    heavy = tuple(libraries.split())
    loaded = python(f"import sys, nearcast; print([name for name in {heavy} if name in sys.modules])")
    assert loaded == "[]"


def test_kernels_import_only_numpy_and_numba() -> None:
    files = sorted(file for file in PACKAGE.rglob("*.py") if file.parent.name == "kernels")
    assert files
    foreign = {
        f"{file.relative_to(PACKAGE)}: {name}"
        for file in files
        for name in imports_of(file)
        if name.split(".")[0] not in KERNEL_LIBRARIES and ".kernels." not in f"{name}."
    }
    assert foreign == set()


PRINT = "import os, nearcast; print(os.environ[{!r}])"


def test_compiled_code_is_kept_in_the_users_cache_directory(tmp_path: Path) -> None:
    kept = python(PRINT.format("NUMBA_CACHE_DIR"), XDG_CACHE_HOME=str(tmp_path))
    assert kept.startswith(str(tmp_path / "nearcast" / "numba-"))
    assert Path(kept).is_dir()


def test_without_an_xdg_directory_compiled_code_is_kept_under_the_home(tmp_path: Path) -> None:
    kept = python(PRINT.format("NUMBA_CACHE_DIR"), HOME=str(tmp_path), XDG_CACHE_HOME="relative")
    assert kept.startswith(str(tmp_path / ".cache" / "nearcast" / "numba-"))


def test_a_cache_directory_that_cannot_be_written_is_replaced_by_a_private_one_that_stays_the_same(
    tmp_path: Path,
) -> None:
    blocked, temporary = tmp_path / "file", tmp_path / "tmp"
    blocked.write_text("not a directory")
    temporary.mkdir()
    kept = [
        python(PRINT.format("NUMBA_CACHE_DIR"), XDG_CACHE_HOME=str(blocked), TMPDIR=str(temporary)) for _ in range(2)
    ]
    assert kept[0] == kept[1]
    assert Path(kept[0]).parent == temporary
    assert stat.S_IMODE(Path(kept[0]).stat().st_mode) == 0o700


def test_a_temporary_cache_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    blocked, temporary = tmp_path / "file", tmp_path / "tmp"
    blocked.write_text("not a directory")
    planted = temporary / f"nearcast-numba-{os.getuid()}-{_env._kernels(_env.PACKAGE)}"
    planted.mkdir(parents=True)
    planted.chmod(0o777)
    kept = python(PRINT.format("NUMBA_CACHE_DIR"), XDG_CACHE_HOME=str(blocked), TMPDIR=str(temporary))
    assert Path(kept) != planted
    assert stat.S_IMODE(Path(kept).stat().st_mode) == 0o700


def test_two_checkouts_of_the_same_kernels_have_caches_of_their_own(tmp_path: Path) -> None:
    """Numba keeps code by the place of its source: what one has compiled is of no use to the other."""
    digests = []
    for name in ("one", "other", "one"):
        (tmp_path / name / "kernels").mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "kernels" / "sums.py").write_text("def add(a, b): return a + b\n")
        copy = shutil.copy(PACKAGE / "_env.py", tmp_path / name)
        digests.append(runpy.run_path(str(copy))["_kernels"](str(tmp_path / name)))
    assert digests[0] == digests[2] != digests[1]


@pytest.mark.parametrize("name", ["NUMBA_CACHE_DIR", "PYSPARK_PYTHON"])
def test_what_the_user_has_set_stays(name: str) -> None:
    assert python(PRINT.format(name), **{name: "/chosen"}) == "/chosen"


def test_spark_starts_the_python_that_runs_nearcast() -> None:
    assert python(PRINT.format("PYSPARK_PYTHON")) == sys.executable
