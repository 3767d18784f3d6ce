"""What goes wrong is told in one clear message on stderr, with the exit code that says whose fault it was."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Said

Cli = Callable[..., Said]
SELECT = "SELECT * FROM stream"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["search", "--state", "MISSING", SELECT], "does not exist"),
        (["results", "--state", "MISSING"], "does not exist"),
        (["subscriptions", "--state", "MISSING"], "does not exist"),
        (["status", "--state", "EMPTY"], "is not a Nearcast state directory"),
        (["subscribe", "--state", "MISSING", SELECT], "does not exist"),
        (["unsubscribe", "--state", "MISSING", "q1"], "does not exist"),
        (["search", "--state", "STATE", SELECT, "--format", "xml"], "'xml' is not one of"),
        (["search", SELECT], "--state"),
        (["search", "--state", "STATE"], "SELECT"),
        (["serch"], "search"),
        (["results", "--state", "STATE", "--current"], "--query ID"),
        (["results", "--state", "STATE", "--query", "floods", "--current"], "no current answer"),
        (["results", "--state", "STATE", "--query", "nobody", "--current"], "nobody"),
        (["results", "--state", "STATE", "--follow", "--format", "csv"], "table or json"),
        (["subscribe", "--state", "STATE", "--id", " ", SELECT], "--id is empty"),
        (["subscribe", "--state", "STATE", "--ts", "soon", SELECT], "is not a time"),
        (["run", "--state", "NEW"], "nothing to read"),
        (["run", "--state", "NEW", "--posts", "MISSING"], "does not exist"),
        (["run", "--state", "NEW", "--posts", "world", "--queries", "MISSING"], "does not exist"),
        (["run", "--state", "NEW", "--posts", "README.odt"], "cannot tell the format"),
        (["run", "--state", "NEW", "--posts", "world", "--posts", "x"], "stands alone"),
        (["run", "--state", "NEW", "--posts", "world", "--until-drained"], "give it a count"),
        (["run", "--state", "NEW", "--posts", "world:rate=0"], "above 0"),
        (["run", "--state", "NEW", "--posts", "amqp://host/queue"], "there is no source amqp"),
        (["run", "--state", "NEW", "--queries", "world"], "give it to --posts"),
        (["run", "--state", "NEW", "--posts", "world", "--deliver", "amqp://host/queue"], "there is no sink amqp"),
        (["run", "--state", "NEW", "--posts", "world", "--deliver", "out", "--deliver", "out"], "given twice"),
        (["run", "--state", "NEW", "--posts", "world", "--retention", "a month"], "not a length of time"),
        (["run", "--state", "NEW", "--posts", "world", "--lateness", "none"], "not a length of time"),
        (["run", "--state", "NEW", "--posts", "world", "--router", "magic"], "there is no router"),
        (["run", "--state", "NEW", "--posts", "world", "--keep", "some"], "posts or none"),
        (["run", "--state", "NEW", "--posts", "world", "--index", "rtree"], "pyramid or gi2"),
        (["run", "--state", "NEW", "--posts", "world", "--memory", "lots"], "amount of memory"),
        (["run", "--state", "NEW", "--posts", "world", "--workers", "0"], "--workers"),
        (["run", "--state", "NEW", "--posts", "world", "--map", "when=x"], "no field when"),
        (["run", "--state", "STATE", "--posts", "world", "--index", "gi2"], "cannot change"),
        (["run", "--state", "STATE", "--posts", "world", "--keep-accents"], "cannot change"),
        (["demo", "--state", "STATE"], "give the demo a new directory"),
        (["bench", "no-such"], "there is no benchmark"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    nearcast: Cli, small_state: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "README.odt").write_text("x")
    places = {
        "MISSING": tmp_path / "missing", "EMPTY": tmp_path / "empty", "NEW": tmp_path / "new", "STATE": small_state,
        "README.odt": tmp_path / "README.odt",
    }  # fmt: skip
    said = nearcast(*(places.get(word, word) for word in words))
    assert (said.code, said.out) == (2, "")
    assert message in said.err
    assert said.err.startswith("nearcast: ") and len(said.err.strip().splitlines()) == 1
    assert not (tmp_path / "new").exists()


def test_an_error_in_a_query_points_at_the_word(nearcast: Cli, small_state: Path) -> None:
    said = nearcast("search", "--state", small_state, "SELECT * FROM stream WHERE text CONTAIN 'x'")
    lines = said.err.splitlines()
    assert said.code == 2
    assert lines[2].index("^") == lines[1].index("CONTAIN ")
    assert "did you mean CONTAINS?" in lines[3]


def test_a_state_of_another_version_is_refused(nearcast: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "manifest"
    folder.mkdir()
    (folder / "000000000000.json").write_text(json.dumps({"format": 99}))
    for command in (["status"], ["results"], ["search", SELECT]):
        said = nearcast(*command, "--state", tmp_path)
        assert said.code == 2 and "another version" in said.err and len(said.err.splitlines()) == 1


def test_an_error_that_nobody_foresaw_is_one_line_and_a_file(
    nearcast: Cli, small_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("oh\nno")

    monkeypatch.setattr("nearcast.reader.status.read_status", broken)
    said = nearcast("status", "--state", small_state)
    assert said.code == 1
    assert said.err.startswith("nearcast: internal error: ZeroDivisionError: oh, see ")
    log = Path(said.err.strip().rpartition(" ")[2])
    assert "Traceback" in log.read_text()
    log.unlink()


def test_a_reader_that_goes_away_is_no_error(small_state: Path) -> None:
    command = [sys.executable, "-c", "from nearcast.cli import main; main()", "results", "--state", str(small_state)]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "command",
    [
        "",
        "demo",
        "run",
        "search",
        "subscribe",
        "unsubscribe",
        "subscriptions",
        "results",
        "status",
        "bench",
        "region",
        "region add",
        "region list",
        "region remove",
    ],
)
def test_every_command_has_help(nearcast: Cli, command: str) -> None:
    said = nearcast(*command.split(), "--help")
    assert said.code == 0 and "Usage: nearcast" in said.out


def test_help_and_version_load_no_heavy_library() -> None:
    code = (
        "import sys; sys.argv = ['nearcast', '--version']\n"
        "from nearcast.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print([name for name in ('pyspark', 'numba', 'pyarrow', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_full_disk_is_told_in_one_line_and_leaves_nothing_half_written(
    nearcast: Cli, small_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = sorted(small_state.rglob("*"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        said = nearcast("subscribe", "--state", small_state, "--id", "q", SELECT)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("nearcast: the disk is full (") and said.err.count("\n") == 1
    assert sorted(small_state.rglob("*")) == before
