"""Checking stored posts one by one: place, time, words, whether deleted. What every way of searching ends with."""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.geometry import in_bbox, in_region
from nearcast.common.kernels.packing import integer_at, place_at
from nearcast.common.kernels.sorting import lower_bound
from nearcast.common.kernels.varint import get
from nearcast.storage.posts.kernels.forward import post_at
from nearcast.storage.subscriptions.kernels.match import distinct_terms, first_true_key


@kernel
def has_words(code, data, starts, row, terms, scratch):
    """Whether a post satisfies a keyword expression; (answer, scratch space, which may have grown)."""
    at = post_at(data, starts, row)
    head, at = get(data, at)
    size = head >> 1
    if size > terms.size:
        terms = np.empty(2 * size, np.uint64)
        scratch = np.empty(2 * size, np.uint64)
    end = at + size
    count = 0
    while at < end:
        word, at = get(data, at)
        terms[count] = np.uint64(word)
        count += 1
    n = distinct_terms(terms, 0, count, scratch)
    ok, _ = first_true_key(code, 0, code.size, terms, (0, count), 0, scratch, n)
    return ok, terms, scratch


@kernel
def is_among(gone, row):
    """Whether a row is in a sorted list."""
    if not gone.size:
        return False
    at = lower_bound(gone, row)
    return at < gone.size and gone[at] == row


@kernel
def check_rows(rows, posts, gone, asked, code):
    """Those of the rows that satisfy everything; an empty code is always true, `gone` are deleted rows."""
    fixed, exact, ts_data, ts_width, ts_base, _, _ = posts
    kind, west, south, east, north, _, since, until = asked
    out = np.empty(rows.size, np.int64)
    found = 0
    for i in range(rows.size):
        row = rows[i]
        if kind:
            lon, lat = place_at(fixed, exact, row)
            if not in_bbox(west, south, east, north, lon, lat):
                continue
        ts = integer_at(ts_data, ts_width, ts_base, row)
        if since <= ts < until:
            out[found] = row
            found += 1
    return _checked(out[:found], posts, gone, asked, code)


@kernel
def check_runs(begins, ends, drivers, enough, posts, gone, asked, code):
    """As `check_rows`, for all rows of some runs; also how many had their words looked at.

    Where there are `drivers`, a post must have one of them, and if that is `enough` its words are right.
    """
    fixed, exact, ts_data, ts_width, ts_base, words, word_starts = posts
    kind, west, south, east, north, _, since, until = asked
    most = np.int64(0)
    for run in range(begins.size):
        most += ends[run] - begins[run]
    out = np.empty(most, np.int64)
    found = 0
    looked = 0
    for run in range(begins.size):
        for row in range(begins[run], ends[run]):
            if kind:
                lon, lat = place_at(fixed, exact, row)
                if not in_bbox(west, south, east, north, lon, lat):
                    continue
            ts = integer_at(ts_data, ts_width, ts_base, row)
            if ts < since or ts >= until:
                continue
            looked += 1
            if drivers.size:  # a loop here, for a call of each post takes longer
                head, at = get(words, post_at(words, word_starts, row))
                end = at + (head >> 1)
                driven = False
                while at < end and not driven:
                    word, at = get(words, at)
                    for i in range(drivers.size):
                        driven |= word == drivers[i]
                if not driven:
                    continue
            out[found] = row
            found += 1
    rest = code[: 0 if enough else code.size]
    return _checked(out[:found], posts, gone, asked, rest), looked


@kernel
def _checked(rows, posts, gone, asked, code):
    """Those of the rows, whose place is in the box and time is right, that satisfy the rest; `rows` is written over.

    Loops of their own: one in which a variable may come to hold another array, as scratch space does, takes several
    times as long.
    """
    fixed, exact, _, _, _, words, word_starts = posts
    kind, west, south, east, north, shape, _, _ = asked
    found = rows.size
    if code.size:
        terms = np.empty(64, np.uint64)
        scratch = np.empty(64, np.uint64)
        found = 0
        for i in range(rows.size):
            ok, terms, scratch = has_words(code, words, word_starts, rows[i], terms, scratch)
            if ok:
                rows[found] = rows[i]
                found += 1
    if kind <= 1 and not gone.size:
        return rows[:found]
    last = found
    found = 0
    for i in range(last):
        row = rows[i]
        if kind > 1:
            lon, lat = place_at(fixed, exact, row)
            if not in_region(kind, west, south, east, north, shape, 0, shape.size, lon, lat):
                continue
        if not is_among(gone, row):
            rows[found] = row
            found += 1
    return rows[:found]


@kernel
def rows_with_ids(data, width, base, count, ids):
    """The rows whose id is among `ids`, which are sorted."""
    out = np.empty(16, np.int64)
    found = 0
    for row in range(count):
        value = integer_at(data, width, base, row)
        at = lower_bound(ids, value)
        if at < ids.size and ids[at] == value:
            if found == out.size:
                more = np.empty(2 * found, np.int64)
                more[:found] = out[:found]
                out = more
            out[found] = row
            found += 1
    return out[:found]
