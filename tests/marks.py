"""Parameters that only `make test-all` tries."""

from typing import Any

import pytest


def slow(*values: Any) -> list[Any]:
    """Values for `pytest.mark.parametrize`, of one parameter or (tuples) of several."""
    return [pytest.param(*(each if isinstance(each, tuple) else (each,)), marks=pytest.mark.slow) for each in values]
