"""The outbox: results in order, each whole.

A segment is two files: `.arrow`, one row a result (query, kind, which post), memory-mapped; and `.text.arrow`, the
posts they are about, each once, in compressed blocks. `seq` is not stored: it counts through the whole outbox, and
the manifest knows where each segment begins.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from nearcast.storage.files import open_table, write_table

MATCH, ENTER, LEAVE, REPORT, ANSWER, LATE = range(6)
KINDS = ("match", "enter", "leave", "report", "answer", "late")
BLOCK = 4096

RESULTS = pa.schema(
    [
        pa.field("query", pa.int64(), nullable=False),
        pa.field("query_text", pa.string()),
        pa.field("kind", pa.uint8(), nullable=False),
        pa.field("post", pa.int32(), nullable=False),  # row of `.text.arrow`, -1 for none
        pa.field("columns", pa.string()),  # the SELECT's, as JSON; null for all
        pa.field("rows", pa.string()),  # an answer's or a report's, as JSON
        pa.field("batch", pa.int64(), nullable=False),
    ]
)

# Those of `enter` and `leave` have two columns more, which segments without any need not have.
NEAREST_RESULTS = RESULTS.append(pa.field("rank", pa.int64())).append(pa.field("distance_km", pa.float64()))

# Of relevance: the score, and the version of idf that it was worked out by.
RELEVANT_RESULTS = RESULTS.append(pa.field("rank", pa.int64())).append(pa.field("score", pa.float64()))
RELEVANT_RESULTS = RELEVANT_RESULTS.append(pa.field("idf", pa.int64()))

# And those of `report`: the rows as they are, and how many empty reports one stands for.
REPORT_ROWS = pa.list_(pa.struct([("term", pa.string()), ("count", pa.int64())]))
REPORT_RESULTS = pa.schema(
    [*RESULTS, pa.field("window_end", pa.int64()), pa.field("skipped", pa.int64()), pa.field("terms", REPORT_ROWS)]
)


@dataclass(frozen=True)
class Results:
    """Results and the posts they are about (columns as in `post_schema`)."""

    table: pa.Table
    posts: pa.Table

    def __len__(self) -> int:
        return len(self.table)

    @classmethod
    def concat(cls, parts: "list[Results]") -> "Results":
        if len(parts) == 1:
            return parts[0]
        base, tables = 0, []
        for part in parts:
            post = part.table["post"].to_numpy()
            moved = pa.array(np.where(post >= 0, post + base, -1).astype(np.int32))
            at = part.table.schema.get_field_index("post")
            tables.append(part.table.set_column(at, RESULTS.field("post"), moved))
            base += len(part.posts)
        posts = pa.concat_tables([part.posts for part in parts], promote_options="default")
        return cls(pa.concat_tables(tables, promote_options="default"), posts)

    def write(self, path: Path) -> int:
        size = write_table(path.with_suffix(".arrow"), self.table.combine_chunks())
        return size + write_table(path.with_suffix(".text.arrow"), self.posts, compression="lz4", rows=BLOCK)

    @classmethod
    def open(cls, path: Path) -> "Results":
        return cls(open_table(path.with_suffix(".arrow")), open_table(path.with_suffix(".text.arrow")))
