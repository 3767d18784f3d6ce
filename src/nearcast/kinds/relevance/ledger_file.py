"""The ledger: the posts that the windows of subscriptions by relevance may reach, in the order in which they came.

A segment is two files: `.arrow`, the posts whole, in compressed blocks; and `.index.arrow`, what is read of all of
them: place, time, id and words. Post i of a segment has the number `facts["number"] + i`, for as long as the ledger has
it; buffers know posts by their numbers. Segments leave whole, when no window reaches them; small ones whose numbers
follow each other are merged. A deleted post has its place in windows of so many posts for as long as they reach it: its
id and time stay, its place, words and all else leave when its segment is rewritten.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.post_schema import no_rows
from nearcast.storage.bundle import bundle_table, open_bundle
from nearcast.storage.files import open_table, write_table
from nearcast.storage.posts.post_tables import take_posts

BLOCK = 1024
NUMBER = "number"  # a fact: that of its first post
KEPT = ("id", "id_text", "ts")  # columns of a deleted post


@dataclass(frozen=True)
class LedgerPart:
    """One segment, mapped. `textual` marks posts whose id is a string; `terms` are in word order, 0 at boundaries.
    `erased` are the rows of deleted posts that only their id and time are left of. What has been merged still tells
    which posts came together: those from row `came[i]` on under the name that `origin[i]` is a hash of.
    """

    path: Path
    ts: np.ndarray
    lon: np.ndarray
    lat: np.ndarray
    id: np.ndarray
    textual: np.ndarray
    terms: np.ndarray
    offsets: np.ndarray
    fingerprints: np.ndarray  # sorted: what is asked of them is whether a post is here
    erased: np.ndarray
    came: np.ndarray
    origin: np.ndarray

    def __len__(self) -> int:
        return len(self.ts)

    @classmethod
    def open(cls, path: Path) -> "LedgerPart":
        arrays = open_bundle(path.with_suffix(".index.arrow"))
        return cls(path, **{name: np.asarray(values) for name, values in arrays.items()})

    def posts(self) -> pa.Table:
        return open_table(self.path.with_suffix(".arrow"))

    def take(self, rows: np.ndarray, columns: Sequence[str] | None = None) -> pa.Table:
        """Some posts, whose rows ascend, or columns of them. Only the blocks that they are in are read."""
        with pa.memory_map(str(self.path.with_suffix(".arrow"))) as source:
            schema = pa.ipc.open_file(source).schema
            picked = None if columns is None else [schema.get_field_index(name) for name in columns]
            reader = pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=picked))
            if reader.num_record_batches != -(-len(self) // BLOCK):  # too much text for one array
                return take_posts(reader.read_all(), rows)
            tables = [no_rows(reader.schema)]
            for block in np.unique(rows // BLOCK).tolist():
                begin, end = np.searchsorted(rows, (block * BLOCK, (block + 1) * BLOCK))
                batch = reader.get_batch(block).take(pa.array(rows[begin:end] - block * BLOCK))
                tables.append(pa.Table.from_batches([batch]))
            return pa.concat_tables(tables)


def write_ledger(path: Path, posts: pa.Table, terms: np.ndarray, offsets: np.ndarray, prints: np.ndarray) -> int:
    """Write posts (columns as in `post_schema`) with their words and fingerprints; the size of the files."""
    own = int.from_bytes(hashlib.blake2b(path.name.encode(), digest_size=8).digest(), "big", signed=True)
    none, first = np.empty(0, np.int64), np.zeros(1, np.int64)
    return _write(path, posts, terms, offsets, prints, none, first, np.array([own]))


def merge_ledger(path: Path, parts: Sequence[LedgerPart], deleted: Sequence[np.ndarray]) -> int:
    """Write segments as one, in their order, with nothing left but id and time of the rows that are `deleted` (of each
    segment); the size of the files. Fingerprints stay: what has come does not come again.
    """
    firsts = np.cumsum([0, *(len(part) for part in parts)])
    sizes = np.concatenate([np.diff(part.offsets) for part in parts])
    erased = np.concatenate([
        first + np.union1d(part.erased, gone) for first, part, gone in zip(firsts[:-1], parts, deleted, strict=True)
    ])  # fmt: skip
    mask = np.zeros(len(sizes), np.bool_)
    mask[erased] = True
    terms = np.concatenate([part.terms for part in parts])[np.repeat(~mask, sizes)]
    offsets = np.concatenate([[0], np.cumsum(np.where(mask, 0, sizes))])
    posts = without(pa.concat_tables([part.posts() for part in parts], promote_options="default"), mask)
    came = np.concatenate([first + part.came for first, part in zip(firsts[:-1], parts, strict=True)])
    prints, origin = (np.concatenate([getattr(part, name) for part in parts]) for name in ("fingerprints", "origin"))
    return _write(path, posts, terms, offsets, prints, erased, came, origin)


def _write(
    path: Path, posts: pa.Table, terms: np.ndarray, offsets: np.ndarray, prints: np.ndarray, erased: np.ndarray,
    came: np.ndarray, origin: np.ndarray,
) -> int:  # fmt: skip
    posts = posts.combine_chunks()
    arrays = {
        "ts": posts["ts"].to_numpy(), "lon": posts["lon"].to_numpy(), "lat": posts["lat"].to_numpy(),
        "id": posts["id"].to_numpy(), "textual": posts["id_text"].is_valid().to_numpy().astype(np.uint8),
        "fingerprints": np.sort(prints), "terms": terms, "offsets": offsets.astype(np.int64), "erased": erased,
        "came": came, "origin": origin,
    }  # fmt: skip
    size = write_table(path.with_suffix(".index.arrow"), bundle_table(arrays))
    return size + write_table(path.with_suffix(".arrow"), posts, compression="lz4", rows=BLOCK)


def without(posts: pa.Table, mask: np.ndarray) -> pa.Table:
    """Posts, of some of which nothing is left but id and time."""
    if not mask.any():
        return posts
    gone, blank = pa.array(mask), {"lon": 0.0, "lat": 0.0, "text": ""}
    for at, field in enumerate(posts.schema):
        if field.name not in KEPT:
            nothing = pa.scalar(blank.get(field.name), field.type)
            posts = posts.set_column(at, field, pc.if_else(gone, nothing, posts[field.name]))
    return posts
