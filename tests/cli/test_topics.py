"""`nearcast topics`: a model from files of posts, and what is in it. No Spark."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Said

Cli = Callable[..., Said]


def posts_file(folder: Path) -> Path:
    path = folder / "posts.jsonl"
    themes = ("river", "coffee", "goal", "stage")
    lines = []
    for n in range(400):
        words = " ".join(f"{themes[n % 4]}{(n // 4 * 7 + i * 3) % 12}" for i in range(5))
        lines.append(json.dumps({"id": n, "ts": 1_700_000_000_000 + n, "lat": 0, "lon": 0, "said": words}))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_model_is_trained_with_progress_and_shown(nearcast: Cli, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    out = tmp_path / "topics.npz"
    options = ("--topics", 4, "--passes", 10, "--map", "text=said", "--out", out)
    said = nearcast("topics", "train", "--posts", posts_file(tmp_path), *options)
    assert said.code == 0 and not said.out
    assert "learning: 10 of 10" in said.err and "4 topics, 48 words" in said.err.replace("\n", " ")
    shown = nearcast("topics", "show", out, "--words", 3, "--format", "json")
    rows = [json.loads(line) for line in shown.out.splitlines()]
    assert [row["topic"] for row in rows] == [0, 1, 2, 3]
    assert all(len(row["words"].split()) == 3 for row in rows)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("train", "--posts", "nowhere", "--out", "x.npz"), "does not exist"),
        (("train", "--posts", "world:count=10", "--out", "no/such/folder/x.npz"), "there is no folder"),
        (("train", "--posts", "world:count=10", "--topics", "1", "--out", "x.npz"), "--topics"),
        (("show", "nowhere.npz"), "is not there"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    arguments: tuple[str, ...], said: str, nearcast: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = nearcast("topics", *arguments)
    assert told.code == 2 and said in told.err and len(told.err.strip().splitlines()) == 1
