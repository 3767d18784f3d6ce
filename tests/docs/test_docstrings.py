"""The examples of the public API run, over the state that the quickstart leaves."""

import doctest
from importlib import import_module

import pytest

from tests.docs.markdown import ROOT
from tests.docs.page_runner import Library

MODULES = {"nearcast": 1, "nearcast.reader.state": 5, "nearcast.reader.answer": 1}  # and how many have examples


@pytest.mark.spark
@pytest.mark.parametrize("name", list(MODULES))
def test_the_examples_of_a_module_run(name: str, library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(library.run(ROOT / "docs" / "quickstart.md"))
    module = import_module(name)
    found = [each for each in doctest.DocTestFinder().find(module) if each.examples]
    assert len(found) >= MODULES[name]
    failed = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).failed
    assert failed == 0
