"""Terms of groups, with the posts that have them, as lists one after the other: counted, taken and added up.

Lists are worked on group by group, so that what is looked up again and again is small enough for a near cache.
"""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.prefetch import prefetch
from nearcast.common.kernels.sorting import sift, sort_in_place

AHEAD = 8  # terms, whose slots are asked for beforehand


@kernel
def list_starts(of, size):
    """Where the list of each group begins, and the last ends; nothing where `of` does not ascend."""
    starts = np.zeros(size + 1, np.int64)
    before = np.int64(0)
    for i in range(of.size):
        if of[i] != before:
            if of[i] < before:
                return starts[:0]
            starts[before + 1 : of[i] + 1] = i
            before = of[i]
    starts[before + 1 :] = of.size
    return starts


@kernel
def take_term_lists(starts, terms, posts, rows):
    """Some lists, in the order given: (place in that order, term, posts)."""
    size = np.int64(0)
    for i in range(rows.size):
        size += starts[rows[i] + 1] - starts[rows[i]]
    out_of, out_term, out_posts = np.empty(size, np.int64), np.empty(size, terms.dtype), np.empty(size, posts.dtype)
    n = np.int64(0)
    for i in range(rows.size):
        begin, end = starts[rows[i]], starts[rows[i] + 1]
        n = _copy(terms[begin:end], posts[begin:end], out_term, out_posts, n)
        out_of[n - (end - begin) : n] = i
    return out_of, out_term, out_posts


@kernel
def _copy(terms, posts, out_term, out_posts, n):
    """Put a list at place `n`; where it ends. Loops of their own become copies of memory."""
    for i in range(terms.size):
        out_term[n + i] = terms[i]
    for i in range(posts.size):
        out_posts[n + i] = posts[i]
    return n + terms.size


@kernel
def in_groups(groups, size):
    """(the places of each group's members, one group after the other; where each group begins)."""
    begin = np.zeros(size + 1, np.int64)
    for i in range(groups.size):
        begin[groups[i] + 1] += 1
    for group in range(size):
        begin[group + 1] += begin[group]
    place = begin[:-1].copy()
    ordered = np.empty(groups.size, np.int64)
    for i in range(groups.size):
        ordered[place[groups[i]]] = i
        place[groups[i]] += 1
    return ordered, begin


@kernel
def add_term_lists(into, size, starts, terms, posts):
    """Lists added up, list i for group `into[i]`: (group, term, posts) in the order of groups. A term is there once in
    a list.
    """
    ordered, begin = in_groups(into, size)
    most = np.int64(0)
    for group in range(size):
        total = np.int64(0)
        for i in range(begin[group], begin[group + 1]):
            total += starts[ordered[i] + 1] - starts[ordered[i]]
        if begin[group + 1] - begin[group] > 1:
            most = max(most, total)
    table = np.full(_slots(most), -1, np.int32)
    out_of, out_term, out_posts = np.empty(terms.size, np.int64), np.empty_like(terms), np.empty_like(posts)
    n = np.int64(0)
    for group in range(size):
        first = n
        lists = ordered[begin[group] : begin[group + 1]]
        if lists.size == 1:
            low, high = starts[lists[0]], starts[lists[0] + 1]
            n = _copy(terms[low:high], posts[low:high], out_term, out_posts, n)
        else:
            n = _add_lists(lists, starts, terms, posts, table, out_term, out_posts, n)
        out_of[first:n] = group
    return out_of[:n], out_term[:n], out_posts[:n]


@kernel
def _slots(terms):
    """A power of two, at least twice as many."""
    slots = np.int64(16)
    while slots < 2 * terms:
        slots *= 2
    return slots


@kernel
def _add_lists(lists, starts, terms, posts, table, out_term, out_posts, n):
    """Add the lists of one group from place `n` on; where they end. A slot of the table is a place of the output; one
    before `n` is of another group, and free. Terms are hashes, whose low bits are as good as any.
    """
    total = np.int64(0)
    for i in range(lists.size):
        total += starts[lists[i] + 1] - starts[lists[i]]
    mask, first = np.uint64(_slots(total) - 1), n
    for i in range(lists.size):
        end = starts[lists[i] + 1]
        for at in range(starts[lists[i]], end):
            if at + AHEAD < end:
                prefetch(table, np.int64(terms[at + AHEAD] & mask))
            term = terms[at]
            slot = term & mask
            while table[slot] >= first and out_term[table[slot]] != term:
                slot = (slot + np.uint64(1)) & mask
            place = table[slot]
            if place >= first:
                out_posts[place] += posts[at]
            else:
                table[slot] = n
                out_term[n], out_posts[n] = term, posts[at]
                n += 1
    return n


