"""Ops, the entries of the query stream, as Arrow columns: subscribe, unsubscribe, search, delete.

An encoded subscription carries everything a worker needs to match it:

- `region_kind` (`common.geo.shapes`), `bbox` = min_lon, min_lat, max_lon, max_lat (wrapping where min_lon > max_lon;
  the whole world where there is no region), and `shape`: for a circle lon, lat, radius_km; for a polygon, per ring its
  number of vertices and then lon, lat of each.
- `code`: the keyword expression as a disjunction of conjunctions of literals. A literal is a header word and its terms.
  Header: bits 0-15 the number of terms, bits 16-31 which of them is the key (meaningful in a first literal), bit 62
  set on the last literal of a conjunction, bit 63 set on a negative literal. The first literal of a conjunction holds
  the term it is filed under, if it has a positive one. A query without words has an empty code, which is always true.
- `predicates` and `columns` as JSON, null where the query has none.
- `asks`: the code of the kind of question (`common.kinds`) that it asks of the posts that meet its conditions. The
  columns that follow are for what is particular to a kind, which says what they mean; they say nothing (NOTHING_ASKED)
  where it has no use for them:
    - `k`: how many: posts, terms.
    - `at_lon`, `at_lat`: a place that posts are compared with.
    - `window`, `sync`: over which length of time, and how often it is reported (microseconds). Of a search, `window` is
      how far it looks back, NEVER for ever.
    - `words`: distinct terms, ascending, that posts are compared with.
    - `scoring`: at most four numbers by which a post has a score (`kinds.relevance.query`).
    - `columns`, above: JSON, so that a kind can put into it whatever else it needs.
- `life` in microseconds, NEVER for a subscription without FOR. `since`/`until`: absolute bounds [since, until) on the
  time of its posts.
"""

from typing import Any

import pyarrow as pa

SUBSCRIBE, UNSUBSCRIBE, SEARCH, DELETE = range(4)
OP_NAMES = {"subscribe": SUBSCRIBE, "unsubscribe": UNSUBSCRIBE, "search": SEARCH, "delete": DELETE}

RANGE, NEAREST, TERMS, AGGREGATES, RELEVANT = range(5)

BEGINNING = -(2**63)  # before every post
NEVER = 2**63 - 1  # after every post

CODE_LAST = 1 << 62
CODE_NEGATIVE = 1 << 63
CODE_LENGTH_MASK = 0xFFFF
CODE_KEY_SHIFT = 16

QUERY_FIELDS: tuple[pa.Field, ...] = (
    pa.field("region_kind", pa.uint8(), nullable=False),
    pa.field("min_lon", pa.float64(), nullable=False),
    pa.field("min_lat", pa.float64(), nullable=False),
    pa.field("max_lon", pa.float64(), nullable=False),
    pa.field("max_lat", pa.float64(), nullable=False),
    pa.field("shape", pa.list_(pa.float64()), nullable=False),
    pa.field("code", pa.list_(pa.uint64()), nullable=False),
    pa.field("since", pa.int64(), nullable=False),
    pa.field("until", pa.int64(), nullable=False),
    pa.field("life", pa.int64(), nullable=False),
    pa.field("predicates", pa.string()),
    pa.field("columns", pa.string()),
    pa.field("asks", pa.uint8(), nullable=False),
    pa.field("k", pa.int64(), nullable=False),
    pa.field("at_lon", pa.float64(), nullable=False),
    pa.field("at_lat", pa.float64(), nullable=False),
    pa.field("window", pa.int64(), nullable=False),
    pa.field("sync", pa.int64(), nullable=False),
    pa.field("words", pa.list_(pa.uint64()), nullable=False),
    pa.field("scoring", pa.list_(pa.float64()), nullable=False),
)

NOTHING_ASKED: dict[str, Any] = {
    "columns": None, "asks": RANGE, "k": 0, "at_lon": 0.0, "at_lat": 0.0, "window": 0, "sync": 0,
    "words": [], "scoring": [],
}  # fmt: skip

OPS = pa.schema(
    [
        pa.field("op", pa.uint8(), nullable=False),
        pa.field("id", pa.int64(), nullable=False),
        pa.field("id_text", pa.string()),
        pa.field("ts", pa.int64()),  # null: the clock decides
        pa.field("sql", pa.string()),  # null for bulk subscriptions
        pa.field("digest", pa.uint64(), nullable=False),  # of what the query means, however it is filed
        *QUERY_FIELDS,
    ]
)
