"""Looking up subscriptions by their ids: one id may have several versions, each with its number (`seq`)."""

import numpy as np

from nearcast.common.kernels.compiled import kernel
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
