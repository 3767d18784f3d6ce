"""The simplest source passes the suite: it is what is right for the others."""

from pathlib import Path

import pytest

from nearcast.common.schemes import Scheme
from nearcast.sources import registry
from tests.sources.conformance import Feed, MemoryFeed, SourceSuite


class TestMemorySource(SourceSuite):
    def feed(self, folder: Path) -> Feed:
        return MemoryFeed()

    def test_its_name_opens_it_again(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        feed = MemoryFeed()
        opener = Scheme("memory", lambda rest, context: feed.open())
        monkeypatch.setitem(registry.schemes(), "memory", opener)
        monkeypatch.setattr(self, "feed", lambda folder: feed)
        super().test_its_name_opens_it_again(tmp_path)
