from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from nearcast.cli import main
from tests.reader.small_state import make_state


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


@pytest.fixture
def nearcast(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Run a command line in this process."""

    def run(*arguments: object) -> Said:
        with pytest.raises(SystemExit) as leaving:
            main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Said(int(leaving.value.code or 0), said.out, said.err)

    return run


@pytest.fixture(scope="session")
def small_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_state(tmp_path_factory.mktemp("cli") / "state")
