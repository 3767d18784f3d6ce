"""The log of files: positions that mean the same for ever, whatever is given, appended, torn or taken away."""

import json
import os
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.errors import BadInput, NearcastError
from nearcast.sources.file_log import FileLog
from nearcast.sources.formats import read_split


def line(i: int) -> str:
    return json.dumps({"id": i, "ts": 0, "lat": 1, "lon": 2, "text": "x" * (i % 50)}) + "\n"


def write_lines(path: Path, ids) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line(i) for i in ids))
    return path


def write_parquet(path: Path, ids) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    ids = list(ids)
    zeros = [0.0] * len(ids)
    pq.write_table(pa.table({"id": ids, "ts": [0] * len(ids), "lat": zeros, "lon": zeros}), path)
    return path


def read(log: FileLog, start=0, stop=None, parts=3) -> list[int]:
    splits = log.splits(start, log.total if stop is None else stop, parts)
    return [i for split in splits for posts, _ in read_split(split) for i in posts["id"].to_pylist()]


def test_a_new_log_is_empty_and_keeps_its_identity(tmp_path):
    log = FileLog(tmp_path / "state", "posts")
    assert (log.total, log.entries, log.splits(0, 0, 4)) == (0, [], [])
    assert FileLog(tmp_path / "state", "posts").uuid == log.uuid
    assert FileLog(tmp_path / "state", "ops").uuid != log.uuid


def test_files_are_appended_in_the_order_given_and_positions_add_up(tmp_path):
    a, b = write_lines(tmp_path / "a.jsonl", range(5)), write_parquet(tmp_path / "b.parquet", range(5, 9))
    log = FileLog(tmp_path, "posts")
    assert log.extend([str(b)]) == 1 and log.total == 4
    assert log.extend([str(a)]) == 1 and log.total == 4 + a.stat().st_size
    assert read(log) == [5, 6, 7, 8, 0, 1, 2, 3, 4]
    again = FileLog(tmp_path, "posts")
    assert (again.total, again.entries) == (log.total, log.entries)


def test_the_same_content_again_adds_nothing_under_any_name(tmp_path):
    a = write_lines(tmp_path / "in/a.jsonl", range(5))
    log = FileLog(tmp_path, "posts")
    log.extend([str(a)])
    copy = tmp_path / "in/copy.ndjson"
    copy.write_bytes(a.read_bytes())
    assert log.extend([str(a), str(copy), str(tmp_path / "in")]) == 0
    assert FileLog(tmp_path, "posts").extend([str(tmp_path / "in")]) == 0


def test_a_folder_is_its_data_files_sorted_without_hidden_and_temporary_ones(tmp_path):
    folder = tmp_path / "in"
    for i, name in enumerate(
        ["b.jsonl", "a/z.jsonl", "c.jsonl", ".d.jsonl", "_temporary/e.jsonl", "f.txt", "_SUCCESS"]
    ):
        write_lines(folder / name, [i])
    log = FileLog(tmp_path, "posts")
    assert log.extend([str(folder)]) == 3
    assert read(log) == [1, 0, 2]


def test_relative_paths_are_kept_absolute(tmp_path, monkeypatch):
    write_lines(tmp_path / "a.jsonl", [1])
    monkeypatch.chdir(tmp_path)
    log = FileLog(tmp_path, "posts")
    log.extend(["a.jsonl"])
    monkeypatch.chdir("/")
    assert read(log) == [1]


@pytest.mark.parametrize(
    ("name", "message"), [("no.jsonl", "does not exist"), ("x.txt", r"known endings are \.parquet")]
)
def test_a_path_that_cannot_be_used_is_bad_input(tmp_path, name, message):
    (tmp_path / "x.txt").write_text("hello")
    with pytest.raises(BadInput, match=message):
        FileLog(tmp_path, "posts").extend([str(tmp_path / name)])


def test_an_unreadable_file_is_bad_input_every_time(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"hello")
    log = FileLog(tmp_path, "posts")
    for _ in range(2):
        with pytest.raises(BadInput, match="cannot read"):
            log.extend([str(tmp_path / "x.parquet")])


# --- growing files


