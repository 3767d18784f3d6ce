"""Posts under a router that cuts by words, or under two tables (`engine.previous_table`): one worker stores a post,
others may have to match it.

- A copy for each worker that has to see a post; in one of them, at *home*, it is stored, offered to the nearest and
  counted.
- A duplicate (same id, time and place) with other words may reach other workers than the first copy. So each worker
  gets the fingerprints of the posts that others get and that a copy of its own could repeat, with their places in the
  stream: in-batch duplicates are decided alike everywhere. What is stored is looked up wherever it may be.
- Each pair of query and post comes out of one worker (`RoutingTable.reported`); where an id has been subscribed again,
  two versions of it may still come out of two, and `kinds.range.merge` sees to that before the commit.

Otherwise none of this is needed, and no column of it travels.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import frozen
from nearcast.common.kernels.lookup import sorted_members
from nearcast.common.kernels.mix import fingerprints
from nearcast.common.kinds import marks_of
from nearcast.engine.batch import BatchPlan
from nearcast.engine.packets import POSTS, PRINTS, pack
from nearcast.engine.previous_table import LEAF
from nearcast.partitioning.routing_table import RoutingTable
from nearcast.storage.manifest import SegmentRef
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.subscriptions.rows import is_text

ROWS_A_SPLIT = 30  # bits
MARKS = "marks"  # column of routed posts: the kinds of subscriptions that may want one, a bit each


def spread(
    plan: BatchPlan, posts: pa.Table, prints: np.ndarray, matched: np.ndarray, order: int
) -> Iterator[tuple[int, bytes]]:
    """The packets of routed posts; `matched` is a matrix (post, worker) of who has to match them."""
    workers, router = plan.settings.workers, plan.router
    stored = posts["leaf"].to_numpy()
    at_home = np.ones(len(posts), np.bool_)
    marks = posts[MARKS].to_numpy()
    placed = marks.dtype.type(marks_of("placed"))  # the others are for the worker that stores a post
    if plan.settings.keep == "none":
        at_home = (marks & ~placed) != 0
    owners = router.owners(workers)
    sent = matched & ((marks & placed) != 0)[:, None]
    goes = sent.copy()
    goes[np.flatnonzero(at_home), owners[stored[at_home]]] = True
    home = np.where(at_home, owners[stored], goes.argmax(axis=1))
    told = router.crews(workers).matrix[router.node_of_leaf[stored]]
    if plan.previous is None:
        told &= router.is_textual(stored)[:, None]
    else:
        table = plan.previous.table
        told |= table.crews(workers).matrix[table.node_of_leaf[posts[LEAF].to_numpy()]]
    told &= ~goes & goes.any(axis=1)[:, None]
    rank = (np.int64(order) << ROWS_A_SPLIT) + np.arange(len(posts))
    posts = posts.append_column("rank", pa.array(rank))
    for worker in range(workers):
        rows = np.flatnonzero(goes[:, worker])
        if len(rows):
            table = posts.take(pa.array(rows)) if len(rows) < len(posts) else posts
            own = np.where(sent[rows, worker], marks[rows], marks[rows] & ~placed)
            table = table.set_column(table.schema.get_field_index(MARKS), MARKS, pa.array(own))
            table = table.append_column("home", pa.array(home[rows] == worker))
            for packet in pack(POSTS, table, order, plan.spool):
                yield worker, packet
        rows = np.flatnonzero(told[:, worker])
        known = pa.table({"print": prints[rows], "rank": rank[rows]})
        for packet in pack(PRINTS, known, order, plan.spool):
            yield worker, packet


def matchers(router: RoutingTable, workers: int, starts: np.ndarray, leaves: np.ndarray) -> np.ndarray:
    """A matrix (post, worker) of who has to match posts; `leaves[starts[i]:starts[i + 1]]` are those of post i."""
    out = np.zeros((len(starts) - 1, workers), np.bool_)
    out[np.repeat(np.arange(len(out)), np.diff(starts)), router.owners(workers)[leaves]] = True
    return out


def at_home(posts: pa.Table) -> np.ndarray:
    """Which posts are this worker's to store, to offer to the nearest and to count."""
    return posts["home"].to_numpy() if "home" in posts.column_names else np.ones(len(posts), np.bool_)


def come_elsewhere(prints: np.ndarray, posts: pa.Table, others: pa.Table | None) -> np.ndarray:
    """Which posts have had an earlier copy in the batch that went to other workers only."""
    out = np.zeros(len(posts), np.bool_)
    if others is None or not len(posts):
        return out
    theirs, rank = others["print"].to_numpy(), others["rank"].to_numpy()
    shared = np.flatnonzero(sorted_members(frozen(np.sort(prints)), frozen(theirs)))
    shared = shared[np.argsort(rank[shared])]
    met, first = np.unique(theirs[shared], return_index=True)
    if len(met):
        at = np.minimum(np.searchsorted(met, prints), len(met) - 1)
        out = (met[at] == prints) & (rank[shared[first[at]]] < posts["rank"].to_numpy())
    return out


def whereabouts(plan: BatchPlan, leaves: np.ndarray, worker: int) -> np.ndarray:
    """The worker whose segments would have an earlier copy of each post, given its leaf; -1 where any of them may."""
    router, beside = plan.router, plan.previous is not None
    if not router.textual and not beside:
        return np.full(len(leaves), worker)
    if plan.settings.keep == "none":  # then only results tell, and those may be anyone's
        return np.where(router.is_textual(leaves) | beside, -1, worker)
    return router.whereabouts(leaves, plan.settings.workers)


def possibly_in(plan: BatchPlan, ref: SegmentRef, where: np.ndarray) -> np.ndarray:
    """Which posts a segment may have a copy of."""
    if ref.facts.get("layout") != plan.layout:
        return np.ones(len(where), np.bool_)
    return (where == ref.owner) | (where < 0)


def own_posts(plan: BatchPlan, ref: SegmentRef, segment: PostSegment, rows: np.ndarray, worker: int) -> np.ndarray:
    """Of some posts of a segment those that a worker has to look at: each belongs to one worker."""
    if ref.facts.get("layout") == plan.layout:
        return rows if ref.owner == worker else rows[:0]
    router = plan.router
    columns = segment.columns(rows)
    ids, textual = frozen(segment.ids(rows)), is_text(segment.id_texts(rows), len(rows))
    prints = fingerprints(ids, textual, columns.ts, columns.lon, columns.lat)
    leaves = router.store(columns.lon, columns.lat, columns.terms, columns.offsets, prints)
    return rows[router.owners(plan.settings.workers)[leaves] == worker]
