"""Texts in about half their bytes, each readable by itself: frequent strings of up to 8 bytes become one byte.

A segment has its own table of up to 254 symbols, learned from a sample of its texts in a few rounds: encode the sample,
count symbols and pairs of neighbours, keep what saves most (the idea of Boncz, Neumann and Leis 2020, "FSST"). The byte
255 announces a byte as it is. Without symbols texts are kept as they are.
"""

import numpy as np

from nearcast.common.kernels.compiled import inlined, kernel
from nearcast.common.kernels.growing import grown, put_all
from nearcast.common.kernels.prefetch import prefetch
from nearcast.common.kernels.varint import GROUP, GROUP_BITS, PADDING, get, put, put_size, record_at

MOST = 254
ESCAPE = 255
ZERO = np.uint64(0)
ROUNDS = 5
AHEAD = 6  # texts, which are asked for beforehand


@kernel
def _word(words, at):
    """Eight bytes from any place, the first the lowest."""
    shift = np.uint64((at & 7) * 8)
    here = np.uint64(at >> 3)
    more = words[here + np.uint64(1)] << (np.uint64(63) - shift)
    return words[here] >> shift | more << np.uint64(1)


@inlined
def _mask(length):
    return np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 8 * length)


@kernel
def _index(values, lengths):
    """How to find the longest symbol: for two first bytes where those that begin so are (`first`), the longest first,
    as values, masks and symbol | length << 16; and the same for one byte, where no symbol stands for it 256 + byte.

    The search itself is written out in both its places: as a function of its own it takes three times as long, and with
    signed indexes, of which Numba asks whether they count from the end, twice.
    """
    first = np.zeros(65537, np.int64)
    single = np.empty(256, np.int64)
    for byte in range(256):
        single[byte] = (256 + byte) | 1 << 16
    for i in range(values.size):
        if lengths[i] == 1:
            single[np.int64(values[i])] = i | 1 << 16
        else:
            first[np.int64(values[i] & np.uint64(0xFFFF)) + 1] += 1
    for i in range(65536):
        first[i + 1] += first[i]
    fill = first[:-1].copy()
    sought = np.empty(values.size, np.uint64)
    masks = np.empty(values.size, np.uint64)
    symbols = np.empty(values.size, np.int64)
    for length in range(8, 1, -1):
        for i in range(values.size):
            if lengths[i] == length:
                pair = np.int64(values[i] & np.uint64(0xFFFF))
                sought[fill[pair]] = values[i]
                masks[fill[pair]] = _mask(length)
                symbols[fill[pair]] = i | length << 16
                fill[pair] += 1
    return first, sought, masks, symbols, single


@kernel
def learn_symbols(data, bounds, picked):
    """(values, lengths) of the symbols that shorten the picked texts most."""
    words = data.view(np.uint64)
    values = np.empty(0, np.uint64)
    lengths = np.empty(0, np.uint8)
    for turn in range(ROUNDS):
        first, sought, masks, symbols, single = _index(values, lengths)
        n = values.size
        alone = np.zeros(n + 256, np.int64)  # symbols, then bytes as they are
        pairs = np.zeros((n + 256, n + 256), np.int32)
        for i in range(picked.size):
            at, end = bounds[picked[i]], bounds[picked[i] + 1]
            before = np.int64(-1)
            while at < end:
                word = _word(words, at)
                pair = word & np.uint64(0xFFFF)
                found = single[word & np.uint64(255)]
                j = first[pair]
                last = first[pair + np.uint64(1)]
                while j < last:
                    place = np.uint64(j)
                    if (word ^ sought[place]) & masks[place] == ZERO and symbols[place] >> 16 <= end - at:
                        found = symbols[place]
                        break
                    j += 1
                at += found >> 16
                symbol = found & 0xFFFF
                if symbol > 255:
                    symbol += n - 256
                alone[symbol] += 1
                if before >= 0:
                    pairs[before, symbol] += 1
                before = symbol
        capacity = 2 * (n + 256) + 4096
        string = np.empty(capacity, np.uint64)
        string_length = np.empty(capacity, np.uint8)
        gain = np.empty(capacity, np.int64)
        m = 0
        for i in range(n + 256):
            if alone[i]:
                string[m] = values[i] if i < n else np.uint64(i - n)
                string_length[m] = lengths[i] if i < n else 1
                gain[m] = alone[i] * (np.int64(lengths[i]) if i < n else 1)
                m += 1
        if turn + 1 < ROUNDS:
            least = np.int64(8)
            while True:  # the most frequent pairs, as many as there is room for
                room = 0
                for i in range(n + 256):
                    if alone[i] >= least:
                        for j in range(n + 256):
                            room += pairs[i, j] >= least
                if room <= 4096:
                    break
                least *= 2
            for i in range(n + 256):
                if alone[i] < least:
                    continue
                one = np.int64(lengths[i]) if i < n else 1
                for j in range(n + 256):
                    if pairs[i, j] < least:
                        continue
                    both = one + (np.int64(lengths[j]) if j < n else 1)
                    if both > 8:
                        continue
                    left = values[i] if i < n else np.uint64(i - n)
                    right = values[j] if j < n else np.uint64(j - n)
                    string[m] = left | (right << np.uint64(8 * one))
                    string_length[m] = both
                    gain[m] = np.int64(pairs[i, j]) * both
                    m += 1
        by_gain = np.argsort(-gain[:m])
        values = np.empty(min(m, MOST), np.uint64)
        lengths = np.empty(min(m, MOST), np.uint8)
        kept = 0
        for i in range(m):
            at = by_gain[i]
            known = False
            for j in range(kept):
                if values[j] == string[at] and lengths[j] == string_length[at]:
                    known = True
                    break
            if known:
                continue
            values[kept] = string[at]
            lengths[kept] = string_length[at]
            kept += 1
            if kept == MOST:
                break
        values, lengths = values[:kept].copy(), lengths[:kept].copy()
    return values, lengths


