"""A range keyword search in one segment: the plan, chosen by counts, and its carrying out, in one call."""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.sorting import sort_in_place
from nearcast.storage.posts.kernels.blocks import BLOCK, FAN, runs_touched
from nearcast.storage.posts.kernels.check import check_rows, check_runs
from nearcast.storage.posts.kernels.postings import rows_in_runs

PLACE_FIRST, WORDS_FIRST, WORDS_IN_PLACE = 0, 1, 2

# What a step costs, in nanoseconds, measured on 4 M posts: only their ratios matter.
CHECK, READ_GAP, FETCH, JUMP, OPEN = 35.0, 4.0, 30.0, 250.0, 400.0


@kernel
def driven_rows(drivers, lists, begins, ends):
    """The rows in some runs that have one of the drivers, ascending, each once; the code of every driver has a list."""
    out, _ = rows_in_runs(drivers[0], lists, begins, ends)
    if drivers.size == 1:
        return out
    for i in range(1, drivers.size):
        more, _ = rows_in_runs(drivers[i], lists, begins, ends)
        out = np.concatenate((out, more))
    sort_in_place(out, out.size)
    n = 0
    for i in range(out.size):
        if n == 0 or out[i] != out[n - 1]:
            out[n] = out[i]
            n += 1
    return out[:n]


@kernel
def _floor(frequency, rows):
    """The level of the tree below which a node on the border is not worth opening: it has so few posts with the word
    that all of them are sooner looked at.
    """
    level, span = 0, BLOCK * FAN
    while span < rows and frequency / rows * span * (READ_GAP + FETCH) < OPEN:
        level += 1
        span *= FAN
    return level


@kernel
def range_rows(rows, drivers, enough, lists, tree, posts, gone, asked, code):
    """(rows that satisfy everything, method, rows in the blocks touched, runs of those, candidates).

    `drivers` are codes of which a post must have one, none if there are no such; `enough` if one of them is all that is
    asked of its words.
    """
    frequency = np.inf
    counts, _, list_starts, _, _, _ = lists
    if drivers.size and list_starts.size:
        frequency = 0.0
        for i in range(drivers.size):
            frequency += counts[drivers[i]]
    begins, ends, touched = runs_touched(rows, tree, asked, _floor(frequency, rows))
    method = PLACE_FIRST
    if frequency < np.inf:
        by_place = touched * CHECK
        by_words = frequency * (READ_GAP + FETCH)
        by_both = drivers.size * begins.size * JUMP + by_words * touched / max(1, rows)
        if by_words <= by_place and by_words <= by_both:
            method = WORDS_FIRST
        elif by_both < by_place:
            method = WORDS_IN_PLACE
    if method == PLACE_FIRST:
        found, looked = check_runs(begins, ends, drivers, enough, posts, gone, asked, code)
        return found, method, touched, begins.size, looked
    runs = begins.size
    if method == WORDS_FIRST:
        begins, ends = np.zeros(1, np.int64), np.full(1, rows)
    candidates = driven_rows(drivers, lists, begins, ends)
    found = check_rows(candidates, posts, gone, asked, code[: 0 if enough else code.size])
    return found, method, touched, runs, candidates.size
