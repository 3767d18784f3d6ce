"""Results as the documentation reads them: saved, and read again."""

from pathlib import Path
from typing import Any

import pytest

from nearcast.cli.bench_results import save
from nearcast_papers.published.saved_result import SavedResult


def saved_and_read(result: dict[str, Any], folder: Path) -> SavedResult:
    """A result of a benchmark by way of its file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        path = save(result, result["bench"], [], {}, "saved").absolute()
    found = SavedResult.read(path)
    path.unlink()
    path.parent.rmdir()
    path.parent.parent.rmdir()
    return found
