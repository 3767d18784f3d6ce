"""The nearest posts of one segment (SSTD's SKQ), pruned by what other segments have found.

With a rare word its list is read whole; else the tree is opened nearest first, and of each block only the posts that
the lists name. The better of the two follows from the word's frequency: a list of n posts costs n, the tree k·N/n.
"""

from dataclasses import dataclass

import numpy as np

from nearcast.index.posts import PostSegment
from nearcast.index.question import NO_CODE, NOTHING, Question, words_in
from nearcast.index.rows import frozen
from nearcast.index.search_range import Looked
from nearcast.kernels.blocks import BLOCK
from nearcast.kernels.nearest import nearest_among, nearest_in_tree
from nearcast.kernels.ranges import driven_rows

TRY, OPEN_BLOCK = 25, 1500  # nanoseconds: a post of a list, a block
NO_DRIVER = frozen(np.array([-1], np.int64))


@dataclass(frozen=True)
class Near:
    """Rows that may be among the k nearest, with their distances."""

    rows: np.ndarray
    km: np.ndarray
    looked: Looked


def search_nearest(
    segment: PostSegment, question: Question, lon: float, lat: float, best: np.ndarray, gone: np.ndarray = NOTHING
) -> Near:
    """All posts of the segment that are no farther than the k-th best, `best[0]`, which is lowered as they are found.

    `best` is a heap of the k least distances over all segments, the greatest first. Attributes are not looked at.
    """
    size = len(segment)
    words = words_in(question, segment)
    if words.impossible:
        return Near(NOTHING, np.empty(0), Looked(size, "vocabulary", "no post has the words", 0))
    checks = (*segment.columns_for_checks, gone, *question.place)
    code = NO_CODE if words.enough else words.code
    driven = segment.listed and len(words.drivers) > 0
    if driven and words.frequency * TRY < len(best) * size / max(1, words.frequency) / BLOCK * OPEN_BLOCK:
        whole = np.zeros(1, np.int64), np.array([size])
        rows = driven_rows(*(words.drivers, segment.counts, *segment.inverted, *whole))
        found, km, looked = nearest_among(*(rows, lon, lat, best, *checks, code, *question.time))
        why = f"{words.frequency:,} posts in the lists, of {size:,}"
        return Near(found, km, Looked(size, "words first", why, int(looked)))
    drivers = words.drivers if driven else NO_DRIVER
    index = (drivers, segment.counts, *segment.inverted, *segment.tree)
    rest = (*checks, code if driven else words.code, *question.time)
    found, km, looked, opened = nearest_in_tree(*(size, lon, lat, best, *index, *rest))
    blocks = -(-size // BLOCK)
    why = f"{words.frequency:,} posts in the lists, of {size:,}" if driven else f"of {size:,} posts"
    return Near(found, km, Looked(size, "nearest blocks first", f"{opened:,} of {blocks:,} blocks; {why}", int(looked)))
