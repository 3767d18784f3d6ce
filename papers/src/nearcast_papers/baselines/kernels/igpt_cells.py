"""The cells of IGPT (Skype §5.1.2, §5.3): leaves of a quadtree, and what cells and groups promise of their members.

A cell is bounded by a cap of the sphere around its members, so poles and the antimeridian need no cases: for a post m
and a subscriber at s, distance(m, s) >= (distance(m, centre) - radius) + (radius - distance(s, centre)), the outer and
the inner distance of definitions 6-8.
"""

import math

import numpy as np

from nearcast.common.kernels.geometry import EARTH_RADIUS_KM, RADIANS
from nearcast.kinds.relevance.kernels.pyramid_cells import Z_LEVEL
from nearcast.kinds.relevance.kernels.term_ranks import by_rarity
from nearcast_papers.compiled_apart import kernel

X, Y, Z, RADIUS, REACH, LACKING = 0, 1, 2, 3, 4, 5
CELL_FIELDS = 6
WEIGHT, WTSUM, MAXWT, INNER, THETA, ALPHA, MOST, LOW, HIGH = 0, 1, 2, 3, 4, 5, 6, 7, 8
POSTING_FIELDS = 9


@kernel
def place(lon, lat):
    level = math.cos(lat * RADIANS)
    return level * math.cos(lon * RADIANS), level * math.sin(lon * RADIANS), math.sin(lat * RADIANS)


@kernel
def way_km(dx, dy, dz):
    """The great-circle distance of two places from the difference of their unit vectors."""
    return 2.0 * EARTH_RADIUS_KM * math.asin(min(1.0, 0.5 * math.sqrt(dx * dx + dy * dy + dz * dz)))


@kernel
def leaf_starts(codes, most):
    """Where the leaves begin in places sorted along the Z-curve: a node of more than `most` is divided by four."""
    starts = np.empty(codes.size + 1, np.int64)
    stack = np.empty((4 * Z_LEVEL + 4, 3), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, codes.size, Z_LEVEL
    depth, n = 1, 0
    while depth > 0:
        depth -= 1
        low, high, level = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        if low == high:
            continue
        if high - low <= most or level == 0:
            starts[n] = low
            n += 1
            continue
        shift = np.uint64(2 * (level - 1))
        for quarter in range(3, -1, -1):  # so that the first is taken from the stack first
            first, last = low, high
            while first < last:
                middle = (first + last) >> 1
                if ((codes[middle] >> shift) & np.uint64(3)) < np.uint64(quarter):
                    first = middle + 1
                else:
                    last = middle
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = first, high, level - 1
            depth += 1
            high = first
    starts[n] = codes.size
    return starts[: n + 1].copy()


@kernel
def bound_cells(starts, rows, lon, lat, alpha, reach, theta, cells, inner):
    """The cap, greatest reach, and the nearness that a post may lack (lemma 6) of each cell; `inner` of each row.

    A subscriber bears that 1 - nearness is at most (1 - theta) / alpha, even if all its words are met.
    """
    for cell in range(starts.size - 1):
        x, y, z = 0.0, 0.0, 0.0
        begin, end = starts[cell], starts[cell + 1]
        for i in range(begin, end):
            dx, dy, dz = place(lon[rows[i]], lat[rows[i]])
            x, y, z = x + dx, y + dy, z + dz
        length = math.sqrt(x * x + y * y + z * z)
        if length < 1e-9:  # members all around the world: any centre will do
            x, y, z, length = 0.0, 0.0, 1.0, 1.0
        x, y, z = x / length, y / length, z / length
        far, furthest, lacking = 0.0, 0.0, -math.inf
        for i in range(begin, end):
            row = rows[i]
            dx, dy, dz = place(lon[row], lat[row])
            inner[i] = way_km(dx - x, dy - y, dz - z)
            far = max(far, inner[i])
            furthest = max(furthest, reach[row])
            spare = 1.0 - theta[row]
            if alpha[row] > 0.0:
                lacking = max(lacking, spare / alpha[row])
            elif spare >= 0.0:
                lacking = math.inf
        for i in range(begin, end):
            inner[i] = max(0.0, far - inner[i]) * 0.999999
        cells[X, cell], cells[Y, cell], cells[Z, cell] = x, y, z
        cells[RADIUS, cell] = far + 1e-3  # an arc sine near the antipode is good to some centimetres
        cells[REACH, cell] = furthest
        cells[LACKING, cell] = lacking


@kernel
def bound_groups(starts, postings):
    """What a posting promises of itself and all after it in its group (eq. 6 and 7): greatest maxwt, and alphas."""
    for group in range(starts.size - 1):
        most, low, high = np.float32(0.0), np.float32(1.0), np.float32(0.0)
        for i in range(starts[group + 1] - 1, starts[group] - 1, -1):
            most = max(most, postings[i, MAXWT])
            low, high = min(low, postings[i, ALPHA]), max(high, postings[i, ALPHA])
            postings[i, MOST], postings[i, LOW], postings[i, HIGH] = most, low, high


@kernel
def fill_words(rows, numbers, firsts, offsets, weights, longest, number, postings, at_row):
    """Of each word of rows[i], whose numbers are from firsts[i] on: its number, weight, wtsum and maxwt (eq. 3 and 4),
    and i. Words of a row are written commonest first.
    """
    order = np.empty(longest + 1, np.int64)
    n = 0
    for at in range(rows.size):
        begin = firsts[at]
        size = by_rarity(numbers, begin, begin + offsets[rows[at] + 1] - offsets[rows[at]], order)
        total, greatest = 0.0, 0.0
        for i in range(size - 1, -1, -1):
            weight = weights[offsets[rows[at]] + order[i] - begin]
            total, greatest = total + weight, max(greatest, weight)
            number[n], at_row[n] = numbers[order[i]], at
            postings[n, WEIGHT], postings[n, WTSUM], postings[n, MAXWT] = weight, total, greatest
            n += 1
