"""Dividing the words of queries among parts, and what posts each part then gets (PS2Stream §IV-B, §VI-B)."""

import numpy as np

from nearcast.common.kernels.compiled import kernel


@kernel
def count_words(rows, offsets, words, vocabulary):
    """How often each word occurs in the given rows."""
    out = np.zeros(vocabulary, np.float64)
    for i in range(rows.size):
        for j in range(offsets[rows[i]], offsets[rows[i] + 1]):
            out[words[j]] += 1
    return out


@kernel
def sent_posts(rows, offsets, words, part_of, parts):
    """(starts, posts): the posts that have a word of each part, in order; part_of[word] is -1 for a word of none."""
    last = np.full(parts, np.int64(-1))
    starts = np.zeros(parts + 1, np.int64)
    for turn in range(2):
        if turn == 1:
            out = np.empty(starts[parts], np.int64)
            at = starts[:-1].copy()
            last[:] = -1
        for i in range(rows.size):
            for j in range(offsets[rows[i]], offsets[rows[i] + 1]):
                part = part_of[words[j]]
                if part >= 0 and last[part] != i:
                    last[part] = i
                    if turn == 0:
                        starts[part + 1] += 1
                    else:
                        out[at[part]] = rows[i]
                        at[part] += 1
        if turn == 0:
            for part in range(parts):
                starts[part + 1] += starts[part]
    return starts, out


@kernel
def inside(posts, x, y, queries, rectangles, x0, y0, x1, y1):
    """Those of the posts that lie in a rectangle of cells, and those of the queries one of whose two touches it."""
    kept, touching = np.empty(posts.size, np.int64), np.empty(queries.size, np.int64)
    n = m = 0
    for post in posts:
        if x0 <= x[post] < x1 and y0 <= y[post] < y1:
            kept[n] = post
            n += 1
    for query in queries:
        for at in (0, 4):
            a0, b0, a1, b1 = (
                rectangles[query, at],
                rectangles[query, at + 1],
                rectangles[query, at + 2],
                rectangles[query, at + 3],
            )
            if a0 < a1 and a0 < x1 and x0 < a1 and b0 < y1 and y0 < b1:
                touching[m] = query
                m += 1
                break
    return kept[:n].copy(), touching[:m].copy()


@kernel
def wanted_posts(posts, offsets, words, queries, key_offsets, keys, wordless, vocabulary):
    """Those of the posts that have a word which one of the queries is filed under; all, if one of them has no word."""
    asked = np.zeros(vocabulary, np.bool_)
    for query in queries:
        if wordless[query]:
            return posts.copy()
        for j in range(key_offsets[query], key_offsets[query + 1]):
            asked[keys[j]] = True
    out = np.empty(posts.size, np.int64)
    n = 0
    for post in posts:
        for j in range(offsets[post], offsets[post + 1]):
            if asked[words[j]]:
                out[n] = post
                n += 1
                break
    return out[:n].copy()


@kernel
def postings(rows, offsets, words, slot_of, slots):
    """(starts, places): for each slot the places in `rows` of those that have its word; slot_of[word] may be -1."""
    starts = np.zeros(slots + 1, np.int64)
    for i in range(rows.size):
        for j in range(offsets[rows[i]], offsets[rows[i] + 1]):
            if slot_of[words[j]] >= 0:
                starts[slot_of[words[j]] + 1] += 1
    for slot in range(slots):
        starts[slot + 1] += starts[slot]
    at = starts[:-1].copy()
    out = np.empty(starts[slots], np.int64)
    for i in range(rows.size):
        for j in range(offsets[rows[i]], offsets[rows[i] + 1]):
            slot = slot_of[words[j]]
            if slot >= 0:
                out[at[slot]] = i
                at[slot] += 1
    return starts, out


@kernel
def by_load(order, starts, posts, count, filed, parts, held, pair, post, query):
    """The part of each slot: in this order, each to the part whose load is least once it has the slot's posts, of which
    it may have some already, and the queries filed under it. Load: pair·O·Q + post·O + query·Q (Def. 1). The first part
    begins with `held` queries that want all of the `count` posts.
    """
    out = np.empty(order.size, np.int32)
    has = np.zeros((count, parts), np.bool_)
    o, q = np.zeros(parts), np.zeros(parts)
    if held:
        has[:, 0] = True
        o[0], q[0] = count, held
    more = np.empty(parts)
    for slot in order:
        more[:] = 0
        for i in range(starts[slot], starts[slot + 1]):
            for part in range(parts):
                if not has[posts[i], part]:
                    more[part] += 1
        best, best_load = 0, np.inf
        for part in range(parts):
            all_posts, all_queries = o[part] + more[part], q[part] + filed[slot]
            load = pair * all_posts * all_queries + post * all_posts + query * all_queries
            if load < best_load:
                best, best_load = part, load
        out[slot] = best
        o[best] += more[best]
        q[best] += filed[slot]
        for i in range(starts[slot], starts[slot + 1]):
            has[posts[i], best] = True
    return out


@kernel
def merge_leaves(order, post_starts, posts, query_starts, queries, post_count, query_count, parts, pair, post, query):
    """(owner, loads): MergeNodesIntoPartitions of PS2Stream §IV-B. In this order each leaf goes to the part whose load
    grows least, if the balance L_max / L_min does not get worse by it, and else to the part with the least load. What a
    part has already, a post or query of another of its leaves, does not count twice. As long as a part is empty the
    balance is not defined, and leaves go to the empty ones.
    """
    owner = np.empty(order.size, np.int32)
    has_post = np.zeros((post_count, parts), np.bool_)
    has_query = np.zeros((query_count, parts), np.bool_)
    o, q, loads = np.zeros(parts), np.zeros(parts), np.zeros(parts)
    more_o, more_q = np.empty(parts), np.empty(parts)
    for leaf in order:
        more_o[:] = 0
        more_q[:] = 0
        for i in range(post_starts[leaf], post_starts[leaf + 1]):
            for part in range(parts):
                more_o[part] += not has_post[posts[i], part]
        for i in range(query_starts[leaf], query_starts[leaf + 1]):
            for part in range(parts):
                more_q[part] += not has_query[queries[i], part]
        lightest = cheapest = 0
        least = np.inf
        for part in range(parts):
            if loads[part] < loads[lightest]:
                lightest = part
            a, b = o[part] + more_o[part], q[part] + more_q[part]
            growth = pair * a * b + post * a + query * b - loads[part]
            if growth < least:
                cheapest, least = part, growth
        best = lightest
        if loads[lightest] > 0:
            grown = loads[cheapest] + least
            high, low, new_high, new_low = 0.0, np.inf, 0.0, np.inf
            for part in range(parts):
                high, low = max(high, loads[part]), min(low, loads[part])
                new = grown if part == cheapest else loads[part]
                new_high, new_low = max(new_high, new), min(new_low, new)
            if new_high / new_low <= high / low:
                best = cheapest
        owner[leaf] = best
        o[best] += more_o[best]
        q[best] += more_q[best]
        loads[best] = pair * o[best] * q[best] + post * o[best] + query * q[best]
        for i in range(post_starts[leaf], post_starts[leaf + 1]):
            has_post[posts[i], best] = True
        for i in range(query_starts[leaf], query_starts[leaf + 1]):
            has_query[queries[i], best] = True
    return owner, loads
