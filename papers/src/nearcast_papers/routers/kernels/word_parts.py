"""Words to parts by weight alone, and as a hypergraph is cut (PS2Stream §VI-B)."""

import numpy as np

from nearcast_papers.compiled_apart import kernel


@kernel
def by_weight(order, weights, parts):
    """The part of each slot: in this order, each to the part with the least weight so far, the first among equals."""
    out = np.empty(order.size, np.int32)
    sums = np.zeros(parts)
    for slot in order:
        best = 0
        for part in range(1, parts):
            if sums[part] < sums[best]:
                best = part
        out[slot] = best
        sums[best] += weights[slot]
    return out


@kernel
def refine_cut(part, starts, posts, count, weights, parts, slack, passes):
    """Better parts of a hypergraph whose nodes are slots and whose nets are posts: slots move, one at a time, where the
    number of (post, part) pairs falls most, as long as weights stay within `slack` (as a share) of the average. Changes
    `part` and returns the number of pairs saved.
    """
    pins = np.zeros((count, parts), np.int32)
    sums = np.zeros(parts)
    for slot in range(part.size):
        sums[part[slot]] += weights[slot]
        for i in range(starts[slot], starts[slot + 1]):
            pins[posts[i], part[slot]] += 1
    least, most = (1 - slack) * sums.sum() / parts, (1 + slack) * sums.sum() / parts
    saved = np.int64(0)
    fresh = np.empty(parts, np.int64)
    for _ in range(passes):
        before = saved
        for slot in range(part.size):
            here = part[slot]
            alone = np.int64(0)  # posts that the part would not get without this slot
            fresh[:] = 0  # posts that another part would get anew
            for i in range(starts[slot], starts[slot + 1]):
                alone += pins[posts[i], here] == 1
                for other in range(parts):
                    fresh[other] += pins[posts[i], other] == 0
            best, best_gain = here, np.int64(0)
            for other in range(parts if sums[here] - weights[slot] >= least else 0):
                gain = alone - fresh[other]
                if other != here and gain > best_gain and sums[other] + weights[slot] <= most:
                    best, best_gain = other, gain
            if best != here:
                part[slot] = best
                sums[here] -= weights[slot]
                sums[best] += weights[slot]
                saved += best_gain
                for i in range(starts[slot], starts[slot + 1]):
                    pins[posts[i], here] -= 1
                    pins[posts[i], best] += 1
        if saved == before:
            break
    return saved
