"""The papers' bulk query sets, as Arrow tables: `id`, a box, and words in `text` (all of them) or `overlaps` (any).

Exactly one of `text` and `overlaps` is set in a row. A set is a pure function of its arguments: the queries
[first, first + count) are the same whichever slice they are part of.
"""

from nearcast_papers.query_sets.churn_set import DELETE, INSERT, POSTS_PER_UPDATE, churn, updates
from nearcast_papers.query_sets.kernel_set import kernel_posts, kernel_queries, kernel_word
from nearcast_papers.query_sets.post_sample import PostSample
from nearcast_papers.query_sets.ps2stream_queries import q1, q2, q3
from nearcast_papers.query_sets.query_tables import SCHEMA
from nearcast_papers.query_sets.sstd_queries import sstd

__all__ = [
    "DELETE", "INSERT", "POSTS_PER_UPDATE", "SCHEMA", "PostSample", "churn", "kernel_posts", "kernel_queries",
    "kernel_word", "q1", "q2", "q3", "sstd", "updates",
]  # fmt: skip
