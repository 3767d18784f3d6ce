"""Files and folders as a source: the suite, and what only files do: they are torn, replaced, shrunken, taken away."""

import gzip
import json
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.common.errors import BadInput
from nearcast.sources.file_source import FileSource, open_files
from nearcast.sources.protocol import OPS, POSTS, Source, SourceContext
from nearcast.storage.directory import StateDirectory
from tests.sources.conformance import Feed, Reading, SourceSuite, read, rows_of

FORMS = ("jsonl", "more", "parquet", "csv", "gz", "csv with newlines", "empty")


def line(id_: int) -> str:
    return json.dumps(rows_of([id_]).to_pylist()[0]) + "\n"


class FileFeed:
    """A folder in which files of every format appear, and the last one grows."""

    def __init__(self, folder: Path, role: str = POSTS) -> None:
        self.folder = folder / "in"
        self.folder.mkdir()
        self.context = SourceContext(role, folder / "state")
        StateDirectory(folder / "state").create({})
        self.ids = count()
        self.files = 0

    def open(self) -> Source:
        return open_files([str(self.folder)], self.context)

    def grow(self, count: int) -> list[int]:
        ids = [next(self.ids) for _ in range(count)]
        form = FORMS[self.files % len(FORMS)]
        self.files += 1
        if form == "more":  # of the file before, the last by name
            with open(self.folder / f"{self.files - 2:04d}.jsonl", "a") as out:
                out.write("".join(map(line, ids)))
        else:
            self.write(self.folder / f"{self.files - 1:04d}", form, ids)
        return ids

    def write(self, path: Path, form: str, ids: list[int]) -> None:
        text = "".join(map(line, ids))
        if form == "parquet":
            pq.write_table(rows_of(ids), path.with_suffix(".parquet"), row_group_size=7)
        elif form.startswith("csv"):
            body = '"a\nb"' if "newlines" in form else "wet"
            rows = (f"{id_},0,unsubscribe,1.0,2.0,{body}\n" for id_ in ids)
            path.with_suffix(".csv").write_text("id,ts,op,lat,lon,body\n" + "".join(rows))
        elif form == "gz":
            path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(text.encode()))
        elif form == "empty":
            path.with_suffix(".jsonl").write_text("")
            path.with_name(f"{path.name}-then.jsonl").write_text(text)
        else:
            path.with_suffix(".jsonl").write_text(text)


class TestFileSource(SourceSuite):
    def feed(self, folder: Path) -> Feed:
        return FileFeed(folder)


class TestFilesOfOps(SourceSuite):
    def feed(self, folder: Path) -> Feed:
        return FileFeed(folder, OPS)


class InboxFeed:
    """Nothing but what is left in a state's inbox."""

    def __init__(self, folder: Path) -> None:
        self.context = SourceContext(OPS, folder / "state")
        self.state = StateDirectory(folder / "state")
        self.state.create({})
        self.ids = count()

    def open(self) -> Source:
        return FileSource([], self.context)

    def grow(self, count: int) -> list[int]:
        ids = [next(self.ids) for _ in range(count)]
        for id_ in ids:  # as `add_to_inbox` does, but that waits for the disk
            path = self.state.inbox / f"{id_:020d}-{id_:012x}.jsonl"
            path.write_text(json.dumps({"op": "unsubscribe", "id": id_, "inbox_key": f"{id_:032x}"}) + "\n")
        return ids


class TestInbox(SourceSuite):
    def feed(self, folder: Path) -> Feed:
        return InboxFeed(folder)


# -- torn, half written, growing ---------------------------------------------------------------------------------------


#   written   {"id": 0}\n{"id": 1}\n{"id"   : 2}\n{"id": 3}\n …
#   read                           ^ waits              ^
@given(cuts=st.lists(st.integers(1, 600), min_size=1, max_size=8), ids=st.integers(1, 12), rows=st.integers(1, 20))
def test_a_line_that_is_written_in_pieces_is_read_once_and_whole(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], ids: int, rows: int
) -> None:
    feed = FileFeed(tmp_path_factory.mktemp("torn"))
    path = feed.folder / "growing.jsonl"
    path.write_text(line(-1))
    reading = Reading(feed)
    assert reading.batch(rows)
    text = "".join(map(line, range(ids))).encode()
    with open(path, "ab") as out:
        for piece in cuts:
            out.write(text[:piece])
            out.flush()
            text = text[piece:]
            reading.batch(rows)
        out.write(text)
    assert reading.drain() == [-1, *range(ids)]


