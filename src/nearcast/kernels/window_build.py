"""Laying out posts for searches by relevance: lists of their words, in blocks of like weight and place.

A post is a record of eight 32-bit words (RECORD): its unit vector (three floats), its number, where its words begin,
and three words of signature, in which each of its terms sets one of SIGNS bits. Records are along a Z-curve, so that
postings taken in their order are so too; a long list is split by weight first, and each class cut into blocks.
"""

import math

import numpy as np
from numba import njit

from nearcast.kernels.mix import mix
from nearcast.kernels.regions import RADIANS
from nearcast.kernels.sorting import sort_in_place

RECORD = 8
NUMBER, OFFSET, SIGN = 3, 4, 5  # words of a record; those before are x, y, z
SIGNS = 96
BLOCK = 64  # postings
CLASSES = 16  # of weight, at most
SAMPLED = 32  # weights a class, from which its bounds are taken
SLACK = 5e-7  # of a chord between floats: 3 m


@njit(cache=True, nogil=True)
def sign_of(term):
    """The bit of a term in a signature."""
    return np.int64(mix(term) % np.uint64(SIGNS))


@njit(cache=True, nogil=True)
def unit_vector(lon, lat):
    """A place on the sphere of radius 1."""
    shrink = math.sin((90.0 - abs(lat)) * RADIANS)
    return shrink * math.cos(lon * RADIANS), shrink * math.sin(lon * RADIANS), math.sin(lat * RADIANS)


@njit(cache=True, nogil=True)
def lay_posts(lon, lat, codes, offsets, weights, ranks, terms, numbers, perm, records, vectors, places, own, heights):
    """Fill records (`vectors` are the same memory as floats), places, and the words (`own`: ranks of their terms, and
    `heights`: their weights) of posts in the order of `perm`. How often each term occurs.
    """
    counts = np.zeros(terms.size, np.int64)
    at = 0
    for i in range(perm.size):
        row = perm[i]
        places[i, 0], places[i, 1] = lon[row], lat[row]
        x, y, z = unit_vector(lon[row], lat[row])
        vectors[i, 0], vectors[i, 1], vectors[i, 2] = x, y, z
        records[i, NUMBER], records[i, OFFSET] = numbers[row], at
        for j in range(offsets[row], offsets[row + 1]):
            rank = ranks[codes[j]]
            counts[rank] += 1
            own[at], heights[at] = rank, weights[j]
            bit = sign_of(terms[rank])
            records[i, SIGN + (bit >> 5)] |= np.uint32(1) << np.uint32(bit & 31)
            at += 1
    records[perm.size, OFFSET] = at
    return counts


@njit(cache=True, nogil=True)
def lay_postings(records, own, heights, starts, posts, weights):
    """Fill the lists (`starts[t]` is where that of term t begins) with posts and weights, in the order of the posts."""
    place = starts.copy()
    for i in range(records.shape[0] - 1):
        for j in range(records[i, OFFSET], records[i + 1, OFFSET]):
            at = place[own[j]]
            posts[at], weights[at] = i, heights[j]
            place[own[j]] = at + 1


@njit(cache=True, nogil=True)
def classes_of(size):
    """Into how many classes of weight a list of so many postings is split: as many as make blocks about as fine by
    weight as by longitude and by latitude.
    """
    return min(CLASSES, max(1, int((size / BLOCK) ** (1.0 / 3.0) + 0.5)))


@njit(cache=True, nogil=True)
def cut_blocks(starts, posts, weights, block_starts, begins):
    """Order each long list by class of weight, heaviest first, and inside by place, and cut all lists into blocks.

    `block_starts[t]` becomes the first block of term t, `begins[b]` the first posting of block b; how many blocks.
    """
    longest = 0
    for term in range(starts.size - 1):
        longest = max(longest, starts[term + 1] - starts[term])
    old_posts, old_weights = np.empty(longest, np.uint32), np.empty(longest, np.float64)
    old_class = np.empty(longest, np.uint8)
    sample = np.empty(SAMPLED * CLASSES, np.float64)
    ends = np.empty(CLASSES + 1, np.int64)
    blocks = 0
    for term in range(starts.size - 1):
        begin, size = starts[term], starts[term + 1] - starts[term]
        block_starts[term] = blocks
        classes = classes_of(size)
        ends[:] = 0
        ends[0] = size
        if classes > 1:
            drawn = classes * SAMPLED
            for i in range(drawn):
                sample[i] = -weights[begin + i * size // drawn]
            sort_in_place(sample, drawn)
            ends[:] = 0
            for i in range(size):
                old_posts[i], old_weights[i] = posts[begin + i], weights[begin + i]
                at = 0
                while at < classes - 1 and sample[(at + 1) * SAMPLED] <= -old_weights[i]:
                    at += 1
                old_class[i] = at
                ends[at + 1] += 1
            for at in range(classes):
                ends[at + 1] += ends[at]
            for i in range(size):  # what was the begin of a class becomes its end
                at = begin + ends[old_class[i]]
                ends[old_class[i]] += 1
                posts[at], weights[at] = old_posts[i], old_weights[i]
        first = np.int64(0)
        for at in range(classes):
            pieces = (ends[at] - first + BLOCK - 1) // BLOCK
            for piece in range(pieces):  # of even lengths
                begins[blocks] = begin + first + piece * (ends[at] - first) // pieces
                blocks += 1
            first = ends[at]
    block_starts[starts.size - 1] = blocks
    begins[blocks] = starts[starts.size - 1]
    return blocks


@njit(cache=True, nogil=True)
def bound_blocks(begins, posts, weights, vectors, bounds):
    """Fill the bounds of each block: a ball (centre and radius) that holds its posts, its least and greatest weight,
    all as floats that err to the safe side.
    """
    for block in range(bounds.shape[0]):
        begin, end = begins[block], begins[block + 1]
        x = y = z = 0.0
        least, most = 2.0, 0.0
        for i in range(begin, end):
            post = posts[i]
            x += vectors[post, 0]
            y += vectors[post, 1]
            z += vectors[post, 2]
            least, most = min(least, weights[i]), max(most, weights[i])
        count = end - begin
        bounds[block, 0], bounds[block, 1], bounds[block, 2] = x / count, y / count, z / count
        x, y, z = np.float64(bounds[block, 0]), np.float64(bounds[block, 1]), np.float64(bounds[block, 2])
        farthest = 0.0
        for i in range(begin, end):
            post = posts[i]
            square = (vectors[post, 0] - x) ** 2 + (vectors[post, 1] - y) ** 2 + (vectors[post, 2] - z) ** 2
            farthest = max(farthest, square)
        bounds[block, 3] = math.sqrt(farthest) * (1.0 + 1e-6) + SLACK
        bounds[block, 4] = least * (1.0 - 1e-6)
        bounds[block, 5] = most * (1.0 + 1e-6)
