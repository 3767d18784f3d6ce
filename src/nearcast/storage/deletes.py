"""Deleted posts: ids that are hidden from the batch of their deletion on, and leave the disk when their segment is
rewritten.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.post_schema import no_rows
from nearcast.storage.directory import StateDirectory
from nearcast.storage.files import open_table
from nearcast.storage.manifest import DELETES, Manifest, SegmentRef

SCHEMA = pa.schema([("id", pa.int64()), ("id_text", pa.string()), ("batch", pa.int64())])


def deletes_for(state: StateDirectory, manifest: Manifest, posts: SegmentRef) -> pa.Table:
    """The deletions that concern a segment or an archive: those after what it was cleaned of, or after it came."""
    since = posts.facts.get("cleaned", posts.batch)
    tables = [open_table(state.path(ref.name)) for ref in manifest.of(DELETES) if ref.batch > since]
    table = pa.concat_tables([no_rows(SCHEMA), *tables])
    return table.filter(pc.greater(table["batch"], since)) if len(table) else table


def still_needed(refs: Sequence[SegmentRef]) -> list[SegmentRef]:
    """The segments but those deletions that every segment of posts was cleaned of, and ends folded in everywhere."""
    posts = [
        ref.facts.get("cleaned", ref.batch) for ref in refs if ref.kind in ("posts", "archive", "window", "ledger")
    ]
    rows = [ref.facts.get("folded", ref.batch - 1) for ref in refs if ref.kind == "subscriptions"]
    done = {"deletes": min(posts, default=1 << 60), "ends": min(rows, default=1 << 60)}
    return [ref for ref in refs if ref.batch > done.get(ref.kind, -1) or ref.kind not in done]
