"""Subscriptions to the k nearest: the circles by which they are filed, and the pairs that lie inside them."""

import math

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.geometry import EARTH_RADIUS_KM, RADIANS, haversine_km

SLACK = 1e-11  # radians, as in geo.regions: far above the rounding of a distance
DEGREES = 180.0 / math.pi
FEW = 24  # up to so many, insertion sorts fastest


@kernel
def circle_boxes(points, km):
    """A box around each circle (lon, lat of `points`, radius `km`), as geo.regions makes it; the world for infinity."""
    out = np.empty((km.size, 4), np.float64)
    for i in range(km.size):
        lon, lat = points[i, 0], points[i, 1]
        angle = km[i] / EARTH_RADIUS_KM + SLACK
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = -180.0, -90.0, 180.0, 90.0
        if not angle < math.pi / 2:
            continue
        south, north = lat - angle * DEGREES, lat + angle * DEGREES
        if south > -90.0:
            out[i, 1] = south
        if north < 90.0:
            out[i, 3] = north
        if south <= -90.0 or north >= 90.0:
            continue
        middle = lat * RADIANS
        half = math.atan2(math.sin(angle), math.sqrt(math.cos(middle + angle) * math.cos(middle - angle))) * DEGREES
        west, east = lon - half, lon + half
        out[i, 0] = west + 360.0 if west <= -180.0 else west
        out[i, 2] = east - 360.0 if east >= 180.0 else east
    return out


@kernel
def near_pairs(posts, rows, lon, lat, points, limits):
    """(posts, rows, km) of the pairs that are no farther apart than the row's limit."""
    kept_posts, kept_rows = np.empty(posts.size, np.int64), np.empty(posts.size, np.int64)
    km = np.empty(posts.size, np.float64)
    n = 0
    for i in range(posts.size):
        post, row = posts[i], rows[i]
        limit = limits[row]
        if abs(lat[post] - points[row, 1]) * RADIANS * EARTH_RADIUS_KM > limit * 1.000001 + 1e-6:
            continue
        distance = haversine_km(points[row, 0], points[row, 1], lon[post], lat[post])
        if distance <= limit:
            kept_posts[n], kept_rows[n], km[n] = post, row, distance
            n += 1
    return kept_posts[:n].copy(), kept_rows[:n].copy(), km[:n].copy()


@kernel
def nearest_order(groups, km, count):
    """(the order by group, then distance; whether two of one group are equally far). Groups are below `count`."""
    starts = np.zeros(count + 1, np.int64)
    for i in range(groups.size):
        starts[groups[i] + 1] += 1
    for group in range(count):
        starts[group + 1] += starts[group]
    order = np.empty(groups.size, np.int64)
    for i in range(groups.size):
        order[starts[groups[i]]] = i
        starts[groups[i]] += 1
    tied = False
    begin = 0
    for group in range(count):
        end = starts[group]  # where it began, moved on by its size
        if end - begin > FEW:
            order[begin:end] = order[begin:end][np.argsort(km[order[begin:end]])]
        else:
            for i in range(begin + 1, end):
                moving = order[i]
                j = i
                while j > begin and km[order[j - 1]] > km[moving]:
                    order[j] = order[j - 1]
                    j -= 1
                order[j] = moving
        for i in range(begin + 1, end):
            tied |= km[order[i]] == km[order[i - 1]]
        begin = end
    return order, tied
