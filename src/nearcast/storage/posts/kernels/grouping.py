"""Posts by group: numbering of values and of pairs of them, and what is added up of each group.

Sums are pairs of doubles, high and low, whose exact sum is meant: each addition keeps some 100 bits, so the order of
posts does not show, and whole numbers are added exactly.
"""

import numpy as np

from nearcast.common.kernels.compiled import inlined, kernel
from nearcast.common.kernels.mix import mix, slot_of
from nearcast.common.kernels.packing import integer_at
from nearcast.common.kernels.prefetch import prefetch
from nearcast.common.kernels.varint import get
from nearcast.storage.posts.kernels.forward import post_at

REAL, TIME, MISSING = 1, 2, 5  # of the kinds in index/groups.py: numbers are not above REAL, nor times above TIME
NUMBERS, TIMES = 3, 4  # bits of the kinds seen

AHEAD = 8  # keys, whose slots are asked for beforehand
_SPLIT = 134217729.0  # 2^27 + 1


@kernel
def numbered(keys, span):
    """(the number of each key, the first place of each number): numbers are given as keys are first met.

    Keys lie in [0, span); with a span of 0 they are any, and are hashed.
    """
    codes = np.empty(keys.size, np.int32)
    if span:
        firsts = np.empty(min(span, keys.size), np.int64)
        return codes, firsts[: _number_directly(keys, np.full(span, -1, np.int32), firsts, codes)].copy()
    slots = 1 << 10
    table = np.zeros(2 * slots, np.int64)
    firsts = np.empty(slots // 2, np.int64)
    at, size = _number_some(keys, 0, table, firsts, 0, codes)
    while at < keys.size:
        slots *= 4
        table = _rehashed(keys, firsts, size, slots)
        more = np.empty(slots // 2, np.int64)
        more[:size] = firsts[:size]
        firsts = more
        at, size = _number_some(keys, at, table, firsts, size, codes)
    return codes, firsts[:size].copy()


@kernel
def _number_directly(keys, table, firsts, codes):
    size = 0
    for i in range(keys.size):
        code = table[keys[i]]
        if code < 0:
            code = np.int32(size)
            table[keys[i]] = code
            firsts[size] = i
            size += 1
        codes[i] = code
    return size


@kernel
def _number_some(keys, at, table, firsts, size, codes):
    """Number keys from `at` on, until the table is half full; (where it stopped, how many numbers there are).

    A slot of the table is two words side by side, a key and its number plus one; it is asked for before it is needed.
    The loop gives no array a new size: Numba would count references to it at every turn.
    """
    slots = np.int64(table.size // 2)
    for i in range(at, keys.size):
        if i + AHEAD < keys.size:
            prefetch(table, 2 * slot_of(mix(np.uint64(keys[i + AHEAD])), slots))
        key = keys[i]
        slot = slot_of(mix(np.uint64(key)), slots)
        while table[2 * slot + 1] and table[2 * slot] != key:
            slot += 1
            if slot == slots:
                slot = 0
        code = table[2 * slot + 1] - 1
        if code < 0:
            if size == firsts.size:
                return i, size
            code = np.int64(size)
            firsts[size] = i
            size += 1
            table[2 * slot], table[2 * slot + 1] = key, size
        codes[i] = code
    return keys.size, size


@kernel
def _rehashed(keys, firsts, size, slots):
    """The table of the keys met so far, with so many slots."""
    table = np.zeros(2 * slots, np.int64)
    for code in range(size):
        key = keys[firsts[code]]
        slot = slot_of(mix(np.uint64(key)), slots)
        while table[2 * slot + 1]:
            slot += 1
            if slot == slots:
                slot = 0
        table[2 * slot], table[2 * slot + 1] = key, code + 1
    return table


@kernel
def paired(first, width, second):
    """One key for each pair, the second of which is below `width`."""
    out = np.empty(first.size, np.int64)
    for i in range(first.size):
        out[i] = first[i] * np.int64(width) + second[i]
    return out


@kernel
def picked(codes, rows):
    """The codes of some rows."""
    out = np.empty(rows.size, np.int32)
    for i in range(rows.size):
        out[i] = codes[rows[i]]
    return out


@kernel
def tally(codes, size):
    """How often each code below `size` occurs."""
    out = np.zeros(size, np.int64)
    for i in range(codes.size):
        out[codes[i]] += 1
    return out


@kernel
def tally_pairs(first, width, second, size):
    """As `tally`, of the keys of pairs."""
    out = np.zeros(size, np.int64)
    for i in range(first.size):
        out[first[i] * np.int64(width) + second[i]] += 1
    return out


@kernel
def rows_coded(codes, wanted, count):
    """The rows, `count` of them, whose code is wanted."""
    out = np.empty(count + 1, np.int64)
    found = 0
    for row in range(codes.size):
        out[found] = row  # without a branch: which rows are wanted cannot be foreseen
        found += wanted[codes[row]]
    return out[:found]


@inlined
def _add(high, low, more_high, more_low):
    """The sum of two pairs, as a pair."""
    total = high + more_high
    if not np.isfinite(total):
        return total, 0.0
    part = total - high
    rest = (high - (total - part)) + (more_high - part) + (low + more_low)
    out = total + rest
    return out, rest - (out - total)


@kernel
def _times(high, low, weight):
    """A pair times a whole number, as a pair."""
    if weight == 1:
        return high, low
    factor = np.float64(weight)
    product = high * factor
    if not np.isfinite(product) or abs(high) > 1e290:
        return product, 0.0
    a = _SPLIT * high
    a = a - (a - high)
    b = _SPLIT * factor
    b = b - (b - factor)
    rest = ((a * b - product) + a * (factor - b) + (high - a) * b) + (high - a) * (factor - b)
    return _add(product, rest, low * factor, 0.0)


@inlined
def _extend(real, before, seen, least, least_low, greatest, greatest_low):
    """Take in the least and the greatest of values of the kinds `seen`, where there were some of the kinds `before`:
    the least is a number where any value is one, the greatest a time.
    """
    if (seen & NUMBERS != 0) == (before & NUMBERS != 0):
        if least < real[2] or (least == real[2] and least_low < real[3]):
            real[2], real[3] = least, least_low
    elif seen & NUMBERS:
        real[2], real[3] = least, least_low
    if (seen & TIMES != 0) == (before & TIMES != 0):
        if greatest > real[4] or (greatest == real[4] and greatest_low > real[5]):
            real[4], real[5] = greatest, greatest_low
    elif seen & TIMES:
        real[4], real[5] = greatest, greatest_low


@kernel
def add_measured(groups, codes, weights, kinds, high, low, whole, real):
    """Add one attribute's values to those of their groups: value `codes[i]`, of so many posts (one each where there are
    no weights), to group `groups[i]`. `whole` has posts, numbers and the kinds seen of each group; `real` has the sum
    (high and low), the least and the greatest (alike). A number is less than any time.
    """
    for i in range(groups.size):
        code = codes[i]
        kind = kinds[code]
        if kind == MISSING:
            continue
        group = groups[i]
        weight = weights[i] if weights.size else np.int64(1)
        bit, before = np.int64(1) << np.int64(kind), whole[group, 2]
        whole[group, 0] += weight
        whole[group, 2] = before | bit
        if kind > TIME:
            continue
        value, rest = high[code], low[code]
        _extend(real[group], before, bit, value, rest, value, rest)
        if kind <= REAL:
            whole[group, 1] += weight
            more, rest = _times(value, rest, weight)
            real[group, 0], real[group, 1] = _add(real[group, 0], real[group, 1], more, rest)


@kernel
def add_groups(into, posts, counts, numbers, sums, low, least, least_low, greatest, greatest_low, seen, size):
    """Partial aggregates added up: row i of the arrays goes to group `into[i]`. (posts, and the others in one array
    each for whole numbers and doubles, as `add_measured` has them.)
    """
    width = counts.shape[1]
    out = np.zeros(size, np.int64)
    whole = np.zeros((size, width, 3), np.int64)
    real = np.zeros((size, width, 6), np.float64)
    real[:, :, 2] = np.inf
    real[:, :, 4] = -np.inf
    for i in range(into.size):
        out[into[i]] += posts[i]
        for j in range(width):
            to_whole, to_real = whole[into[i], j], real[into[i], j]
            to_whole[0] += counts[i, j]
            to_whole[1] += numbers[i, j]
            to_real[0], to_real[1] = _add(to_real[0], to_real[1], sums[i, j], low[i, j])
            kinds = np.int64(seen[i, j])
            _extend(to_real, to_whole[2], kinds, least[i, j], least_low[i, j], greatest[i, j], greatest_low[i, j])
            to_whole[2] |= kinds
    return out, whole, real


@kernel
def count_words(data, starts, rows, groups, size, words):
    """In how many posts of each group each word occurs: (group, code, posts), by group.

    Posts are taken group by group, so that one array of counts serves all; what a group has touched is cleared after
    it. `words` is the number of codes; code 0, the boundary, is no word.
    """
    begin = np.zeros(size + 1, np.int64)
    for i in range(groups.size):
        begin[groups[i] + 1] += 1
    for group in range(size):
        begin[group + 1] += begin[group]
    ordered = np.empty(rows.size, np.int64)
    place = begin.copy()
    for i in range(rows.size):
        ordered[place[groups[i]]] = rows[i]
        place[groups[i]] += 1
    counts = np.zeros(words, np.int32)
    last = np.full(words, -1, np.int64)  # the row that a word was counted of last
    touched = np.empty(words, np.int64)
    out_group = np.empty(1024, np.int64)
    out_code = np.empty(1024, np.int64)
    out_posts = np.empty(1024, np.int64)
    n = 0
    for group in range(size):
        used = 0
        for i in range(begin[group], begin[group + 1]):
            row = ordered[i]
            head, at = get(data, post_at(data, starts, row))
            end = at + (head >> 1)
            while at < end:
                code, at = get(data, at)
                if code == 0 or last[code] == row:
                    continue
                last[code] = row
                if counts[code] == 0:
                    touched[used] = code
                    used += 1
                counts[code] += 1
        while n + used > out_group.size:
            out_group = np.concatenate((out_group, np.empty(out_group.size, np.int64)))
            out_code = np.concatenate((out_code, np.empty(out_code.size, np.int64)))
            out_posts = np.concatenate((out_posts, np.empty(out_posts.size, np.int64)))
        for i in range(used):
            code = touched[i]
            out_group[n], out_code[n], out_posts[n] = group, code, counts[code]
            counts[code] = 0
            n += 1
    return out_group[:n], out_code[:n], out_posts[:n]


@kernel
def time_bounds(order, data, width, base, since, until):
    """Of rows in order of their times, the part [begin, end) whose times are in [since, until)."""
    bounds = np.empty(2, np.int64)
    for side in range(2):
        value = since if side == 0 else until
        low, high = np.int64(0), np.int64(order.size)
        while low < high:
            middle = (low + high) >> 1
            if integer_at(data, width, base, order[middle]) < value:
                low = middle + 1
            else:
                high = middle
        bounds[side] = low
    return bounds[0], bounds[1]
