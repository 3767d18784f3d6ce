from pathlib import Path

import pytest

from tests.reader.small_state import make_state


@pytest.fixture(scope="session")
def small_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_state(tmp_path_factory.mktemp("reader") / "state")
