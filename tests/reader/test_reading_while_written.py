"""Readers and a writer at once: every answer is that of one committed batch, whatever is merged and swept meanwhile."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

import nearcast
from nearcast.common.errors import NearcastError
from nearcast.engine.begin import begin
from nearcast.engine.local import run_locally
from nearcast.engine.settings import Settings
from nearcast.reader.reader import Reader
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import POSTS
from nearcast.storage.sweep import sweep
from tests.marks import slow
from tests.reader.small_state import posts

EACH = 5
QUESTIONS = {
    "range": ("SELECT id FROM stream WHERE text CONTAINS 'flood'", lambda rows: len(rows)),
    "nearest": ("SELECT id FROM stream ORDER BY DISTANCE(loc, POINT(0, 0)) LIMIT 10000", lambda rows: len(rows)),
    "terms": ("SELECT TopK(text, 1) FROM stream", lambda rows: rows[0]["count"]),
}


def batch(number: int) -> list:
    rows = [(number * EACH + i, number, f"flood {number}", {"price": i}) for i in range(EACH)]
    return [posts(*rows)]


@pytest.mark.parametrize("question", ["range", *slow("nearest", "terms")])
def test_every_answer_is_that_of_a_committed_batch(tmp_path: Path, question: str) -> None:
    state, settings = StateDirectory(tmp_path / "state"), Settings(workers=1)
    begin(state, settings, None)
    run_locally(state, settings, posts=batch(0))
    opened, done = nearcast.open(state.root), Event()
    sql, size = QUESTIONS[question]

    def read() -> list[int]:
        sizes = []
        while not done.is_set():
            sizes.append(size(list(opened.search(sql))))
        return sizes

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        try:
            for number in range(1, 20):
                run_locally(state, settings, posts=batch(number))
                sweep(state, grace=0.0)  # no mercy: readers must take the newest manifest and try again
        finally:
            done.set()
        for reader in readers:
            sizes = reader.result()
            assert sizes == sorted(sizes) and all(n % EACH == 0 and 0 < n <= 20 * EACH for n in sizes)
    assert size(list(opened.search(sql))) == 20 * EACH


def test_an_answer_can_be_read_after_its_files_are_gone(tmp_path: Path) -> None:
    state, settings = StateDirectory(tmp_path / "state"), Settings(workers=1)
    begin(state, settings, None)
    run_locally(state, settings, posts=batch(0))
    found = nearcast.open(state.root).search("SELECT * FROM stream")
    for ref in state.newest().of(POSTS):
        for path in state.path(ref.name).parent.glob("*"):
            path.unlink()
    assert [row["price"] for row in found] == [0, 1, 2, 3, 4]
    with pytest.raises(NearcastError, match="missing"):
        nearcast.open(state.root).search("SELECT * FROM stream")


def test_a_reader_of_an_old_manifest_goes_on_seeing_it(tmp_path: Path) -> None:
    state, settings = StateDirectory(tmp_path / "state"), Settings(workers=1)
    begin(state, settings, None)
    run_locally(state, settings, posts=batch(0))
    old = Reader(state)
    run_locally(state, settings, posts=batch(1))
    assert len(old.search("SELECT id FROM stream")) == EACH
    assert len(Reader(state).search("SELECT id FROM stream")) == 2 * EACH
