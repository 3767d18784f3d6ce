"""What the two distributions hold: `nearcast` all that a user needs, and nothing of the papers' experiments."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = {"nearcast": ROOT / "src" / "nearcast", "nearcast_papers": ROOT / "papers" / "src" / "nearcast_papers"}
ROLES = {"__init__", "registry"}  # names of files that both may have

pytestmark = pytest.mark.skipif(find_spec("hatchling") is None, reason="hatchling, which builds the wheels, is missing")


def built(folder: Path, target: str, into: Path) -> Path:
    """A wheel or sdist by hatchling itself, which needs no network."""
    before = set(into.iterdir())
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into)],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (made,) = set(into.iterdir()) - before
    return made


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dist")


@pytest.fixture(scope="module")
def wheels(dist: Path) -> dict[str, Path]:
    return {"nearcast": built(ROOT, "wheel", dist), "nearcast_papers": built(ROOT / "papers", "wheel", dist)}


@pytest.fixture(scope="module")
def sdist(dist: Path) -> Path:
    return built(ROOT, "sdist", dist)


def names(wheel: Path) -> list[PurePosixPath]:
    with zipfile.ZipFile(wheel) as archive:
        return [PurePosixPath(name) for name in archive.namelist()]


def code(wheel: Path) -> set[str]:
    """The files of a wheel that are not about it."""
    return {str(path) for path in names(wheel) if not path.parts[0].endswith(".dist-info")}


def about(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (each for each in archive.namelist() if each.endswith(f".dist-info/{name}"))
        return archive.read(path).decode()


def metadata(wheel: Path) -> Message:
    return message_from_string(about(wheel, "METADATA"))


def sources(package: str) -> set[str]:
    folder = SOURCES[package]
    return {
        f"{package}/{path.relative_to(folder).as_posix()}"
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.parametrize("package", SOURCES)
def test_a_wheel_holds_its_package_whole_and_nothing_else(package: str, wheels: dict[str, Path]) -> None:
    assert code(wheels[package]) == sources(package)


def test_the_wheel_of_nearcast_holds_no_experiments_and_no_tests(wheels: dict[str, Path]) -> None:
    inside = names(wheels["nearcast"])
    assert {path.parts[0] for path in inside} == {"nearcast", f"nearcast-{version()}.dist-info"}
    folders = {part for path in inside for part in path.parts[:-1]}
    assert not folders & {"tests", "papers", "baselines", "benchmarks", "query_sets", "published", "nearcast_papers"}
    theirs = {path.stem for path in SOURCES["nearcast_papers"].rglob("*.py")} - ROLES
    assert theirs and not theirs & {path.stem for path in inside}


def test_no_class_of_the_papers_is_in_the_wheel_of_nearcast(wheels: dict[str, Path]) -> None:
    """The baselines by name, wherever they may have been left."""
    defined = re.compile(r"^class (\w+)", re.MULTILINE)
    theirs = {name for path in SOURCES["nearcast_papers"].rglob("*.py") for name in defined.findall(path.read_text())}
    assert {"OpIndex", "RpTrees", "MtIndex", "Kmax"} <= theirs
    with zipfile.ZipFile(wheels["nearcast"]) as archive:
        ours = {
            name
            for path in archive.namelist()
            if path.endswith(".py")
            for name in defined.findall(archive.read(path).decode())
        }
    assert not theirs & ours


def test_both_have_the_version_that_the_changelog_begins_with(wheels: dict[str, Path]) -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", changelog, re.MULTILINE)
    assert newest is not None and newest[1] == version()
    assert [metadata(wheel)["Version"] for wheel in wheels.values()] == [version()] * 2
    required = metadata(wheels["nearcast_papers"]).get_all("Requires-Dist", [])
    assert f"nearcast=={version()}" in required


def test_every_entry_point_of_the_papers_names_a_module_that_is_there(wheels: dict[str, Path]) -> None:
    said = about(wheels["nearcast_papers"], "entry_points.txt")
    modules = re.findall(r"^\S+ = ([\w.]+)", said, re.MULTILINE)
    files = {f"{module.replace('.', '/')}.py" for module in modules}
    assert len(files) > 5 and files <= code(wheels["nearcast_papers"])
    benchmarks = {path for path in code(wheels["nearcast_papers"]) if "/benchmarks/bench_" in path}
    assert benchmarks <= files


def test_the_command_is_installed(wheels: dict[str, Path]) -> None:
    assert "nearcast = nearcast.cli:main" in about(wheels["nearcast"], "entry_points.txt")


def test_a_wheel_that_is_built_from_the_sdist_is_the_same(sdist: Path, wheels: dict[str, Path], tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"} <= {path.name for path in unpacked.iterdir()}
    into = tmp_path / "wheel"
    into.mkdir()
    assert names(built(unpacked, "wheel", into)) == names(wheels["nearcast"])


def version() -> str:
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])
