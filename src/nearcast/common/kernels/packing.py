"""Columns in as few bytes as their values need: integers as an offset from a base, places as decimal fractions."""

import math

import numpy as np

from nearcast.common.kernels.compiled import kernel

DECIMALS = 1e7  # a place with at most 7 decimals is exactly a 32-bit integer over this


@kernel
def pack_integers(values, base, width):
    """Each value minus the base in `width` bytes, the lowest first."""
    out = np.empty(values.size * width, np.uint8)
    at = 0
    for i in range(values.size):
        rest = np.uint64(values[i]) - np.uint64(base)
        for _ in range(width):
            out[at] = rest & np.uint64(255)
            rest >>= np.uint64(8)
            at += 1
    return out


@kernel
def integer_at(data, width, base, row):
    value = np.uint64(0)
    at = row * width
    for i in range(width):
        value |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return np.int64(np.uint64(base) + value)


@kernel
def take_integers(data, width, base, rows):
    out = np.empty(rows.size, np.int64)
    for i in range(rows.size):
        out[i] = integer_at(data, width, base, rows[i])
    return out


@kernel
def fixed_places(lon, lat, order):
    """Places in the given order as pairs of integers over DECIMALS; nothing if one of them would change."""
    out = np.empty(2 * order.size, np.int32)
    for i in range(order.size):
        for j in range(2):
            value = lon[order[i]] if j == 0 else lat[order[i]]
            near = np.rint(value * DECIMALS)
            if near / DECIMALS != value or (near == 0.0 and math.copysign(1.0, value) < 0.0):
                return np.empty(0, np.int32)
            out[2 * i + j] = np.int32(near)
    return out


@kernel
def exact_places(lon, lat, order):
    """Places in the given order as pairs of doubles."""
    out = np.empty(2 * order.size, np.float64)
    for i in range(order.size):
        out[2 * i] = lon[order[i]]
        out[2 * i + 1] = lat[order[i]]
    return out


@kernel
def place_at(fixed, exact, row):
    """(lon, lat) of a post; one of the two columns is empty."""
    if fixed.size:
        return fixed[2 * row] / DECIMALS, fixed[2 * row + 1] / DECIMALS
    return exact[2 * row], exact[2 * row + 1]


@kernel
def take_places(fixed, exact, rows):
    lon = np.empty(rows.size, np.float64)
    lat = np.empty(rows.size, np.float64)
    for i in range(rows.size):
        lon[i], lat[i] = place_at(fixed, exact, rows[i])
    return lon, lat
