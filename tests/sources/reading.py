"""Files read whole, as plain rows: what the tests of each format share."""

import csv
import io
import json
from pathlib import Path

from nearcast.sources.formats import read_split, whole_file

GOOD = {"id": 1, "ts": 0, "lat": 1, "lon": 2, "text": "hi"}
HEADER = ["id", "ts", "lat", "lon", "text", "a"]


def rows(pieces) -> tuple[list[dict], list[tuple[str, str]]]:
    """(what is set in each post, (reason, raw) of each reject) of pieces."""
    posts, rejects = [], []
    for table, refused in pieces:
        posts += [{k: v for k, v in row.items() if v is not None} for row in table.to_pylist()]
        rejects += [(row["reason"], row["raw"]) for row in refused.to_pylist()]
    return posts, rejects


def read(path: Path, mapping=None):
    return rows(read_split(whole_file(str(path)), mapping or {}))


def line(**values) -> bytes:
    return json.dumps({**GOOD, **values}).encode()


def attributes(post: dict) -> dict:
    return {name: value for name, value in post.items() if ":" in name}


def csv_bytes(*records, terminator="\n") -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator=terminator).writerows(records)
    return out.getvalue().encode()