@kernel
def frequent_terms(starts, terms, posts, rows, k):
    """Of some lists those terms that the k most frequent are among, all that tie with the last of them included:
    (place of the list in the order given, term, posts).
    """
    size = np.int64(0)
    for i in range(rows.size):
        size += starts[rows[i] + 1] - starts[rows[i]]
    out_of, out_term, out_posts = np.empty(size, np.int64), np.empty(size, terms.dtype), np.empty(size, posts.dtype)
    n = 0
    for i in range(rows.size):
        begin, end = starts[rows[i]], starts[rows[i] + 1]
        least = _reached(posts[begin:end], k)
        for at in range(begin, end):
            if posts[at] >= least:
                out_of[n], out_term[n], out_posts[n] = i, terms[at], posts[at]
                n += 1
    return out_of[:n], out_term[:n], out_posts[:n]


@kernel
def _reached(counts, k):
    """The greatest count that k of them reach; 1 if there are fewer."""
    low, high = np.int64(1), np.int64(1)
    for i in range(counts.size):
        high = max(high, counts[i])
    while low < high:
        middle = (low + high + 1) >> 1
        reached = 0
        for i in range(counts.size):
            reached += counts[i] >= middle
        if reached >= k:
            low = middle
        else:
            high = middle - 1
    return low


@kernel
def least_keys(of, keys, groups, k):
    """The k least keys of each group, ascending, where `of` ascends: (keys, where those of each group begin)."""
    starts = list_starts(of, groups)
    begin = np.zeros(groups + 1, np.int64)
    for group in range(groups):
        begin[group + 1] = begin[group] + min(k, starts[group + 1] - starts[group])
    out = np.empty(begin[groups], np.int64)
    for group in range(groups):
        least = out[begin[group] : begin[group + 1]]  # first a heap, the greatest of them on top
        least[:] = keys[starts[group] : starts[group] + least.size]
        for root in range(least.size // 2 - 1, -1, -1):
            sift(least, root, np.int64(least.size))
        for at in range(starts[group] + least.size, starts[group + 1]):
            if keys[at] < least[0]:
                least[0] = keys[at]
                sift(least, np.int64(0), np.int64(least.size))
        sort_in_place(least, least.size)
    return out, begin


@kernel
def distinct_codes(codes, terms, offsets, words):
    """The codes (below `words`) of each post's terms, each once and without the boundary 0: (codes, offsets)."""
    out, ends = np.empty(codes.size, np.int32), np.zeros(offsets.size, np.int64)
    last = np.full(words, -1, np.int64)  # the post that a word was met in last
    n = 0
    for post in range(offsets.size - 1):
        for at in range(np.int64(offsets[post]), np.int64(offsets[post + 1])):
            code = codes[at]
            if terms[at] != 0 and last[code] != post:
                last[code] = post
                out[n] = code
                n += 1
        ends[post + 1] = n
    return out[:n].copy(), ends


@kernel
def count_codes(codes, offsets, posts, groups, size, words):
    """In how many posts of a group each word occurs, of posts (their rows) and their groups: (group, code, posts) in
    the order of groups.
    """
    ordered, begin = in_groups(groups, size)
    most = np.int64(0)
    for i in range(posts.size):
        most += offsets[posts[i] + 1] - offsets[posts[i]]
    place = np.full(words, -1, np.int64)  # where a word was put last; before the group's first it is another's
    out_of, out_code, out_posts = np.empty(most, np.int64), np.empty(most, np.int32), np.empty(most, np.int64)
    n = np.int64(0)
    for group in range(size):
        first = n
        for i in range(begin[group], begin[group + 1]):
            post = posts[ordered[i]]
            for at in range(offsets[post], offsets[post + 1]):
                code = codes[at]
                if place[code] >= first:
                    out_posts[place[code]] += 1
                else:
                    place[code] = n
                    out_of[n], out_code[n], out_posts[n] = group, code, 1
                    n += 1
    return out_of[:n], out_code[:n], out_posts[:n]
