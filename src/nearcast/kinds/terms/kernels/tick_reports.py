"""Reports of frequent terms on a beat (SSTD's CTQ §6.1 and Fig. 6).

Subscriptions come in groups of one window and one beat whose regions lie together. The posts of a group are looked up
once; those in every region are counted in the table that all of the group have in common, the others in individual
tables. A report is the k greatest sums of the two. Posts enter and leave the tables as the window slides over the beats
that are due, so that a beat costs what has changed.
"""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.geometry import in_bbox, in_region
from nearcast.common.kernels.growing import grown
from nearcast.common.kernels.sorting import lower_bound, sort_in_place
from nearcast.common.kernels.tick_limits import MOST_EMPTY
from nearcast.common.kernels.top_words import best_first, top_words
from nearcast.storage.subscriptions.kernels.register import grid_coordinate, z_code

MOST = 16  # members of a group: more share the common table, and have less in common
SMALL = 32  # posts of one cell: fewer are not worth looking at by parts
BITS = 32  # of a coordinate in a Z-order code
ONE = np.uint64(1)


@kernel
def posts_in_box(z, lon, lat, ts, first, last, box, since, until, picked, count):
    """(picked, count) with those of the posts from `first` to `last`, which lie along the Z-order curve of the world,
    that are in a box (which does not cross the antimeridian) and in the time (since, until].
    """
    x0, x1 = grid_coordinate(box[0], -180.0, 360.0), grid_coordinate(box[2], -180.0, 360.0)
    y0, y1 = grid_coordinate(box[1], -90.0, 180.0), grid_coordinate(box[3], -90.0, 180.0)
    lows, highs = np.empty(4 * BITS, np.int64), np.empty(4 * BITS, np.int64)
    xs, ys = np.empty(4 * BITS, np.int64), np.empty(4 * BITS, np.int64)
    shifts = np.empty(4 * BITS, np.int64)
    lows[0], highs[0], xs[0], ys[0], shifts[0] = first, last, 0, 0, BITS
    depth = 1
    while depth:
        depth -= 1
        low, high, x, y, shift = lows[depth], highs[depth], xs[depth], ys[depth], shifts[depth]
        right, top = x + (np.int64(1) << shift) - 1, y + (np.int64(1) << shift) - 1
        if low == high or right < x0 or x > x1 or top < y0 or y > y1:
            continue
        inside = x0 < x and right < x1 and y0 < y and top < y1
        if inside or high - low <= SMALL or shift == 0:
            if count + high - low > picked.size:
                picked = grown(picked, 2 * (count + high - low))
            for i in range(low, high):
                if since < ts[i] <= until and in_bbox(box[0], box[1], box[2], box[3], lon[i], lat[i]):
                    picked[count] = i
                    count += 1
            continue
        half = np.int64(1) << (shift - 1)
        for quarter in range(4):
            cx, cy = x + half * (quarter & 1), y + half * (quarter >> 1)
            end = high
            if quarter < 3:
                ahead = quarter + 1
                end = low + lower_bound(z[low:high], z_code(x + half * (ahead & 1), y + half * (ahead >> 1)))
            lows[depth], highs[depth], xs[depth], ys[depth], shifts[depth] = low, end, cx, cy, shift - 1
            depth += 1
            low = end
    return picked, count


@kernel
def count_post(post, mask, full, change, starts, codes, local, common, own):
    """Add a post to the tables of those whose region it is in, or take it away."""
    if mask == full:
        for j in range(starts[post], starts[post + 1]):
            common[local[codes[j]]] += change
        return
    member = 0
    while mask:
        if mask & ONE:
            for j in range(starts[post], starts[post + 1]):
                own[member, local[codes[j]]] += change
        mask >>= ONE
        member += 1


