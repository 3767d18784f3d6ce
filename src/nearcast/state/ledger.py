"""The ledger: the posts that the windows of subscriptions by relevance may reach, in the order in which they came.

A segment is two files: `.arrow`, the posts whole, in compressed blocks; and `.index.arrow`, what is read of all of
them: place, time, id and words. Post i of a segment has the number `facts["number"] + i`, for as long as the ledger has
it; buffers know posts by their numbers. Segments are never merged: they leave whole, when no window reaches them.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from nearcast.state.bundle import bundle_table, open_bundle
from nearcast.state.files import open_table, write_table

BLOCK = 1024
NUMBER = "number"  # a fact: that of its first post


@dataclass(frozen=True)
class LedgerPart:
    """One segment, mapped. `textual` marks posts whose id is a string; `terms` are in word order, 0 at boundaries."""

    path: Path
    ts: np.ndarray
    lon: np.ndarray
    lat: np.ndarray
    id: np.ndarray
    textual: np.ndarray
    terms: np.ndarray
    offsets: np.ndarray
    fingerprints: np.ndarray  # sorted: what is asked of them is whether a post is here

    def __len__(self) -> int:
        return len(self.ts)

    @classmethod
    def open(cls, path: Path) -> "LedgerPart":
        arrays = open_bundle(path.with_suffix(".index.arrow"))
        return cls(path, **{name: np.asarray(values) for name, values in arrays.items()})

    def posts(self) -> pa.Table:
        return open_table(self.path.with_suffix(".arrow"))


def write_ledger(path: Path, posts: pa.Table, terms: np.ndarray, offsets: np.ndarray, prints: np.ndarray) -> int:
    """Write posts (the model's columns) with their words and fingerprints; the size of the files."""
    posts = posts.combine_chunks()
    arrays = {
        "ts": posts["ts"].to_numpy(), "lon": posts["lon"].to_numpy(), "lat": posts["lat"].to_numpy(),
        "id": posts["id"].to_numpy(), "textual": posts["id_text"].is_valid().to_numpy().astype(np.uint8),
        "fingerprints": np.sort(prints), "terms": terms, "offsets": offsets.astype(np.int64),
    }  # fmt: skip
    size = write_table(path.with_suffix(".index.arrow"), bundle_table(arrays))
    return size + write_table(path.with_suffix(".arrow"), posts, compression="lz4", rows=BLOCK)