def test_a_file_that_is_not_whole_yet_waits_and_is_an_error_when_there_is_no_later(tmp_path: Path) -> None:
    feed = FileFeed(tmp_path)
    right = feed.grow(4)
    pq.write_table(rows_of([7, 8]), tmp_path / "whole.parquet")
    half = feed.folder / "9999.parquet"
    half.write_bytes((tmp_path / "whole.parquet").read_bytes()[:100])
    reading = Reading(feed)
    assert reading.batch(100) and reading.batches == [right] and not reading.batch(100)
    with pytest.raises(BadInput, match=r"9999\.parquet"):
        reading.batch(100, drain=True)
    (tmp_path / "whole.parquet").rename(half)
    assert reading.drain() == [*right, 7, 8]


def test_a_file_that_was_replaced_is_new_and_what_was_not_read_of_the_old_one_is_told(tmp_path: Path) -> None:
    feed = FileFeed(tmp_path)
    path = feed.folder / "a.jsonl"
    path.write_text("".join(map(line, range(5))))
    reading = Reading(feed)
    assert reading.batch(100)
    path.write_text("".join(map(line, range(50, 55))))
    assert reading.drain() == [*range(5), *range(50, 55)]
    with pytest.raises(BadInput, match="no longer the file that was given"):
        read(reading.source, reading.positions[0], reading.positions[1])


@pytest.mark.parametrize(("damage", "message"), [("shrink", "has shrunk"), ("unlink", "is missing")])
def test_a_file_that_shrank_or_went_before_it_was_read_is_told(tmp_path: Path, damage: str, message: str) -> None:
    feed = FileFeed(tmp_path)
    path = feed.folder / "a.jsonl"
    path.write_text("".join(map(line, range(5))))
    source = feed.open()
    stop = source.limit(source.beginning())
    if damage == "shrink":
        path.write_text(line(0))
    else:
        path.unlink()
    with pytest.raises(BadInput, match=message):
        source.splits(source.beginning(), stop, 1)


def test_files_of_another_run_go_on_from_where_the_first_ended(tmp_path: Path) -> None:
    feed = FileFeed(tmp_path)
    right = feed.grow(5)
    reading = Reading(feed)
    assert reading.drain() == right
    other = tmp_path / "other.parquet"
    pq.write_table(rows_of([77]), other)
    reading.source = open_files([str(other)], feed.context)
    assert reading.drain() == [*right, 77]


def test_names_of_fields_are_mapped_and_csv_keeps_texts(tmp_path: Path) -> None:
    StateDirectory(tmp_path / "state").create({})
    (tmp_path / "a.csv").write_text("id,when,lat,lon,comments\n007,2026-05-01,1,2,5\n")
    mapping = {"ts": "when", "text": "comments"}
    source = open_files([str(tmp_path / "a.csv")], SourceContext(POSTS, tmp_path / "state", mapping))
    (split,) = source.splits(0, source.limit(0), 1)
    (raw,) = split.read()
    assert {name: raw.table[name].type for name in ("when", "comments")} == {
        "when": pa.string(),
        "comments": pa.string(),
    }


@pytest.mark.parametrize(("name", "message"), [("nowhere", "does not exist"), ("a.odt", "cannot tell the format")])
def test_what_cannot_be_read_is_told_when_it_is_opened(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "a.odt").write_text("hello")
    with pytest.raises(BadInput, match=message):
        open_files([str(tmp_path / name)], SourceContext())


def test_a_folder_without_data_is_odd(tmp_path: Path) -> None:
    assert "no file there ends in .parquet" in (open_files([str(tmp_path)], SourceContext()).advice() or "")
    assert open_files([], SourceContext(OPS, tmp_path)).advice() is None
