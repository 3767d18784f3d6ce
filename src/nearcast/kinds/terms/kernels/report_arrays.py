"""What reports of frequent terms are counted from, as named tuples of arrays."""

from typing import NamedTuple

import numpy as np


class WindowPosts(NamedTuple):
    """Posts of a window, part by part, those of a part along the Z-order curve of the world."""

    z: np.ndarray  # place on the curve
    lon: np.ndarray
    lat: np.ndarray
    ts: np.ndarray
    by_time: np.ndarray  # posts in the order of time; may be empty if no member has more than one beat due
    rank: np.ndarray  # of each post its place in that order
    starts: np.ndarray  # the first word of each post, and an end
    codes: np.ndarray  # its distinct words
    parts: np.ndarray  # where parts begin, and an end


class CellPosts(NamedTuple):
    """Posts along the Z-order curve, with their words by rank of frequency, ascending."""

    lon: np.ndarray
    lat: np.ndarray
    starts: np.ndarray  # the first word of each post, and an end
    codes: np.ndarray


class CellTables(NamedTuple):
    """The tree over such posts, and a table of words for each node above the blocks (`build_cells`)."""

    boxes: np.ndarray  # of each node
    levels: np.ndarray  # the first node of each level, blocks first, and an end
    starts: np.ndarray  # where the table of each node begins, and an end
    codes: np.ndarray
    counts: np.ndarray


class RankedWords(NamedTuple):
    """Words by rank of frequency: in how many posts of the window, and their numbers in the lexicon."""

    totals: np.ndarray
    numbers: np.ndarray


class Spellings(NamedTuple):
    """How the words of a lexicon are written, by number, for the order of those that occur equally often."""

    prefixes: np.ndarray  # the first bytes of each word as a number
    starts: np.ndarray  # where each word begins in `data`, and an end
    data: np.ndarray


class MemberRegions(NamedTuple):
    """The regions of members."""

    kinds: np.ndarray
    boxes: np.ndarray
    shape: np.ndarray  # of circles and polygons, end to end
    shape_offsets: np.ndarray


class ReportGroups(NamedTuple):
    """Groups of members, at most 64 each, of one window and one beat."""

    firsts: np.ndarray  # the first member of each, and an end
    windows: np.ndarray
    beats: np.ndarray
    listed: np.ndarray  # the posts that each looks at; -1 where it looks by place
    list_starts: np.ndarray


class DueReports(NamedTuple):
    """What is due of members."""

    begins: np.ndarray  # the first beat
    counts: np.ndarray  # how many beats
    empties: np.ndarray  # empty reports in a row that were sent; which is brought up to date
    final: np.ndarray  # whether there will be no further beat
