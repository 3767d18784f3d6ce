"""64-bit mixing: every hash of the system goes through these few lines."""

import numpy as np

from nearcast.common.kernels.compiled import inlined, kernel

ANY_TERM = np.uint64(0)  # the term that every post has: the key of a conjunction without a positive word


@inlined
def mix(value):
    """Spread a 64-bit value over all 64 bits (the finaliser of splitmix64)."""
    z = np.uint64(value) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def pair_hash(first, second):
    """Hash of an ordered pair of which `first` is already well mixed."""
    z = (np.uint64(first) ^ np.uint64(second)) * np.uint64(0xD6E8FEB86659FD93)
    return z ^ (z >> np.uint64(32))


@inlined
def slot_of(hashed, slots):
    """A slot in [0, slots) from the high bits of a hash, for any number of slots."""
    return np.int64(((hashed >> np.uint64(32)) * np.uint64(slots)) >> np.uint64(32))


@kernel
def fingerprints(ids, textual, ts, lon, lat):
    """One 64-bit value per post from its id, time and place: equal for a duplicate, and for nothing else in
    practice.
    """
    out = np.empty(ids.size, np.uint64)
    lon_bits = lon.view(np.uint64)
    lat_bits = lat.view(np.uint64)
    for i in range(ids.size):
        z = mix(np.uint64(ids[i]) ^ (np.uint64(0x5851F42D4C957F2D) if textual[i] else np.uint64(0)))
        z = mix(z ^ np.uint64(ts[i]))
        # -0.0 and 0.0 are one place
        z = mix(z ^ (lon_bits[i] if lon[i] != 0.0 else np.uint64(0)))
        out[i] = mix(z ^ (lat_bits[i] if lat[i] != 0.0 else np.uint64(0)))
    return out


@kernel
def id_keys(ids, textual):
    """One 64-bit key per id; an integer id and a string id never share one on purpose."""
    out = np.empty(ids.size, np.uint64)
    for i in range(ids.size):
        out[i] = mix(np.uint64(ids[i]) ^ (np.uint64(0x5851F42D4C957F2D) if textual[i] else np.uint64(0)))
    return out
