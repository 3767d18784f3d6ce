"""Specs of sources: what stands for what, and what cannot stand."""

from pathlib import Path

import pytest

from nearcast.common.errors import BadInput
from nearcast.sources.protocol import OPS, POSTS, SourceContext
from nearcast.sources.registry import absolute, open_source, open_sources


def kinds(*specs: str, role: str = POSTS) -> list[str]:
    return [source.name.partition(":")[0] for source in open_sources(specs, SourceContext(role))]


def test_all_paths_are_one_source_and_ops_have_the_inbox(tmp_path: Path) -> None:
    (tmp_path / "a:b.jsonl").write_text("")
    assert kinds() == []
    assert kinds(str(tmp_path), f"files:{tmp_path / 'a:b.jsonl'}") == ["files"]
    assert kinds("world:seed=1") == ["world"]
    assert kinds(role=OPS) == kinds(str(tmp_path), role=OPS) == ["files"]


def test_another_source_stands_alone(tmp_path: Path) -> None:
    for specs in (["world", str(tmp_path)], ["world", "world:seed=2"]):
        with pytest.raises(BadInput, match="--posts world stands alone"):
            open_sources(specs, SourceContext())


def test_an_unknown_scheme_is_told_and_a_path_with_a_colon_is_a_path(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no source amqp: known are files, world"):
        open_source("amqp://host/queue", SourceContext())
    with pytest.raises(BadInput, match=r"a:b\.jsonl does not exist"):
        open_source("a:b.jsonl", SourceContext())


def test_specs_mean_the_same_in_any_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute(["posts", "files:more", "world:seed=1"]) == (
        str(tmp_path / "posts"), str(tmp_path / "more"), "world:seed=1",
    )  # fmt: skip
