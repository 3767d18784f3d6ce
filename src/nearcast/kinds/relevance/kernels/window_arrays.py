"""What the search of a window takes and passes on, as named tuples (`kinds.relevance.kernels.window_search`)."""

from typing import NamedTuple

import numpy as np


class PartArrays(NamedTuple):
    """Posts of a window and their postings, as `kinds.relevance.kernels.window_build` lays them out."""

    term: np.ndarray  # sorted, one for each list
    group_starts: np.ndarray  # the first group of blocks of each list
    grouped: np.ndarray  # bounds of the groups
    block_starts: np.ndarray  # the first block of each list
    begins: np.ndarray  # the first posting of each block
    bounds: np.ndarray  # of the blocks
    posts: np.ndarray  # of each posting its post
    weighed: np.ndarray  # its weight
    placed: np.ndarray  # its place inside the ball of its block
    signed: np.ndarray  # a signature of the words of its post
    places: np.ndarray  # of each post lon and lat, and two words more
    keys: np.ndarray  # the same memory as integers: number and where its words begin; a sketch of their weights
    own: np.ndarray  # the words of each post, by list
    heights: np.ndarray  # and their weights
    where: np.ndarray  # the post of each number of the part, or GONE


class LedgerOrder(NamedTuple):
    """The order of posts by time, by their numbers from `base` on, and numbers of those that are hidden (sorted)."""

    base: np.int64
    order: np.ndarray
    hidden: np.ndarray


class RowWindow(NamedTuple):
    """Which posts are in the window of one row: those whose order is not below `bound`, and not hidden."""

    sure: bool  # all posts of the part are
    bound: int
    base: int
    order: np.ndarray
    hidden: np.ndarray


class Pools(NamedTuple):
    """The best posts so far, a pool for each row."""

    scores: np.ndarray
    numbers: np.ndarray
    limits: np.ndarray  # how many a pool may have before it is cut to the best
    spare: np.ndarray  # scratch, as wide as a pool


class AskedWords(NamedTuple):
    """The words of one row that the part has lists of, and what is known of them in turn, the heaviest first."""

    ids: np.ndarray  # lists, in the order of words
    turn: np.ndarray  # of each turn its place in `ids`
    weights: np.ndarray  # in the order of `ids`
    rest: np.ndarray  # the length of the vector of the words after each turn
    tops: np.ndarray  # what a word adds to a cosine at most
    signs: np.ndarray  # by which a signature tells it
    kinds: np.ndarray  # by which a sketch does


class AskedScore(NamedTuple):
    """What one row asks for beside its words, how many words it has, and how many posts it wants."""

    lon: float
    lat: float
    alpha: float
    reach: float
    words: int
    wanted: int


class AskedPoint(NamedTuple):
    """The place of one row as a unit vector, its alpha and reach."""

    x: float
    y: float
    z: float
    alpha: float
    reach: float


class PackedPostings(NamedTuple):
    """Those columns of a part that bounds of postings are worked out from."""

    weighed: np.ndarray
    placed: np.ndarray
    signed: np.ndarray


class LaterWords(NamedTuple):
    """Of the words of one row in turn: signature, weight, and what it adds to a cosine at most."""

    signs: np.ndarray
    adds: np.ndarray
    tops: np.ndarray


class PostingBounds(NamedTuple):
    """Bounds of the postings of a block, to be filled: of the score, of the way to the post, of its nearness."""

    upper: np.ndarray
    chords: np.ndarray
    nears: np.ndarray


class PickedPostings(NamedTuple):
    """Postings to be worked out exactly: which, at the turn of which word, the bound of the score and of nearness."""

    postings: np.ndarray
    turns: np.ndarray
    bounds: np.ndarray
    nears: np.ndarray
