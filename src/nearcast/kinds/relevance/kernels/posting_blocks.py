"""Postings of subscribers by term, and within a term in blocks of subscribers alike: in place, alpha and threshold.

The score of a subscriber and a post whose rarest common word is w is at most

    theta + E - min(alpha, slope * angle)    with  E = spare + own * wt(m.w) + rest * maxwt(m after w),

where spare = alpha - theta, own = (1 - alpha) * wt(s.w), rest = (1 - alpha) * wtsum(s after w), and slope is what a
radian of distance costs, alpha * radius of the earth / reach. A posting holds these in single precision; a block the
greatest spare, own and rest, the least alpha and slope, and a ball around its places.
"""

import math

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.geometry import EARTH_RADIUS_KM, RADIANS
from nearcast.kinds.relevance.kernels.term_ranks import by_rarity

X, Y, Z, SPARE, OWN, REST, ALPHA, SLOPE = 0, 1, 2, 3, 4, 5, 6, 7
FIELDS = 8
RADIUS = 8  # of a block, after the fields
BLOCK = 64
SAFE = 1e-9  # what rounding in doubles may hide
STEEPEST = 1e12
TYPICAL_WEIGHT = 0.35  # of a word in a post: scales how texts and places are told apart
TYPICAL_WAY = 0.5  # the nearness that a post lacks


@kernel
def in_prefix(alpha, theta, norm):
    """Whether a post at the very place could reach theta by words of this length (the suffix of a unit vector)."""
    return alpha + (1.0 - alpha) * norm + SAFE >= theta


@kernel
def sign_of(number):
    """One of 32 bits, by a term."""
    return np.uint32(1 << ((np.int64(number) * 0x9E3779B1 >> 27) & 31))


@kernel
def count_postings(rows, numbers, offsets, weights, alpha, theta, prefix, longest, counts):
    """How many postings each term gets. No text has more than `longest` words."""
    order = np.empty(longest + 1, np.int64)
    filled = 0
    for at in range(rows.size):
        row = rows[at]
        size = offsets[row + 1] - offsets[row]
        by_rarity(numbers, filled, filled + size, order)
        square = 0.0
        for i in range(size - 1, -1, -1):
            weight = weights[offsets[row] + order[i] - filled]
            square += weight * weight
            if not prefix or in_prefix(alpha[row], theta[row], math.sqrt(square)):
                counts[numbers[order[i]]] += 1
        filled += size


@kernel
def fill_postings(rows, numbers, subscribers, theta, prefix, longest, ends, postings, owners, signs):
    """The postings of each term, in the order of rows; `ends[term]` goes from its begin to its end."""
    lon, lat, alpha, reach, _, offsets, weights = subscribers
    order = np.empty(longest + 1, np.int64)
    filled = 0
    for at in range(rows.size):
        row = rows[at]
        size = offsets[row + 1] - offsets[row]
        by_rarity(numbers, filled, filled + size, order)
        level = math.cos(lat[row] * RADIANS)
        x, y = level * math.cos(lon[row] * RADIANS), level * math.sin(lon[row] * RADIANS)
        z = math.sin(lat[row] * RADIANS)
        slope = min(alpha[row] * EARTH_RADIUS_KM / reach[row], STEEPEST)
        square, after, sign = 0.0, 0.0, np.uint32(0)
        for i in range(size - 1, -1, -1):
            weight = weights[offsets[row] + order[i] - filled]
            square += weight * weight
            if not prefix or in_prefix(alpha[row], theta[row], math.sqrt(square)):
                term = numbers[order[i]]
                to = ends[term]
                ends[term] = to + 1
                postings[X, to], postings[Y, to], postings[Z, to] = x, y, z
                postings[SPARE, to] = alpha[row] - theta[row]
                postings[OWN, to] = (1.0 - alpha[row]) * weight
                postings[REST, to] = (1.0 - alpha[row]) * after
                postings[ALPHA, to], postings[SLOPE, to] = alpha[row], slope
                owners[to], signs[to] = row, sign
            after += weight
            sign |= sign_of(numbers[order[i]])
        filled += size


