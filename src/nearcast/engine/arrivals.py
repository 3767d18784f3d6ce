"""The posts of a batch that have come to a worker: without duplicates, with what routing has found out about them."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import chunk
from nearcast.common.kernels.lookup import sorted_members
from nearcast.common.kinds import Kind, kinds
from nearcast.common.op_schema import BEGINNING
from nearcast.engine.post_copies import MARKS, at_home, come_elsewhere, possibly_in, whereabouts
from nearcast.engine.previous_table import LEAF
from nearcast.engine.task import Task
from nearcast.storage.bundle import open_bundle
from nearcast.storage.manifest import ARCHIVE, POSTS, RESULTS, WINDOW
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.posts.post_segment import post_fingerprints

ROUTED = (MARKS, "home", "rank", LEAF)  # columns that no segment has


@dataclass(frozen=True)
class Arrivals:
    """Posts as they were routed; `late` are older than what is kept, and `home` those that are this worker's to store
    and to count.
    """

    table: pa.Table
    late: np.ndarray
    home: np.ndarray

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def columns(self) -> PostColumns:
        """What matching needs of them."""
        terms = chunk(self.table["terms"])
        lon, lat, ts = (self.table[name].to_numpy() for name in ("lon", "lat", "ts"))
        return PostColumns(lon, lat, ts, terms.values.to_numpy(), terms.offsets.to_numpy().astype(np.int64))

    @cached_property
    def order(self) -> np.ndarray:
        """The posts along the Z-order curve."""
        return self.columns.z_order()

    @cached_property
    def posts(self) -> pa.Table:
        """Whole posts, as users know them."""
        routed = ("leaf", "terms", *ROUTED)
        return self.table.drop_columns([name for name in routed if name in self.table.column_names])

    @property
    def leaves(self) -> np.ndarray:
        """The leaf that stores each post."""
        return self.table["leaf"].to_numpy()

    @property
    def stored(self) -> np.ndarray:
        """Which of them this worker stores."""
        return self.home & ~self.late

    def marked(self, *some: Kind) -> np.ndarray:
        """Which of them subscriptions of some kinds may want."""
        marks = self.table[MARKS].to_numpy()
        return (marks & marks.dtype.type(sum(kind.mark for kind in some))) != 0

    def wanted(self, kind: Kind) -> np.ndarray:
        """Those that subscriptions of a kind may want, along the Z-order curve."""
        return self.order[self.marked(kind)[self.order]]

    def in_order(self, which: np.ndarray) -> np.ndarray:
        """Some of them, along the Z-order curve."""
        return self.order if which.all() else self.order[which[self.order]]


def admit(task: Task, posts: pa.Table, others: pa.Table | None = None) -> Arrivals:
    """Routed posts without duplicates. `others` tells of posts that other workers have got."""
    settings, manifest, result = task.plan.settings, task.manifest, task.result
    with result.timed("admit"):
        posts = posts.combine_chunks()
        prints = post_fingerprints(posts)
        first = np.zeros(len(posts), np.bool_)
        first[np.unique(prints, return_index=True)[1]] = True
        first &= ~come_elsewhere(prints, posts, others)
        first[first] = ~known(task, prints[first], *(posts[name].to_numpy()[first] for name in ("ts", "leaf")))
        result.count(duplicates=int((~first & at_home(posts)).sum()))
        if not first.all():
            posts = posts.filter(pa.array(first)).combine_chunks()
        ts = posts["ts"].to_numpy()
        late = ts < (BEGINNING if manifest.kept_since is None else manifest.kept_since)
        late |= ts <= max((ref.max_ts for ref in manifest.of(ARCHIVE)), default=BEGINNING)
        if settings.retention is not None and manifest.clock is not None:
            late |= ts < manifest.clock - settings.retention
        if settings.retention is not None or late.any():
            result.count(late=int((late & at_home(posts)).sum()))
    return Arrivals(posts, late, at_home(posts))


def known(task: Task, prints: np.ndarray, ts: np.ndarray, leaves: np.ndarray) -> np.ndarray:
    """Which posts the state has already, by their fingerprints."""
    out = np.zeros(len(prints), np.bool_)
    if not len(prints):
        return out
    begin, end = int(ts.min()), int(ts.max())
    where = whereabouts(task.plan, leaves, task.worker)
    for ref in (ref for kind in remembering(task) for ref in task.manifest.of(kind)):
        if ref.rows and ref.min_ts <= end and ref.max_ts >= begin:
            path = task.plan.state.path(ref.name, ".index.arrow")
            asked = possibly_in(task.plan, ref, where)
            if asked.any() and path.exists():
                stored = np.asarray(open_bundle(path)["fingerprints"])
                some = slice(None) if asked.all() else asked
                out[some] |= sorted_members(stored, prints[some])
    return out


def remembering(task: Task) -> Iterable[str]:
    """The kinds of segments that tell which posts have come already."""
    if task.plan.settings.keep != "none":
        return (POSTS,)
    return (RESULTS, WINDOW, *(each for kind in kinds() for each in kind.remembers))
