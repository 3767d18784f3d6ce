import pytest

from tests.docs.page_runner import Library


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One process runs all pages, since some go on with what others leave."""
    for item in items:
        if item.path.parent.name == "docs":
            item.add_marker(pytest.mark.xdist_group("docs"))


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(tmp_path_factory.mktemp("pages"))
