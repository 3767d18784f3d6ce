"""Arrays that turn out too small. NumPy's assignment to a slice would do, but compiling it takes Numba seconds."""

import numpy as np

from nearcast.common.kernels.compiled import kernel


@kernel
def grown(values, size):
    """A copy with room for `size` values."""
    out = np.empty(size, values.dtype)
    for i in range(values.size):
        out[i] = values[i]
    return out


@kernel
def put_all(out, at, values, begin, end):
    """Write a part of `values` to `out` from `at` on; where it ends there."""
    for i in range(begin, end):
        out[at] = values[i]
        at += 1
    return at
