"""`bench topk` at a tiny size: every part runs, and its figures make sense."""

from typing import Any

import pytest

from nearcast.bench import topk


@pytest.mark.slow
def test_one_core() -> None:
    parts = "dissemination,evaluation"
    given: dict[str, Any] = {
        "subscribers": 600,
        "window": 1500,
        "posts": 100,
        "batches": 2,
        "k": 5,
        "kmax": "12",
        "groups": "5",
    }
    figures = topk.run(print, parts=parts, **given)["figures"]
    ways = figures["dissemination"]  # which compares what they find
    assert {"batch", "igpt", "ipt", "ciq", "igpt, 5 groups"} < ways.keys() and ways["batch"]["found_a_post"] > 0
    kept = figures["evaluation"]
    sizes = {name: kept[name]["mean_buffer"] for name in ("cskyband", "kmax 12", "skyband 0.95", "skyband 1")}
    assert min(sizes.values()) > 3 and sizes["cskyband"] < sizes["kmax 12"]
    assert kept["ciq_kmax_to_skype"]["value"] > 0


@pytest.mark.slow
def test_the_pipeline_and_distributions() -> None:
    given: dict[str, Any] = {"subscribers": 300, "window": 600, "posts": 100, "batches": 2, "k": 5, "workers": "4"}
    figures = topk.run(print, parts="pipeline,distribution", **given)["figures"]
    assert figures["pipeline"]["batches"]["a_post"]["entered"] > 0
    assert figures["distribution"]["hashing 4"]["replication"] == 1.0
