"""What `storage.subscriptions.kernels.match` takes of posts and of a segment of subscriptions: the fields of a few
named tuples, as plain ones (see `storage.posts.kernels.segment_arrays` for why).
"""

from typing import NamedTuple

import numpy as np


class PostLine(NamedTuple):
    """Posts lined up in Z-order by `line_up`, and the words of all posts of the batch."""

    order: np.ndarray  # which posts of the batch they are
    places: np.ndarray  # lon and lat
    times: np.ndarray
    grid: np.ndarray  # coordinates in the grid of the segment
    words: np.ndarray  # distinct terms, and ANY_TERM as the last of each post
    firsts: np.ndarray  # where those of each post begin, and an end
    terms: np.ndarray  # of the batch, in the order of the texts
    offsets: np.ndarray


class CellDirectory(NamedTuple):
    """Which rows to look at for a cell and a term (`storage.subscriptions.kernels.directory`)."""

    levels: np.ndarray  # those of the pyramid that have entries
    cells: np.ndarray  # sorted
    starts: np.ndarray  # the first word of each cell
    signs: np.ndarray  # words of bits: of which terms there are entries
    bases: np.ndarray  # the first entry of each word
    tags: np.ndarray  # of each entry, bits of its term
    entries: np.ndarray  # row, and small box inside the cell


class SubscriptionRows(NamedTuple):
    """What is asked by the rows of a segment."""

    records: np.ndarray  # as `make_records` lays them out
    bounds: np.ndarray  # the same memory as doubles
    code: np.ndarray  # keyword expressions, end to end
    shape: np.ndarray  # of regions, end to end
    shape_offsets: np.ndarray
    life: np.ndarray  # FOR; empty where no row waits for its first post


class MovedEnds(NamedTuple):
    """The rows whose ends were moved by later ops."""

    changed: np.ndarray  # one bit a row
    rows: np.ndarray  # sorted
    ends: np.ndarray
