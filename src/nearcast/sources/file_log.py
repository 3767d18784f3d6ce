"""The durable log of a source's files: what has been given to a state, in which order, and what positions mean.

An offset of the stream is a position in this log: the number of units (rows of Parquet, bytes of text) before it. The
log only grows, so a position means the same for ever: another folder, more files or a grown file are appended, and the
same content again, under whatever name, adds nothing. One process writes a log at a time.
"""

import bisect
import json
import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from itertools import accumulate, pairwise
from pathlib import Path

from nearcast.common.errors import BadInput, NearcastError
from nearcast.sources.formats import ENDINGS, WHOLE_FORMATS, FilePart, count_units, format_of, readable

VERSION = 1
_EDGE = 64 << 10
_BYTES_A_ROW = 150
_GZIP_RATIO = 4


@dataclass(frozen=True)
class Entry:
    """The units [start, stop) of a file, whose first `size` bytes had this digest when they were taken in."""

    n: int
    path: str
    format: str
    start: int
    stop: int
    units: int
    digest: str
    size: int

    @property
    def splittable(self) -> bool:
        return self.format not in WHOLE_FORMATS

    def rows(self, units: int) -> float:
        """About how many rows a number of its units holds."""
        if self.format == "parquet":
            return units
        if self.splittable:
            return units / _BYTES_A_ROW
        return max(1.0, self.size * (_GZIP_RATIO if self.format.endswith(".gz") else 1) / _BYTES_A_ROW) * units


