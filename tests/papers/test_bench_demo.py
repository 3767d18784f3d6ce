"""The benchmark of the first result."""

from pathlib import Path

import pytest

from nearcast_papers.benchmarks import bench_demo


def test_a_cold_demo_has_a_cache_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/kept")
    assert bench_demo.environment(tmp_path, cold=False)["NUMBA_CACHE_DIR"] == "/kept"
    cold = bench_demo.environment(tmp_path, cold=True)
    assert "NUMBA_CACHE_DIR" not in cold and Path(cold["XDG_CACHE_HOME"]).is_relative_to(tmp_path)


def test_a_demo_that_ends_without_a_result_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_demo.sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="without a result"):
        bench_demo.first_result(tmp_path, cold=False, seed=1)


@pytest.mark.spark
@pytest.mark.slow
def test_seconds_to_the_first_result(tmp_path: Path) -> None:
    done = bench_demo.run(lambda text: None, runs=1, folder=str(tmp_path))
    assert done["figures"]["first_result_s"]["median"] > 0
    assert not list(tmp_path.iterdir())
