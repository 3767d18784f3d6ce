"""The k words that occur most often, best first; of equally frequent ones the first by code points."""

import numpy as np

from nearcast.common.kernels.compiled import kernel


@kernel
def word_before(a, b, prefixes, starts, data):
    """Whether word number a comes before word number b, by code points, which is the order of UTF-8 bytes."""
    if prefixes[a] != prefixes[b]:
        return prefixes[a] < prefixes[b]
    i, j = starts[a] + 8, starts[b] + 8
    while i < starts[a + 1] and j < starts[b + 1]:
        if data[i] != data[j]:
            return data[i] < data[j]
        i += 1
        j += 1
    return starts[a + 1] - starts[a] < starts[b + 1] - starts[b]


@kernel
def word_prefixes(starts, data):
    """The first 8 bytes of each word as a number that sorts as they do."""
    out = np.empty(starts.size - 1, np.uint64)
    for i in range(out.size):
        value = np.uint64(0)
        for j in range(8):
            at = starts[i] + j
            byte = np.uint64(data[at]) if at < starts[i + 1] else np.uint64(0)
            value = (value << np.uint64(8)) | byte
        out[i] = value
    return out


@kernel
def comes_first(count_a, a, count_b, b, prefixes, starts, data):
    if count_a != count_b:
        return count_a > count_b
    return word_before(a, b, prefixes, starts, data)


@kernel
def sink(words, counts, size, prefixes, starts, data):
    """Restore a heap, whose root is the last of its words, after a new root."""
    root = 0
    while True:
        child = 2 * root + 1
        if child >= size:
            return
        if child + 1 < size and comes_first(
            counts[child], words[child], counts[child + 1], words[child + 1], prefixes, starts, data
        ):
            child += 1
        if not comes_first(counts[root], words[root], counts[child], words[child], prefixes, starts, data):
            return
        words[root], words[child] = words[child], words[root]
        counts[root], counts[child] = counts[child], counts[root]
        root = child


@kernel
def offer(word, count, n, k, words, counts, prefixes, starts, data):
    """How many words a heap of the k best has, after one more was offered to it."""
    if n < k:  # the new one goes up as long as its parent comes before it
        at = n
        while at:
            parent = (at - 1) >> 1
            if not comes_first(counts[parent], words[parent], count, word, prefixes, starts, data):
                break
            words[at], counts[at] = words[parent], counts[parent]
            at = parent
        words[at], counts[at] = word, count
        return n + 1
    if comes_first(count, word, counts[0], words[0], prefixes, starts, data):
        words[0], counts[0] = word, count
        sink(words, counts, n, prefixes, starts, data)
    return n


@kernel
def best_first(n, words, counts, prefixes, starts, data):
    """Put a heap in order."""
    for end in range(n - 1, 0, -1):
        words[0], words[end] = words[end], words[0]
        counts[0], counts[end] = counts[end], counts[0]
        sink(words, counts, end, prefixes, starts, data)


@kernel
def top_words(common, own, numbers, size, k, words, counts, prefixes, starts, data):
    """How many words `words` and `counts` have, as a heap: the k greatest of common + own, if positive."""
    n = 0
    least = np.int32(1)  # that a count must have to be among the best so far
    for i in range(size):
        total = common[np.uint64(i)] + own[np.uint64(i)]
        if total >= least:
            n = offer(numbers[i], total, n, k, words, counts, prefixes, starts, data)
            if n == k:
                least = np.int32(counts[0])
    return n
