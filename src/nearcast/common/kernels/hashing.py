"""A stable 64-bit hash of strings: the same on every machine, in every process, for ever (ids are stored under it)."""

import numpy as np

from nearcast.common.kernels.compiled import kernel

_BASIS = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@kernel
def hash_strings(data: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """FNV-1a of each string `data[offsets[i]:offsets[i + 1]]` (bytes), mixed by splitmix64's finaliser, as int64."""
    hashes = np.empty(offsets.size - 1, np.int64)
    for i in range(offsets.size - 1):
        h = _BASIS
        for j in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(data[j])) * _PRIME
        h = (h ^ (h >> _S30)) * _MIX_1
        h = (h ^ (h >> _S27)) * _MIX_2
        hashes[i] = np.int64(h ^ (h >> _S31))
    return hashes
