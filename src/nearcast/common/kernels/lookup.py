"""Finding rows by id in a segment whose `id_keys` are sorted; one id may have several versions there."""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.mix import mix
from nearcast.common.kernels.sorting import hashed_bound
from nearcast.storage.subscriptions.kernels.match import SEQ


@kernel
def rows_of_versions(id_keys, id_rows, records, keys, seqs):
    """(row, i) for every row that holds version `seqs[i]`, or an earlier one, of the id with key `keys[i]`."""
    rows = np.empty(keys.size + 16, np.int64)
    which = np.empty(keys.size + 16, np.int64)
    n = 0
    for i in range(keys.size):
        at = hashed_bound(id_keys, keys[i])
        while at < id_keys.size and id_keys[at] == keys[i]:
            row = np.int64(id_rows[at])
            at += 1
            if records[row, SEQ] > seqs[i]:
                continue
            if n == rows.size:
                rows = np.concatenate((rows, np.empty(n, np.int64)))
                which = np.concatenate((which, np.empty(n, np.int64)))
            rows[n] = row
            which[n] = i
            n += 1
    return rows[:n].copy(), which[:n].copy()


@kernel
def latest_rows(id_keys, id_rows, records, keys):
    """The row of the newest version of each id, or -1."""
    out = np.full(keys.size, -1, np.int64)
    for i in range(keys.size):
        at = hashed_bound(id_keys, keys[i])
        while at < id_keys.size and id_keys[at] == keys[i]:
            row = np.int64(id_rows[at])
            if out[i] < 0 or records[row, SEQ] > records[out[i], SEQ]:
                out[i] = row
            at += 1
    return out


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
