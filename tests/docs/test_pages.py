"""Every block of every page does what the page says."""

from pathlib import Path

import pytest

from tests.docs.markdown import blocks, name_of, pages
from tests.docs.page_runner import Library

RUN = {"bash", "sql", "python"}


@pytest.mark.spark
@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_the_blocks_of_a_page_run_in_order(page: Path, library: Library) -> None:
    library.run(page)


def test_there_are_blocks_to_run() -> None:
    found = [block for page in pages() for block in blocks(page.read_text(encoding="utf-8"))]
    assert len([block for block in found if block.language in RUN and "not run" not in block.directives]) > 50
    assert len([block for block in found if block.language == "output"]) > 15
