"""Where subscribers of relevance and posts go (Skype §7.3): words by their ranks, places by a kd-tree."""

import math

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.mix import mix, slot_of
from nearcast.common.kernels.sorting import hashed_bound

UNKNOWN = -1  # the rank of a term that is not in the vocabulary
SAFE = 1e-12  # far more than bounds and scores lose in rounding


@kernel
def ranks_of(terms, known, rank):
    """The rank of each term (`known` is sorted), or UNKNOWN."""
    out = np.empty(terms.size, np.int64)
    for i in range(terms.size):
        at = hashed_bound(known, terms[i])
        out[i] = rank[at] if at < known.size and known[at] == terms[i] else UNKNOWN
    return out


@kernel
def loose_prefixes(offsets, ranks, weights, alpha, theta, by_sum):
    """Which words are in their subscriber's loose prefix: a post with none of those cannot score theta.

    Words count by rising rank, those of equal rank as they are given. What the words after the prefix may add to a
    cosine is bounded by the sum of their weights (`by_sum`), or by the length of that vector. The first word is always
    in the prefix.
    """
    longest = 0
    for row in range(offsets.size - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    order = np.empty(longest, np.int64)
    chosen = np.zeros(ranks.size, np.bool_)
    for row in range(offsets.size - 1):
        begin = offsets[row]
        size = offsets[row + 1] - begin
        for i in range(size):
            at = i
            while at > 0 and ranks[order[at - 1]] > ranks[begin + i]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = begin + i
        rest = 0.0
        last = size - 1
        while last > 0:  # leave words out from the end, while what they add is too little
            weight = weights[order[last]]
            rest += weight if by_sum else weight * weight
            most = rest if by_sum else math.sqrt(rest)
            if alpha[row] + (1.0 - alpha[row]) * most + SAFE >= theta[row]:
                break
            last -= 1
        for i in range(min(last + 1, size)):
            chosen[order[i]] = True
    return chosen


@kernel
def mark(offsets, terms, ranks, chosen, part, first, ends, out):
    """Set `out[row, slot]` for the slots of the chosen words of each row.

    A row's words are cut as its part says: slots first[part] to first[part + 1], each with the ranks below its `ends`
    that no slot before it has; an unknown term goes to one of them by its hash.
    """
    for row in range(offsets.size - 1):
        low, high = first[part[row]], first[part[row] + 1]
        for i in range(offsets[row], offsets[row + 1]):
            if not chosen[i]:
                continue
            if ranks[i] == UNKNOWN:
                out[row, low + slot_of(mix(terms[i]), high - low)] = True
            else:
                a, b = low, high - 1
                while a < b:
                    middle = (a + b) // 2
                    if ends[middle] > ranks[i]:
                        b = middle
                    else:
                        a = middle + 1
                out[row, a] = True


@kernel
def leaves_at(lon, lat, axis, cut, low, high):
    """The leaf of a kd-tree for each place. Node i is cut at `cut[i]`: along `axis[i]`, 0 (lon) or 1 (lat), what is at
    the line or below goes to node `low[i]`, the rest to `high[i]`; it is a leaf where the axis is negative.
    """
    out = np.empty(lon.size, np.int32)
    for i in range(lon.size):
        node = np.int32(0)
        while axis[node] >= 0:
            value = lon[i] if axis[node] == 0 else lat[i]
            node = low[node] if value <= cut[node] else high[node]
        out[i] = node
    return out


@kernel
def dealt(keys, counts):
    """A number below `counts[i]` for each key, by its hash."""
    out = np.empty(keys.size, np.int64)
    for i in range(keys.size):
        out[i] = slot_of(mix(keys[i]), counts[i])
    return out


@kernel
def profile_keys(lon, lat, alpha, words, offsets):
    """A 64-bit key of each subscriber, from what it asks for."""
    out = np.empty(lon.size, np.uint64)
    x, y, z = lon.view(np.uint64), lat.view(np.uint64), alpha.view(np.uint64)
    for row in range(lon.size):
        key = mix(mix(mix(x[row]) ^ y[row]) ^ z[row])
        for i in range(offsets[row], offsets[row + 1]):
            key = mix(key ^ words[i])
        out[row] = key
    return out