class FileLog:
    """The log `name` of a state directory; it is created if it is not there, unless it is opened to read only."""

    def __init__(self, directory: Path, name: str, read_only: bool = False) -> None:
        self.file = Path(directory) / f"{name}.jsonl"
        self.read_only = read_only
        if not read_only and not self.file.exists():
            self._create()
        self._load()

    @property
    def total(self) -> int:
        """The position after the last unit."""
        return self._ends[-1] if self._ends else 0

    def extend(self, paths: Sequence[str], growing: bool | None = None, patient: bool = False) -> int:
        """Append what is new in these files and folders; the number of entries it took.

        - A folder stands for the data files in it and below, sorted by name, without hidden ones and those beginning
          with `_`, and without the log's own directory. A file is new if its content is, by its size and its first
          and last 64 KB.
        - A JSON Lines file of the log that has only grown adds its new bytes; any other that changed is a new file.
        - A last line without a newline counts if it is a whole object. If it is torn, it waits for its newline while
          the file is `growing`: always, never, or (None) once the file has been seen to grow.
        - A file that cannot be read is an error, or, if `patient`, is looked at again the next time: somebody may
          still be writing it.
        """
        if self.read_only:
            raise NearcastError(f"{self.file} was opened to read only")
        fresh = []
        for path in data_files(paths, str(self.file.parent.absolute())):
            try:
                with readable(path):
                    entry = self._entry(path, growing)
            except BadInput:
                if not patient:
                    raise
                continue
            if entry is not None:
                self._add(entry)
                fresh.append(entry)
        if fresh:
            self._append("".join(json.dumps(asdict(entry)) + "\n" for entry in fresh))
        return len(fresh)

    def splits(self, start: int, stop: int, parts: int) -> list[FilePart]:
        """The units [start, stop) as about `parts` splits of equal work, at least one for each file concerned.

        Raises BadInput if one of the files is missing or no longer what it was.
        """
        pieces = list(self._overlaps(start, stop))
        work = sum(entry.rows(last - first) for entry, first, last in pieces)
        splits = []
        for entry, first, last in pieces:
            _check(entry)
            count = min(max(1, round(parts * entry.rows(last - first) / work)), last - first)
            cuts = [entry.start + first + (last - first) * i // count for i in range(count + 1)]
            begin, end = (entry.start, entry.stop) if entry.format in ("jsonl", "csv") else (0, None)
            splits += [FilePart(entry.path, entry.format, a, b, begin, end) for a, b in pairwise(cuts)]
        return splits

    def rows_estimate(self, start: int, stop: int) -> int:
        """About how many rows the units [start, stop) hold: exact for Parquet, bytes / 150 for text."""
        return round(sum(entry.rows(last - first) for entry, first, last in self._overlaps(start, stop)))

    def advance(self, start: int, max_rows: int, limit: int) -> int:
        """The position about `max_rows` rows after `start`: at most `limit`, and beyond `start` if `limit` is."""
        stop = start
        left = float(max_rows)
        for entry, first, last in self._overlaps(start, limit):
            rows = entry.rows(last - first)
            if rows > left:
                units = int(left / entry.rows(1)) if entry.splittable else 0
                units = units if stop + units > start else 1
                return stop + min(last - first, _to_line_end(entry, first + units) - first)
            left -= rows
            stop += last - first
        return stop

    def _overlaps(self, start: int, stop: int) -> Iterator[tuple[Entry, int, int]]:
        """The entries in [start, stop), each with the part of it, in units from its own start."""
        for n in range(bisect.bisect_right(self._ends, start), len(self.entries)):
            base = self._ends[n] - self.entries[n].units
            if base >= stop:
                return
            first, last = max(start - base, 0), min(stop - base, self.entries[n].units)
            if first < last:
                yield self.entries[n], first, last

    def _entry(self, path: str, growing: bool | None) -> Entry | None:
        status = os.stat(path)
        seen = (status.st_size, status.st_mtime_ns, status.st_ino, growing)
        if self._seen.get(path) == seen:
            return None
        entry = self._new_part(path, status.st_size, growing)
        self._seen[path] = seen
        return entry

    def _new_part(self, path: str, size: int, growing: bool | None) -> Entry | None:
        """What of a file of `size` bytes is not in the log yet."""
        form, begin = format_of(path), 0
        if form == "jsonl":
            last = self._latest.get(path)
            if last is not None and last.size <= size and _digest(path, last.size) == last.digest:
                begin = last.size
            if growing or (growing is None and begin > 0):
                size = _complete_length(path, begin, size)
            if size <= begin:
                return None
        digest = _digest(path, size)
        if digest in self._digests:
            return None
        if form == "jsonl":
            return Entry(len(self.entries), path, form, begin, size, size - begin, digest, size)
        form, units = count_units(path)
        return Entry(len(self.entries), path, form, 0, units, units, digest, size)

    def _add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self._ends.append(self.total + entry.units)
        self._digests.add(entry.digest)
        self._latest[entry.path] = entry

    def _create(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        aside = self.file.with_suffix(".new")
        with open(aside, "w") as stream:
            stream.write(json.dumps({"uuid": uuid.uuid4().hex, "version": VERSION}) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(aside, self.file)
        _sync_directory(self.file.parent)

    def _load(self) -> None:
        """Read the log as far as its lines are whole; the writer cuts off what a crash left after them."""
        self.entries: list[Entry] = []
        self._seen: dict[str, tuple[int, int, int, bool | None]] = {}
        try:
            data = self.file.read_bytes()
            self._length = data.rfind(b"\n") + 1
            head, *lines = data[: self._length].splitlines()
            header = json.loads(head)
            if header["version"] != VERSION:
                raise BadInput(f"{self.file} has version {header['version']}; this program reads version {VERSION}")
            self.uuid: str = header["uuid"]
            self.entries = [Entry(**json.loads(line)) for line in lines]
        except FileNotFoundError:
            raise BadInput(f"{self.file} is missing: this is not a state directory, or not a whole one") from None
        except (ValueError, TypeError, KeyError):
            raise BadInput(f"{self.file} is damaged: restore it from a copy, or start a new state") from None
        self._ends = list(accumulate(entry.units for entry in self.entries))
        self._digests = {entry.digest for entry in self.entries}
        self._latest = {entry.path: entry for entry in self.entries}
        if not self.read_only and self._length < len(data):
            os.truncate(self.file, self._length)

    def _append(self, lines: str) -> None:
        data = lines.encode()
        try:
            with open(self.file, "r+b") as stream:
                stream.truncate(self._length)
                stream.seek(self._length)
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            self._load()  # what was not made durable was not taken in
            raise NearcastError(f"cannot write {self.file}: {error.strerror}") from error
        self._length += len(data)


def data_files(paths: Sequence[str], without: str = "") -> Iterator[str]:
    """The absolute paths of the data files that a list of files and folders stands for, but for one folder's."""
    for path in paths:
        path = os.path.abspath(path)
        if os.path.isdir(path):
            yield from _files_below(path, without)
        elif not os.path.exists(path):
            raise BadInput(f"{path} does not exist")
        elif format_of(path) is None:
            raise BadInput(f"cannot tell the format of {path}: known endings are {', '.join(ENDINGS)}")
        else:
            yield path


def _files_below(folder: str, without: str) -> list[str]:
    found = []
    for directory, folders, names in os.walk(folder):
        if directory == without:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        for name in names:
            if not name.startswith((".", "_")) and format_of(name) is not None:
                found.append(os.path.join(directory, name))
    return sorted(found, key=lambda path: Path(path).parts)


def _check(entry: Entry) -> None:
    """The file still begins with what was taken in."""
    with readable(entry.path):
        size = os.path.getsize(entry.path)
        if size < entry.size:
            raise BadInput(f"{entry.path} has shrunk to {size} bytes since it was given: {entry.size} are needed")
        if _digest(entry.path, entry.size) != entry.digest:
            raise BadInput(f"{entry.path} is no longer the file that was given: put that back, or start a new state")


def _digest(path: str, size: int) -> str:
    """Identifies the first `size` bytes of a file by their number and their first and last 64 KB."""
    digest = blake2b(size.to_bytes(8, "little"), digest_size=16)
    with open(path, "rb") as stream:
        digest.update(stream.read(min(size, _EDGE)))
        stream.seek(max(0, size - _EDGE))
        digest.update(stream.read(min(size, _EDGE)))
    return digest.hexdigest()


def _complete_length(path: str, begin: int, size: int) -> int:
    """Where the last complete line of a file of `size` bytes ends: a newline, or the end of an object."""
    tail = b""
    position = size
    with open(path, "rb") as stream:
        while position > begin and b"\n" not in tail:
            step = min(_EDGE << 4, position - begin)
            position -= step
            stream.seek(position)
            tail = stream.read(step) + tail
    line = tail[tail.rfind(b"\n") + 1 :]
    try:
        if isinstance(json.loads(line), dict):
            return size
    except (ValueError, RecursionError):
        pass
    return size - len(line)


def _to_line_end(entry: Entry, position: int) -> int:
    """A position in a text file moved to the end of its line, so that no batch lies within one long line."""
    if entry.format not in ("jsonl", "csv") or position == 0:
        return position
    with readable(entry.path), open(entry.path, "rb") as stream:
        stream.seek(entry.start + position - 1)
        stream.readline()
        return stream.tell() - entry.start


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
