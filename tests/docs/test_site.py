"""The site builds, strictly: no link leads nowhere, and every name of the API is there."""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT

pytestmark = pytest.mark.skipif(find_spec("zensical") is None, reason="no zensical: make setup installs it")


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    zensical = Path(sys.executable).with_name("zensical")
    command = [str(zensical), "build", "--strict", "--clean"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


def copy(folder: Path) -> Path:
    """What the site is made from, apart from the checkout, so that nothing is left in it."""
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    (folder / "src").symlink_to(ROOT / "src")
    return folder


def test_the_site_builds_strictly(tmp_path: Path) -> None:
    done = build(copy(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {
        path.relative_to(tmp_path / "docs").with_suffix("").as_posix() for path in (tmp_path / "docs").rglob("*.md")
    }
    made = {path.parent.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("index.html")}
    assert {"." if page == "index" else page for page in pages} <= made
    assert "State.search" in (tmp_path / "site" / "python" / "index.html").read_text(encoding="utf-8")


def test_a_link_that_leads_nowhere_breaks_the_build(tmp_path: Path) -> None:
    with (copy(tmp_path) / "docs" / "glossary.md").open("a", encoding="utf-8") as page:
        page.write("\n[nowhere](nowhere.md)\n")
    assert build(tmp_path).returncode != 0


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if page not in navigation] == []