def test_a_grown_file_adds_only_its_new_lines(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", range(3))
    log = FileLog(tmp_path, "posts")
    log.extend([str(path)])
    before = log.total
    with open(path, "a") as stream:
        stream.write(line(3) + line(4))
    assert log.extend([str(path)]) == 1
    assert read(log, before) == [3, 4]
    assert read(log, 0, before) == [0, 1, 2]
    assert FileLog(tmp_path, "posts").extend([str(path)]) == 0


#   file     0 1 2|3 4 5{"id|
#   extend        ^     ^        the torn line waits, then counts once
def test_a_torn_last_line_of_a_growing_file_waits_for_its_newline(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", range(3))
    log = FileLog(tmp_path, "posts")
    log.extend([str(path)])
    torn = line(6)
    with open(path, "a") as stream:
        stream.write(line(3) + line(4) + line(5) + torn[:7])
    assert log.extend([str(path)]) == 1
    assert read(log) == [0, 1, 2, 3, 4, 5]
    assert log.extend([str(path)]) == 0
    with open(path, "a") as stream:
        stream.write(torn[7:-1])  # whole, though its newline is still missing
    assert log.extend([str(path)]) == 1
    with open(path, "a") as stream:
        stream.write("\n" + line(7))
    assert log.extend([str(path)]) == 1
    assert read(log) == list(range(8))


def test_whether_a_file_is_growing_can_be_said(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(line(0) + line(1)[:9])
    live, settled = FileLog(tmp_path, "live"), FileLog(tmp_path, "settled")
    live.extend([str(path)], growing=True)
    settled.extend([str(path)])
    assert live.total == len(line(0)) and settled.total == path.stat().st_size
    assert live.extend([str(path)], growing=False) == 1 and live.total == settled.total


def test_what_was_read_once_reads_the_same_after_the_file_has_grown(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(line(0) + line(1)[:9])
    log = FileLog(tmp_path, "posts")
    log.extend([str(path)])
    splits = log.splits(0, log.total, 1)
    before = [refused.to_pylist() for _, refused in read_split(splits[0])]
    path.write_text(line(0) + line(1) + line(2))
    log.extend([str(path)])
    assert [refused.to_pylist() for _, refused in read_split(splits[0])] == before
    assert read(log) == [0, 2]


def test_a_known_path_with_other_content_is_a_new_file(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", range(3))
    log = FileLog(tmp_path, "posts")
    log.extend([str(path)])
    before = log.total
    write_lines(path, range(10, 14))
    assert log.extend([str(path)]) == 1
    assert read(log, before) == [10, 11, 12, 13]
    with pytest.raises(BadInput, match="no longer the file that was given"):
        log.splits(0, before, 1)


def test_an_empty_file_counts_once_it_has_lines(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", [])
    log = FileLog(tmp_path, "posts")
    assert log.extend([str(path)]) == 0
    write_lines(path, [1])
    assert log.extend([str(path)]) == 1 and read(log) == [1]


def test_a_missing_or_shrunk_file_is_bad_input_when_it_is_needed(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", range(3))
    log = FileLog(tmp_path, "posts")
    log.extend([str(path)])
    path.write_text(line(0))
    with pytest.raises(BadInput, match="has shrunk"):
        log.splits(0, log.total, 1)
    path.unlink()
    with pytest.raises(BadInput, match="is missing"):
        log.splits(0, log.total, 1)


# --- durability


def test_a_torn_entry_is_cut_off_by_the_writer_and_taken_in_again(tmp_path):
    a, b = write_lines(tmp_path / "a.jsonl", range(3)), write_lines(tmp_path / "b.jsonl", range(3, 6))
    log = FileLog(tmp_path / "state", "posts")
    log.extend([str(a)])
    whole = log.file.read_bytes()
    log.extend([str(b)])
    full = log.file.read_bytes()
    for length in range(len(whole), len(full)):
        log.file.write_bytes(full[:length])
        reader = FileLog(tmp_path / "state", "posts", read_only=True)
        assert reader.entries == log.entries[:1] and log.file.stat().st_size == length
        writer = FileLog(tmp_path / "state", "posts")
        assert log.file.read_bytes() == whole
        if length % 40 == 0:
            assert writer.extend([str(a), str(b)]) == 1
            assert log.file.read_bytes() == full


def test_a_write_that_fails_leaves_the_log_as_it_was(tmp_path, monkeypatch):
    a = write_lines(tmp_path / "a.jsonl", range(3))
    log = FileLog(tmp_path, "posts")

    def full_disk(_handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        with pytest.raises(NearcastError, match="No space left"):
            log.extend([str(a)])
    fresh = FileLog(tmp_path, "posts")
    assert fresh.extend([str(a)]) + fresh.total >= a.stat().st_size
    assert len(fresh.entries) == 1 and read(fresh) == [0, 1, 2]


def test_a_reader_of_no_log_a_damaged_one_or_another_version_is_told_so(tmp_path):
    with pytest.raises(BadInput, match="is missing"):
        FileLog(tmp_path, "posts", read_only=True)
    log = FileLog(tmp_path, "posts")
    with pytest.raises(NearcastError, match="read only"):
        FileLog(tmp_path, "posts", read_only=True).extend([])
    log.file.write_text('{"uuid": "x", "version": 1}\n{"n": 0}\n')
    with pytest.raises(BadInput, match="damaged"):
        FileLog(tmp_path, "posts")
    log.file.write_text('{"uuid": "x", "version": 99}\n')
    with pytest.raises(BadInput, match="version 99"):
        FileLog(tmp_path, "posts")


# --- positions


@pytest.fixture(scope="module")
def mixed(tmp_path_factory) -> FileLog:
    folder = tmp_path_factory.mktemp("mixed")
    write_lines(folder / "a.jsonl", range(30))
    write_parquet(folder / "b.parquet", range(30, 70))
    (folder / "c.csv").write_text("id,ts,lat,lon,text\n" + "".join(f"{i},0,1,2,hello\n" for i in range(70, 100)))
    (folder / "d.csv").write_text("id,ts,lat,lon,text\n" + "".join(f'{i},0,1,2,"a\nb"\n' for i in range(100, 110)))
    write_parquet(folder / "e.parquet", [])
    write_lines(folder / "f.jsonl", range(110, 120))
    log = FileLog(folder / "state", "posts")
    assert log.extend([str(folder)]) == 6
    return log


@settings(max_examples=50, deadline=None)
@given(cuts=st.lists(st.floats(0, 1), max_size=5), parts=st.integers(1, 9))
def test_any_batches_and_splits_of_a_log_give_every_post_once_and_in_order(mixed, cuts, parts):
    bounds = sorted([0, mixed.total, *(round(cut * mixed.total) for cut in cuts)])
    assert [i for a, b in pairwise(bounds) for i in read(mixed, a, b, parts)] == list(range(120))


@settings(max_examples=50, deadline=None)
@given(max_rows=st.integers(1, 100), limit=st.floats(0, 1))
def test_advancing_reaches_the_limit_in_steps_of_about_so_many_rows(mixed, max_rows, limit):
    limit = round(limit * mixed.total)
    position, steps = 0, 0
    while position < limit:
        stop = mixed.advance(position, max_rows, limit)
        assert position < stop <= limit
        one_unit = mixed.advance(position, 0, limit)
        assert mixed.rows_estimate(position, stop) <= max(max_rows, mixed.rows_estimate(position, one_unit))
        position, steps = stop, steps + 1
    assert steps <= mixed.rows_estimate(0, limit) * 2 / max_rows + 6
    assert mixed.advance(limit, max_rows, limit) == limit


def test_splits_are_about_as_many_as_asked_and_of_equal_size(tmp_path):
    a, b = write_parquet(tmp_path / "a.parquet", range(900)), write_parquet(tmp_path / "b.parquet", range(100))
    log = FileLog(tmp_path, "posts")
    log.extend([str(a), str(b)])
    assert [split.stop - split.start for split in log.splits(0, 1000, 10)] == [100] * 10
    assert [(s.path, s.start, s.stop) for s in log.splits(850, 950, 2)] == [(str(a), 850, 900), (str(b), 0, 50)]
    assert log.rows_estimate(850, 950) == 100


def test_no_batch_lies_within_one_long_line(tmp_path: Path) -> None:
    file = tmp_path / "posts.jsonl"
    lines = ['{"id": 1}', '{"text": "' + "x" * 100_000 + '"}', '{"id": 2}', '{"id": 3}']
    file.write_text("\n".join(lines) + "\n")
    log = FileLog(tmp_path / "state", "posts")
    log.extend([str(file)])
    stops = [0]
    while stops[-1] < log.total:
        stops.append(log.advance(stops[-1], 1, log.total))
    edges = {0, *(i + 1 for i, byte in enumerate(file.read_bytes()) if byte == 10)}
    assert len(stops) <= 5 and set(stops) <= edges


def test_a_file_that_is_not_whole_yet_waits_for_the_patient(tmp_path: Path) -> None:
    file = tmp_path / "half.parquet"
    file.write_bytes(b"PAR1")
    log = FileLog(tmp_path / "state", "posts")
    assert log.extend([str(tmp_path)], patient=True) == 0
    with pytest.raises(BadInput, match=r"half\.parquet"):
        log.extend([str(tmp_path)])