@kernel
def encode_texts(data, bounds, order, values, lengths):
    """(records, starts) of the texts in the given order. `data` is padded to whole words of 8 bytes, and one more."""
    starts = np.empty((order.size + GROUP - 1) // GROUP + 1, np.int64)
    total = np.int64(0)
    for i in range(order.size):
        total += bounds[order[i] + 1] - bounds[order[i]] + 5
    # Room for the most there can be, of which what is not written takes no memory.
    out = np.empty(2 * total + PADDING, np.uint8)
    at = np.int64(0)
    words = data.view(np.uint64)
    first, sought, masks, symbols, single = _index(values, lengths)
    for i in range(order.size):
        if i & (GROUP - 1) == 0:
            starts[i >> GROUP_BITS] = at
        begin, end = bounds[order[i]], bounds[order[i] + 1]
        if i + 2 * AHEAD < order.size:
            prefetch(bounds, order[i + 2 * AHEAD])
            ahead = bounds[order[i + AHEAD]]
            prefetch(words, ahead >> 3)
            prefetch(words, (ahead >> 3) + 8)
        if values.size == 0:
            at = put(out, at, end - begin)
            at = put_all(out, at, data, begin, end)
            continue
        write = at + 1
        while begin < end:
            word = _word(words, begin)
            pair = word & np.uint64(0xFFFF)
            found = single[word & np.uint64(255)]
            j = first[pair]
            last = first[pair + np.uint64(1)]
            while j < last:
                place = np.uint64(j)
                if (word ^ sought[place]) & masks[place] == ZERO and symbols[place] >> 16 <= end - begin:
                    found = symbols[place]
                    break
                j += 1
            begin += found >> 16
            symbol = found & 0xFFFF
            if symbol > 255:
                out[np.uint64(write)] = ESCAPE
                write += 1
            out[np.uint64(write)] = symbol & 255
            write += 1
        at = put_size(out, at, write, write - at - 1)
    starts[-1] = at
    return out[: at + PADDING], starts


@kernel
def decode_texts(records, starts, values, lengths, rows):
    """(bytes, offsets) of the texts of some rows."""
    offsets = np.empty(rows.size + 1, np.int64)
    out = np.empty(64 * rows.size + 64, np.uint8)
    n = np.int64(0)
    previous, following = np.int64(-2), np.int64(0)
    for i in range(rows.size):
        offsets[i] = n
        row = rows[i]
        at = following if row == previous + 1 else record_at(records, starts, row)
        size, at = get(records, at)
        end = at + size
        previous, following = row, end
        if n + 8 * size + 8 > out.size:
            out = grown(out, 2 * (n + 8 * size + 8))
        if values.size == 0:
            n = put_all(out, n, records, at, end)
            continue
        while at < end:
            symbol = records[np.uint64(at)]
            at += 1
            if symbol == ESCAPE:
                out[n] = records[np.uint64(at)]
                at += 1
                n += 1
                continue
            value = values[symbol]
            for j in range(8):  # always eight: what is too much is written over
                out[np.uint64(n + j)] = (value >> np.uint64(8 * j)) & np.uint64(255)
            n += np.int64(lengths[symbol])
    offsets[rows.size] = n
    return out[:n], offsets
