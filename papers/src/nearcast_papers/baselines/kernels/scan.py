"""One query over many stored posts: what a search does where it has no better way, and what a small segment needs."""

import numpy as np

from nearcast.common.kernels.geometry import in_bbox, in_region
from nearcast.storage.subscriptions.kernels.match import distinct_terms, first_true_key
from nearcast_papers.compiled_apart import kernel


@kernel
def scan_posts(
    lon, lat, ts, codes, offsets, vocabulary, begin, end,
    kind, west, south, east, north, shape, code, since, until,
):  # fmt: skip
    """Rows in [begin, end) that satisfy place, time in [since, until) and words; and how many had their words
    looked at.
    """
    out = np.empty(end - begin, np.int64)
    found = 0
    candidates = 0
    terms = np.empty(64, np.uint64)
    scratch = np.empty(64, np.uint64)
    for row in range(begin, end):
        if ts[row] < since or ts[row] >= until or not in_bbox(west, south, east, north, lon[row], lat[row]):
            continue
        candidates += 1
        if code.size:
            first = np.int64(offsets[row])
            count = np.int64(offsets[row + 1]) - first
            if count > terms.size:
                terms = np.empty(2 * count, np.uint64)
                scratch = np.empty(2 * count, np.uint64)
            for i in range(count):
                terms[i] = vocabulary[codes[first + i]]
            n = distinct_terms(terms, 0, count, scratch)
            ok, _ = first_true_key(code, 0, code.size, terms, (0, count), 0, scratch, n)
            if not ok:
                continue
        if kind > 1 and not in_region(kind, west, south, east, north, shape, 0, shape.size, lon[row], lat[row]):
            continue
        out[found] = row
        found += 1
    return out[:found].copy(), candidates