@kernel
def _widest(scratch, begin, end):
    """The field in which these postings differ most, in units of the score."""
    low, high, total = np.empty(FIELDS), np.empty(FIELDS), np.zeros(FIELDS)
    for f in range(FIELDS):
        low[f], high[f] = math.inf, -math.inf
    for i in range(begin, end):
        for f in range(FIELDS):
            value = scratch[i, f]
            low[f], high[f] = min(low[f], value), max(high[f], value)
            total[f] += value
    n = end - begin
    best, widest = X, -1.0
    for f in range(SLOPE):
        width = high[f] - low[f]
        if f <= Z:
            width = min(width * total[SLOPE] / n, total[ALPHA] / n)
        elif f in (OWN, REST):
            width *= TYPICAL_WEIGHT
        elif f == ALPHA:
            width *= TYPICAL_WAY
        if width > widest:
            best, widest = f, width
    return best


@kernel
def _swap(scratch, held, i, j):
    for f in range(FIELDS):
        scratch[i, f], scratch[j, f] = scratch[j, f], scratch[i, f]
    held[i, 0], held[j, 0] = held[j, 0], held[i, 0]
    held[i, 1], held[j, 1] = held[j, 1], held[i, 1]


@kernel
def _halve(scratch, held, begin, end, middle, field):
    """So that what is before `middle` is not greater in this field than what is after (Hoare's selection)."""
    low, high = begin, end - 1
    while low < high:
        a, b, c = scratch[low, field], scratch[(low + high) >> 1, field], scratch[high, field]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while scratch[i, field] < pivot:
                i += 1
            while scratch[j, field] > pivot:
                j -= 1
            if i <= j:
                _swap(scratch, held, i, j)
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@kernel
def arrange(begins, postings, owners, signs):
    """Order the postings of each term so that every run of BLOCK of them is alike: halved by the widest field."""
    longest = 0
    for term in range(begins.size - 1):
        longest = max(longest, begins[term + 1] - begins[term])
    scratch = np.empty((longest, FIELDS), np.float32)
    held = np.empty((longest, 2), np.uint32)
    stack = np.empty((128, 2), np.int64)
    for term in range(begins.size - 1):
        base, n = begins[term], begins[term + 1] - begins[term]
        if n <= BLOCK:
            continue
        for i in range(n):
            for f in range(FIELDS):
                scratch[i, f] = postings[f, base + i]
            held[i, 0], held[i, 1] = owners[base + i], signs[base + i]
        stack[0, 0], stack[0, 1] = 0, n
        depth = 1
        while depth > 0:
            depth -= 1
            low, high = stack[depth, 0], stack[depth, 1]
            blocks = (high - low + BLOCK - 1) // BLOCK
            if blocks <= 1:
                continue
            middle = low + (blocks + 1) // 2 * BLOCK
            _halve(scratch, held, low, high, middle, _widest(scratch, low, high))
            stack[depth, 0], stack[depth, 1] = low, middle
            stack[depth + 1, 0], stack[depth + 1, 1] = middle, high
            depth += 2
        for i in range(n):
            for f in range(FIELDS):
                postings[f, base + i] = scratch[i, f]
            owners[base + i], signs[base + i] = held[i, 0], held[i, 1]


@kernel
def bound_blocks(begins, firsts, postings, blocks):
    """What a block promises of its postings; the blocks of a term are firsts[term]..firsts[term + 1] - 1."""
    for term in range(begins.size - 1):
        for block in range(firsts[term], firsts[term + 1]):
            begin = begins[term] + (block - firsts[term]) * BLOCK
            end = min(begin + BLOCK, begins[term + 1])
            for f in range(FIELDS):
                low, high = postings[f, begin], postings[f, begin]
                for i in range(begin, end):
                    low, high = min(low, postings[f, i]), max(high, postings[f, i])
                if f <= Z:
                    blocks[f, block] = 0.5 * (low + high)
                else:
                    blocks[f, block] = low if f >= ALPHA else high
            far = 0.0
            for i in range(begin, end):
                dx = postings[X, i] - blocks[X, block]
                dy = postings[Y, i] - blocks[Y, block]
                dz = postings[Z, i] - blocks[Z, block]
                far = max(far, math.sqrt(dx * dx + dy * dy + dz * dz))
            blocks[RADIUS, block] = far * 1.00001 + 1e-6
