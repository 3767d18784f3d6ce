"""What kernels take of a segment of posts, and of what is asked of it: the fields of a few named tuples.

Kernels take them as plain tuples, and unpack them by these names: of a named tuple that comes from Python, Numba reads
the name of each field at each call, which adds some microseconds to searches that take a hundred. Arrays are read-only,
mapped from a file or not: so each kernel is compiled for one kind of array only.
"""

from typing import NamedTuple

import numpy as np


class PostArrays(NamedTuple):
    """Places, times and words of the posts of a segment, which rows are checked by."""

    fixed: np.ndarray  # lon and lat of each row by turns, as integers; or empty, and then they are in `exact`
    exact: np.ndarray  # the same as doubles, where integers would not do
    ts_data: np.ndarray  # times, `ts_width` bytes each, from `ts_base` on
    ts_width: int
    ts_base: int
    words: np.ndarray  # the codes of each row's words, as variable-length integers
    word_starts: np.ndarray  # where those of some rows begin (`storage.posts.kernels.forward`)


class BlockTree(NamedTuple):
    """The tree of blocks over the rows of a segment (`storage.posts.kernels.blocks`)."""

    boxes: np.ndarray  # west, south, east, north of each node
    times: np.ndarray  # first and last time of each node
    levels: np.ndarray  # where each level begins, blocks first, and an end


class InvertedLists(NamedTuple):
    """The rows that have each word (`storage.posts.kernels.postings`); without lists all but the counts is empty."""

    counts: np.ndarray  # in how many posts each code occurs
    lists: np.ndarray  # gaps between rows, as variable-length integers
    starts: np.ndarray  # where the list of each code begins
    skip_first: np.ndarray  # the first of each code's skips
    skip_rows: np.ndarray  # of each skip its row
    skip_at: np.ndarray  # and its place in the list


class TermTables(NamedTuple):
    """In how many posts of each node of the tree a word occurs (`storage.posts.kernels.counting`, `.half_bytes`)."""

    tables: np.ndarray  # of nodes from TABLE_LEVEL on, all words, as variable-length integers
    table_starts: np.ndarray
    halves: np.ndarray  # of spans of rows, the FREQUENT words, half a byte each
    tops: np.ndarray  # what their counts have beyond that, of the HEAD words
    beyond: np.ndarray  # and of the others, as in `tables`
    beyond_starts: np.ndarray
    several: np.ndarray  # of FAN spans each, the COMMON words
    wide: np.ndarray  # of WIDE spans each, the FREQUENT words
    heads: np.ndarray  # of each block, which posts have each of the HEAD words, as bits
    rare: np.ndarray  # of each span, in how many posts any word occurs at most that is not COMMON, and not FREQUENT


class SpaceTimeRange(NamedTuple):
    """A region and a time, [since, until)."""

    kind: int  # of the region (`common.kernels.geometry`)
    west: float
    south: float
    east: float
    north: float
    shape: np.ndarray  # of a circle or a polygon
    since: np.int64
    until: np.int64


class GroupedWords(NamedTuple):
    """The words of a question in some segments, end to end (`storage.posts.segment_group.GroupWords`)."""

    drivers: np.ndarray  # codes of which a post must have one
    driver_bounds: np.ndarray  # where those of each segment begin, and an end
    codes: np.ndarray  # the expression
    code_bounds: np.ndarray
    enough: np.ndarray  # of each segment, whether a driver is all that is asked
