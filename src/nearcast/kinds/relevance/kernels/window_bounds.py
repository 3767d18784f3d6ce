"""Upper and lower bounds of scores by what blocks and postings of a window tell
(`kinds.relevance.kernels.window_build`).

Words of a subscriber are taken heaviest first, and a post counts at the first of its words that is the subscriber's: a
list so only has to answer for the words after it. If r is the length of their vector, a post of weight w there has a
cosine of at most q w + r sqrt(1 - w^2), both vectors being of length 1; and of at most q w plus what the others' lists
have at most.
"""

import math

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.geometry import EARTH_RADIUS_KM
from nearcast.kinds.relevance.kernels.window_build import ASTRAY, FINE, SLACK, STEP

WIDER = 1e-12  # so much a bound may be off by rounding
ROUGH = 3e-6  # so much the weight of a bound may be off


@kernel
def least_near(chord, reach):
    """The least nearness of places that are at most so far apart through a sphere of radius 1."""
    chord += SLACK
    if chord >= 2.0:
        return 0.0
    over = 0.0056 if chord < 1.0 else 0.0253  # what its further terms come to at a chord of 1 and of 2
    arc = chord + chord * chord * chord * (1.0 / 24.0 + over * chord * chord)
    km = EARTH_RADIUS_KM * arc
    return 1.0 - km / reach if km < reach else 0.0


@kernel
def bound_blocks(begin, end, bounds, x, y, z, alpha, q, rest, others, reach, upper):
    """Fill `upper` with the greatest scores that posts of the blocks can have; the greatest weight of all.

    `rest` is the length of the vector of the words after this one, `others` what those add at most. q w + rest
    sqrt(1 - w^2) is greatest at w = q / sqrt(q^2 + rest^2), and falls to both sides. Without a branch or a division in
    the loop, so that several blocks are worked out at once.
    """
    whole = math.sqrt(q * q + rest * rest) * (1.0 + WIDER)
    peak = q / whole
    steep, beta = EARTH_RADIUS_KM / reach, 1.0 - alpha
    heaviest = 0.0
    for i in range(end - begin):
        block = np.uint64(begin) + np.uint64(i)
        dx, dy, dz = bounds[0, block] - x, bounds[1, block] - y, bounds[2, block] - z
        chord = max(0.0, math.sqrt(dx * dx + dy * dy + dz * dz) - bounds[3, block] - SLACK)
        near = max(0.0, 1.0 - steep * (chord + chord * chord * chord * (1.0 / 24.0)))
        most = np.float64(bounds[5, block])
        heaviest = max(heaviest, most)
        weight = min(most, max(np.float64(bounds[4, block]), peak))
        light = max(0.0, weight - ROUGH)
        alike = q * (weight + ROUGH) + rest * math.sqrt(max(0.0, 1.0 - light * light))
        alike = min(min(whole, alike), q * most + others)
        upper[i] = alpha * near + beta * alike + WIDER
    return heaviest


@kernel
def bound_postings(begin, end, bounds, block, packed, later, u, m, point, q, rest, out):
    """Fill `upper` with the greatest scores that postings of word u can have, and `chords`: how far their posts are as
    far as is known. A word v after u (`signs[v]`) adds at most `adds[v]` times the length of what is left of the post's
    vector, and at most `tops[v]`. `nears` is what of `upper` is nearness.

    Without a branch or a division in the loops, so that several postings are worked out at once.
    """
    weighed, placed, signed = packed
    signs, adds, tops = later
    x, y, z, alpha, reach = point
    upper, chords, nears = out
    cx, cy, cz = bounds[0, block] - x, bounds[1, block] - y, bounds[2, block] - z
    scale = np.float64(bounds[3, block]) / FINE
    nearer = np.float64(bounds[3, block]) * ASTRAY + SLACK
    steep, beta = EARTH_RADIUS_KM / reach, 1.0 - alpha
    for i in range(end - begin):
        light = max(0.0, np.float64(weighed[np.uint64(begin) + np.uint64(i)]) * STEP - STEP)
        nears[i] = math.sqrt(max(0.0, 1.0 - light * light) + 1e-14)
        upper[i] = 0.0
    for v in range(u + 1, m):
        sign, add, top = signs[v], adds[v], tops[v]
        for i in range(end - begin):
            more = min(add * nears[i], top)
            upper[i] += more if signed[np.uint64(begin) + np.uint64(i)] & sign == sign else 0.0
    for i in range(end - begin):
        j = np.uint64(begin) + np.uint64(i)
        alike = q * STEP * np.float64(weighed[j]) + min(upper[i], rest * nears[i])
        place = np.int32(placed[j])
        dx = cx + scale * np.float64(np.int32(place << np.int32(22)) >> np.int32(22))
        dy = cy + scale * np.float64(np.int32(place << np.int32(12)) >> np.int32(22))
        dz = cz + scale * np.float64(np.int32(place << np.int32(2)) >> np.int32(22))
        chord = math.sqrt(dx * dx + dy * dy + dz * dz)
        chords[i] = chord
        chord = max(0.0, chord - nearer)
        near = max(0.0, 1.0 - steep * (chord + chord * chord * chord * (1.0 / 24.0)))
        nears[i] = alpha * near + WIDER
        upper[i] = nears[i] + beta * alike
