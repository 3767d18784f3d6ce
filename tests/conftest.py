"""What all tests share: the environment Spark and Numba start in, how hard Hypothesis tries, and the real data."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import nearcast  # noqa: F401  (chooses Numba's cache directory before any test imports Numba)

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

_patient = {"deadline": None, "print_blob": True, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", derandomize=True, max_examples=25, **_patient)
settings.register_profile("thorough", max_examples=1000, **_patient)
settings.load_profile("thorough" if os.environ.get("NEARCAST_THOROUGH") == "1" else "ci")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one file that call kernels directly stay together, so that only one process compiles what they need."""
    for item in items:
        if item.path.parent.name in ("bench", "cache", "index"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The directory of real data beside the checkout; tests that need it are skipped where it is missing."""
    path = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not path.is_dir():
        pytest.skip("no ../shared/data beside this checkout")
    return path
