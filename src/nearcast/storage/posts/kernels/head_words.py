"""Which posts of a block have each of the HEAD most frequent words, as bits: 8 bytes a post.

The posts of a block that a search asks for are two words of 64 bits, and in how many of them a frequent word occurs is
how many bits these have in common with its own: a fiftieth of the time that reading the words of the posts takes.
"""

import numpy as np
from numba import types
from numba.extending import intrinsic

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.varint import get
from nearcast.storage.posts.kernels.blocks import BLOCK

HEAD = 64  # codes; 0 is no word
HALF = 64  # posts of a word of bits, of which a block has two
OF_BLOCK = 2 * HEAD

ALL, ONE = np.uint64(2**64 - 1), np.uint64(1)


@intrinsic
def ones(typing_context, value):
    """How many bits of a 64-bit word are set."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@kernel
def write_heads(data, starts, rows):
    """The bits of all blocks: for each code two words, the first of the first HALF posts."""
    bits = np.zeros((rows + BLOCK - 1) // BLOCK * OF_BLOCK, np.uint64)
    at = starts[0]
    for row in range(rows):
        place = row // BLOCK * OF_BLOCK + row % BLOCK // HALF
        bit = ONE << np.uint64(row % HALF)
        head, at = get(data, at)
        end = at + (head >> 1)
        while at < end:
            code, at = get(data, at)
            if code < HEAD:
                bits[np.uint64(place + 2 * code)] |= bit
    return bits


@kernel
def subtract_heads(bits, block, low, high, counts):
    """Subtract the frequent words of the posts of a block whose bits are set."""
    begin = block * OF_BLOCK
    for code in range(1, min(HEAD, counts.size - 1)):
        at = np.uint64(begin + 2 * code)
        counts[np.uint64(code)] -= np.int32(ones(bits[at] & low) + ones(bits[at + ONE] & high))
