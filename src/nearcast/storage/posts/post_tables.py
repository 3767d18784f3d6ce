"""Whole posts as Arrow tables, mapped from files: none of them, and some of them."""

import numpy as np
import pyarrow as pa

from nearcast.common.post_schema import BASE_FIELDS, no_rows

NO_POSTS = no_rows(pa.schema(BASE_FIELDS))


def take_posts(posts: pa.Table, rows: np.ndarray) -> pa.Table:
    """Some posts, whose numbers ascend: chunk by chunk, so that nothing else of what is mapped is read."""
    parts, base = [no_rows(posts.schema)], 0
    for batch in posts.to_batches():
        begin, end = np.searchsorted(rows, (base, base + len(batch)))
        if begin < end:
            parts.append(pa.Table.from_batches([batch]).take(pa.array(rows[begin:end] - base)))
        base += len(batch)
    return pa.concat_tables(parts)
