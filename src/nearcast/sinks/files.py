"""Results into files, exactly once: one JSON Lines file for each range of results, named by it.

A file is there whole or not at all, and the names are the cursor: after a crash delivery goes on behind the last one.
"""

import json
from itertools import islice
from pathlib import Path

from nearcast.reader.reader import Reader
from nearcast.reader.results import first_seq, read_results
from nearcast.reader.row_format import json_row
from nearcast.storage.directory import StateDirectory
from nearcast.storage.files import write_text
from nearcast.storage.manifest import RESULTS, Manifest


def cursor(folder: Path) -> int:
    """How many results have been delivered."""
    return max((int(path.stem.split("-")[1]) for path in folder.glob("[0-9]*-[0-9]*.jsonl")), default=0)


def deliver(state: StateDirectory, manifest: Manifest, sink: str, most: int = 100_000) -> int:
    """Write what the outbox has beyond the cursor; returns the number of results."""
    folder = Path(sink)
    oldest = min((first_seq(ref) for ref in manifest.of(RESULTS)), default=manifest.next_seq)
    begin = max(cursor(folder), oldest)  # what has expired before a sink was there, it never gets
    done = 0
    while begin + done < manifest.next_seq:
        first, last = begin + done, min(begin + done + most, manifest.next_seq)
        rows = islice(read_results(Reader(state, manifest), since_seq=first), last - first)
        text = "".join(json.dumps(json_row(row), ensure_ascii=False) + "\n" for row in rows)
        write_text(folder / f"{first:015d}-{last:015d}.jsonl", text)
        done = last - begin
    return done