@kernel
def report_groups(posts, spellings, groups, regions, k, due):
    """The reports that are due, as (member, window_end, skipped, rows_end, words, counts): at most `k` words each.

    Report i has the words up to `rows_end[i]`; `skipped` is 0 but for those that tell how many were not sent.
    """
    z, lon, lat, ts, by_time, rank, starts, codes, parts = posts
    prefixes, word_starts, word_data = spellings
    firsts, windows, beats, listed, list_starts = groups
    kinds, boxes, shape, shape_offsets = regions
    begins, dues, empties, final = due
    members, ends = np.empty(1024, np.int32), np.empty(1024, np.int64)
    skips, row_ends = np.empty(1024, np.int64), np.empty(1024, np.int64)
    out_words, out_counts = np.empty(4096, np.int64), np.empty(4096, np.int64)
    n = used = np.int64(0)
    local = np.full(prefixes.size, -1, np.int32)
    numbers = np.empty(4096, np.int64)
    picked, masks = np.empty(4096, np.int64), np.empty(4096, np.uint64)
    ranks = np.empty(4096, np.int64)
    best_words, best_counts = np.empty(64, np.int64), np.empty(64, np.int64)
    for group in range(firsts.size - 1):
        a, b = firsts[group], firsts[group + 1]
        width = b - a
        window, beat = windows[group], beats[group]
        low, high = np.int64(2**62), np.int64(-(2**62))
        for m in range(a, b):
            if dues[m]:
                low = min(low, begins[m])
                high = max(high, begins[m] + (dues[m] - 1) * beat)
        count = np.int64(0)
        if low <= high:
            if list_starts[group] != list_starts[group + 1] and listed[list_starts[group]] == -1:
                box = np.array([180.0, 90.0, -180.0, -90.0])
                for m in range(a, b):
                    wraps = boxes[m, 0] > boxes[m, 2]
                    box[0] = -180.0 if wraps else min(box[0], boxes[m, 0])
                    box[1] = min(box[1], boxes[m, 1])
                    box[2] = 180.0 if wraps else max(box[2], boxes[m, 2])
                    box[3] = max(box[3], boxes[m, 3])
                for part in range(parts.size - 1):
                    picked, count = posts_in_box(
                        z, lon, lat, ts, parts[part], parts[part + 1], box, low - window, high, picked, count
                    )
            else:
                for i in range(list_starts[group], list_starts[group + 1]):
                    if low - window < ts[listed[i]] <= high:
                        if count == picked.size:
                            picked = grown(picked, 2 * count)
                        picked[count] = listed[i]
                        count += 1
        # whose regions each post is in
        if masks.size < picked.size:
            masks = np.empty(picked.size, np.uint64)
            ranks = np.empty(picked.size, np.int64)
        sliding = low < high
        if sliding:
            for i in range(count):
                ranks[i] = rank[picked[i]]
            sort_in_place(ranks, count)
            for i in range(count):
                picked[i] = by_time[ranks[i]]
        full = np.uint64(0xFFFFFFFFFFFFFFFF) if width == 64 else (ONE << np.uint64(width)) - ONE
        kept = 0
        size = 0
        for i in range(count):
            post = picked[i]
            mask = np.uint64(0)
            for m in range(a, b):
                if in_region(
                    kinds[m], boxes[m, 0], boxes[m, 1], boxes[m, 2], boxes[m, 3], shape,
                    shape_offsets[m], shape_offsets[m + 1], lon[post], lat[post],
                ):  # fmt: skip
                    mask |= ONE << np.uint64(m - a)
            if not mask:
                continue
            picked[kept], masks[kept] = post, mask
            kept += 1
            for j in range(starts[post], starts[post + 1]):
                code = codes[j]
                if local[code] < 0:
                    if size == numbers.size:
                        numbers = grown(numbers, 2 * size)
                    local[code] = size
                    numbers[size] = code
                    size += 1
        common = np.zeros(size, np.int32)
        own = np.zeros((width, size), np.int32)
        entered = left = 0
        now = low
        while now <= high:
            while entered < kept and (not sliding or ts[picked[entered]] <= now):
                count_post(picked[entered], masks[entered], full, 1, starts, codes, local, common, own)
                entered += 1
            while left < entered and sliding and ts[picked[left]] <= now - window:
                count_post(picked[left], masks[left], full, -1, starts, codes, local, common, own)
                left += 1
            until = now  # the last beat of a stretch in which all windows are empty
            if left == entered:
                until = high
                if entered < kept:
                    following = ts[picked[entered]]  # its first beat is the first that is not empty
                    until = min(high, now + (following - now - 1) // beat * beat)
            for m in range(a, b):
                since, last = max(now, begins[m]), min(until, begins[m] + (dues[m] - 1) * beat)
                if since > last:
                    continue
                found = 0
                if left < entered:
                    most = min(k[m], size)
                    if most > best_words.size:
                        best_words, best_counts = np.empty(2 * most, np.int64), np.empty(2 * most, np.int64)
                    found = top_words(
                        common, own[m - a], numbers, size, most,
                        best_words, best_counts, prefixes, word_starts, word_data,
                    )  # fmt: skip
                    best_first(found, best_words, best_counts, prefixes, word_starts, word_data)
                told = min((last - since) // beat + 1, max(0, MOST_EMPTY - empties[m]))
                if n + told + 2 > members.size:
                    members, ends = grown(members, 2 * (n + told + 2)), grown(ends, 2 * (n + told + 2))
                    skips, row_ends = grown(skips, 2 * (n + told + 2)), grown(row_ends, 2 * (n + told + 2))
                if not found:
                    for i in range(told):
                        members[n], ends[n], skips[n], row_ends[n] = m, since + i * beat, 0, used
                        n += 1
                    empties[m] += (last - since) // beat + 1
                    continue
                if empties[m] > MOST_EMPTY:
                    members[n], ends[n], skips[n], row_ends[n] = m, now - beat, empties[m] - MOST_EMPTY, used
                    n += 1
                empties[m] = 0
                if used + found > out_words.size:
                    out_words, out_counts = grown(out_words, 2 * (used + found)), grown(out_counts, 2 * (used + found))
                for i in range(found):
                    out_words[used], out_counts[used] = best_words[i], best_counts[i]
                    used += 1
                members[n], ends[n], skips[n], row_ends[n] = m, now, 0, used
                n += 1
            now = until + beat
        for i in range(size):
            local[numbers[i]] = -1
        for m in range(a, b):
            if final[m] and empties[m] > MOST_EMPTY:
                if n == members.size:
                    members, ends = grown(members, 2 * n), grown(ends, 2 * n)
                    skips, row_ends = grown(skips, 2 * n), grown(row_ends, 2 * n)
                members[n], ends[n] = m, begins[m] + (dues[m] - 1) * beat
                skips[n], row_ends[n] = empties[m] - MOST_EMPTY, used
                n += 1
                empties[m] = 0
    return members[:n], ends[:n], skips[:n], row_ends[:n], out_words[:used], out_counts[:used]


@kernel
def distinct_codes(codes, offsets, numbers):
    """(codes, starts): the words of each post once, by their `numbers`; those with a negative one are left out."""
    out = np.empty(codes.size, np.int32)
    starts = np.empty(offsets.size, np.int64)
    n = 0
    starts[0] = 0
    seen = np.full(numbers.size, -1, np.int64)
    for i in range(offsets.size - 1):
        for j in range(offsets[i], offsets[i + 1]):
            code = codes[j]
            if numbers[code] >= 0 and seen[code] != i:
                seen[code] = i
                out[n] = numbers[code]
                n += 1
        starts[i + 1] = n
    return out[:n], starts


@kernel
def cut_groups(boxes, keys, most, growth):
    """Where groups begin, of rows that lie sorted by key and along a curve: at most `most` rows of one key, whose
    bounding box is at most `growth` times as large as the largest of theirs; what crosses the antimeridian is alone.
    """
    out = np.empty(keys.size + 1, np.int64)
    n = 0
    begin = 0
    west = south = east = north = largest = 0.0
    for i in range(keys.size):
        w, s, e, t = boxes[i, 0], boxes[i, 1], boxes[i, 2], boxes[i, 3]
        area = (e - w) * (t - s)
        alone = w > e or boxes[begin, 0] > boxes[begin, 2]
        fits = i > 0 and keys[i] == keys[begin] and i - begin < most and not alone
        if fits:
            united = (max(east, e) - min(west, w)) * (max(north, t) - min(south, s))
            fits = united <= growth * max(largest, area)
        if fits:
            west, south, east, north = min(west, w), min(south, s), max(east, e), max(north, t)
            largest = max(largest, area)
        else:
            out[n] = i
            n += 1
            begin = i
            west, south, east, north, largest = w, s, e, t, area
    out[n] = keys.size
    return out[: n + 1]
