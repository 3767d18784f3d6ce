"""Finding rows by id in a segment whose `id_keys` are sorted; one id may have several versions there."""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.mix import mix
from nearcast.common.kernels.sorting import hashed_bound


@kernel
def digests(numbers, shape, shape_offsets, code, code_offsets, extra):
    """A 64-bit digest of each encoded query: its numbers (as bits, an array each), shape, code, and `extra`."""
    out = np.empty(extra.size, np.uint64)
    shape_bits = shape.view(np.uint64)
    for row in range(out.size):
        z = mix(extra[row])
        for column in numbers:
            z = mix(z ^ column[row])
        for j in range(shape_offsets[row], shape_offsets[row + 1]):
            z = mix(z ^ shape_bits[j])
        for j in range(code_offsets[row], code_offsets[row + 1]):
            z = mix(z ^ code[j])
        out[row] = z
    return out


@kernel
def sorted_members(sorted_values, values):
    """Which of `values` occur in `sorted_values`."""
    out = np.zeros(values.size, np.bool_)
    for i in range(values.size):
        at = hashed_bound(sorted_values, values[i])
        out[i] = at < sorted_values.size and sorted_values[at] == values[i]
    return out
