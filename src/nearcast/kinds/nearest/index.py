"""Subscriptions to the k nearest (SSTD's CKQ §6.1): filed in a grid by the circle that their answer fills.

A subscription that has its k posts can only be entered by a post nearer than the k-th of them, so it is filed by the
box of that circle; one that has fewer, by the whole world (or its region). Circles only shrink, unless a post is
deleted, so a directory stays right for as long as no circle outgrows it, and is made anew when many have shrunk.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.arrays import arrow, frozen
from nearcast.common.geo.shapes import EVERYWHERE
from nearcast.common.op_schema import NEVER
from nearcast.kinds.nearest.kernels.circles import circle_boxes, near_pairs, nearest_order
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.subscriptions.filing import WORLD
from nearcast.storage.subscriptions.kernels.register import z_codes
from nearcast.storage.subscriptions.pyramid import PYRAMID
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Directory, Ends, Line, Segment

NOWHERE = -1.0  # the limit of a subscription that takes nothing more
SHRUNK = 2.0  # times smaller than it was filed: then a circle is stale
MANY = 0.2  # of the rows
PAIRS = 4_000_000  # so many pairs may be met before circles are looked at again
Ranks = Callable[[np.ndarray], np.ndarray]  # posts → the rank of each among them
Predicates = Callable[[Rows, np.ndarray, np.ndarray], np.ndarray]  # (rows, posts, picked rows) → which hold


def build(rows: Rows, limits: np.ndarray) -> Segment:
    """A segment of rows along the Z-order curve of their points; `limits` are the radii of their circles.

    Rows are in another order than given: see `place_order`.
    """
    order = place_order(rows)
    return filed(rows.take(order), limits[order])


def place_order(rows: Rows) -> np.ndarray:
    lon, lat = (frozen(rows.points[:, i].copy()) for i in range(2))
    return np.argsort(z_codes(lon, lat, np.array(WORLD)), kind="stable")


def filed(rows: Rows, limits: np.ndarray, by_id: bool = True) -> Segment:
    """A segment of rows in the order given."""
    return Segment.laid_out(rows, Directory.of(rows, PYRAMID, boxes_of(rows, limits)), by_id)


def boxes_of(rows: Rows, limits: np.ndarray) -> np.ndarray:
    """Where posts that may enter lie: the box of the circle, or that of the region where it is smaller."""
    boxes = circle_boxes(rows.points, frozen(np.maximum(limits, 0.0)))
    region = (rows.kinds != EVERYWHERE) & (_area(rows.boxes) < _area(boxes))
    boxes[region] = rows.boxes[region]
    return boxes


def _area(boxes: np.ndarray) -> np.ndarray:
    width = boxes[:, 2] - boxes[:, 0]
    return np.where(width < 0, width + 360.0, width) * (boxes[:, 3] - boxes[:, 1])


@dataclass
class NearestPart:
    """A segment, the ends of its rows, how far each still takes posts (`limits`), and how far it is filed (`reach`)."""

    segment: Segment
    ends: Ends
    limits: np.ndarray
    reach: np.ndarray

    def __len__(self) -> int:
        return len(self.segment)

    def stale(self) -> int:
        """How many rows are filed much farther than they take posts."""
        return int((self.reach > SHRUNK * np.maximum(self.limits, 0.0)).sum())

    def outgrown(self) -> "NearestPart | None":
        """The rows that take posts from farther than they are filed as a part of their own; this one leaves them."""
        rows = np.flatnonzero(self.limits > self.reach)
        if not len(rows):
            return None
        some = self.segment.rows.take(rows)
        at = np.searchsorted(rows, self.ends.rows)
        mine = (at < len(rows)) & (rows[np.minimum(at, len(rows) - 1)] == self.ends.rows)
        ends = Ends.of(len(rows), at[mine], self.ends.ends[mine])
        part = NearestPart(filed(some, self.limits[rows], by_id=False), ends, self.limits[rows], self.limits[rows])
        self.limits[rows] = NOWHERE
        return part

    def refile(self) -> None:
        """File every row by its circle as it is now, in memory."""
        self.segment = filed(self.segment.rows, self.limits, by_id=False)
        self.reach = self.limits.copy()

    def match(self, line: Line, first_post: int, hold: Predicates) -> "tuple[np.ndarray, np.ndarray, np.ndarray, int]":
        """(posts, rows, km) of the posts that a row may take, and how many candidates were looked at."""
        latest = self.segment.latest[0]
        line = line if latest == NEVER else line.until(latest)
        found = self.segment.match(line, self.ends, first_post)
        columns = line.posts
        points = self.segment.rows.points
        posts, rows, km = near_pairs(found.posts, found.rows, columns.lon, columns.lat, points, self.limits)
        if len(self.segment.rows.predicates) and len(posts):
            keep = hold(self.segment.rows, posts, rows)
            posts, rows, km = posts[keep], rows[keep], km[keep]
        return posts, rows, km, found.candidates


@dataclass
class NearestCandidates:
    """Posts that may enter an answer: at most k for each row of a part, nearest first."""

    part: NearestPart
    rows: np.ndarray
    km: np.ndarray
    posts: np.ndarray

    def add(self, rows: np.ndarray, km: np.ndarray, posts: np.ndarray, ranks: Ranks) -> None:
        """With more; where a row has its k, it takes nothing from farther than the last of them."""
        if not len(rows):
            return
        rows, km = np.concatenate([self.rows, rows]), np.concatenate([self.km, km])
        posts = np.concatenate([self.posts, posts])
        k = self.part.segment.rows.points[:, 2]
        order = nearest_first(rows, km, posts, ranks, len(k))
        place = places(rows[order])
        full = order[place == k[rows[order]] - 1]
        self.part.limits[rows[full]] = np.minimum(self.part.limits[rows[full]], km[full])
        order = order[place < k[rows[order]]]
        self.rows, self.km, self.posts = rows[order], km[order], posts[order]


def nearest_first(groups: np.ndarray, km: np.ndarray, posts: np.ndarray, ranks: Ranks, count: int) -> np.ndarray:
    """The order by group, then distance, then rank, which is only asked for where two of a group are equally far."""
    order, tied = nearest_order(groups, km, count)
    if not tied:
        return order
    return np.lexsort((ranks(posts), km, groups))


def places(groups: np.ndarray) -> np.ndarray:
    """The place of each among those of its group, from 0; equal groups are neighbours."""
    if not len(groups):
        return np.empty(0, np.int64)
    starts = np.flatnonzero(np.concatenate(([True], groups[1:] != groups[:-1])))
    return np.arange(len(groups)) - np.repeat(starts, np.diff(np.concatenate((starts, [len(groups)]))))


def post_ranks(posts: pa.Table) -> np.ndarray:
    """The order in which equally far posts come: numbers before strings, by id; of one id newer posts first, then by
    place. A post and its duplicate have the same rank.
    """
    posts = posts.select(["id", "id_text", "ts", "lon", "lat"]).combine_chunks()
    text = posts["id_text"]
    ids = posts["id"].to_numpy()
    if text.null_count < len(posts):
        ids = np.where(text.is_valid().to_numpy(), 0, ids)
    posts = posts.set_column(0, "id", arrow(ids))
    keys = [("id_text", "ascending", "at_start"), ("id", "ascending"), ("ts", "descending")]
    order = pc.sort_indices(posts, [*keys, ("lon", "ascending"), ("lat", "ascending")]).to_numpy().astype(np.int64)
    same = np.ones(max(0, len(order) - 1), np.bool_)
    for name in ("ts", "lon", "lat"):
        values = posts[name].to_numpy()[order]
        same &= values[1:] == values[:-1]
    same &= ids[order][1:] == ids[order][:-1]
    if text.null_count < len(posts):
        codes = text.combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)[order]
        same &= codes[1:] == codes[:-1]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.concatenate(([0], np.cumsum(~same))) if len(order) else 0
    return ranks


def ranks_by(take: Callable[[np.ndarray], pa.Table]) -> Ranks:
    """The ranks of posts that are looked up only when they are needed."""

    def ranks(posts: np.ndarray) -> np.ndarray:
        hit, back = np.unique(posts, return_inverse=True)
        return post_ranks(take(hit))[back]

    return ranks


class NearestSet:
    """Parts that are offered posts; what each source of posts may change is collected, at most k for each row."""

    def __init__(self, parts: list[NearestPart], first_post: int) -> None:
        more = [part.outgrown() for part in parts]
        self.parts = [part for part in (*parts, *more) if part is not None and len(part)]
        self.first_post = first_post
        self.looked = 0

    def offer(
        self, posts: PostColumns, wanted: np.ndarray, take: Callable[[np.ndarray], pa.Table], hold: Predicates
    ) -> list[NearestCandidates]:
        """The candidates among some posts, `wanted` in Z-order; `take` gives some of the posts whole."""
        found = [NearestCandidates(part, _NONE, _NONE.astype(np.float64), _NONE) for part in self.parts]
        left = len(wanted)
        for some in rounds(wanted, sum(len(part) for part in self.parts)):
            line = Line.of(posts, some)
            for part, each in zip(self.parts, found, strict=True):
                if left > len(part) // 20 and part.stale() > MANY * len(part):
                    part.refile()
                matched, rows, km, looked = part.match(line, self.first_post, hold)
                self.looked += looked
                each.add(rows, km, matched, ranks_by(take))
            left -= len(some)
        return [each for each in found if len(each.rows)]


_NONE = np.empty(0, np.int64)


def rounds(wanted: np.ndarray, rows: int) -> Iterator[np.ndarray]:
    """The posts in rounds of growing size, each spread over the whole curve: the first ones make circles small before
    the many come.
    """
    first = max(64, PAIRS // max(1, rows))
    stride = 1
    while len(wanted) > first * stride:
        stride *= 4
    at = np.arange(len(wanted))
    while stride > 1:
        now = at % stride == 0
        yield wanted[at[now]]
        at = at[~now]
        stride //= 4
    if len(at):
        yield wanted[at]
