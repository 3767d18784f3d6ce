"""Laying out posts for searches by relevance: lists of their words, in blocks of like weight and place.

Posts are along a Z-curve, and postings taken in their order are so too; a long list is split by weight first, and each
class cut into blocks. A block has bounds: a ball that holds its posts, centre and radius in the space of unit vectors,
and the least and the greatest weight; so has a group of GROUP blocks of a list. A posting tells a search most of what
it needs:

- `posts`: the post;
- `weighed`: its weight, in steps of STEP, rounded up;
- `placed`: the way from the centre of the block, 3 x 10 bits, in steps of which the radius has FINE;
- `signed`: the signature of the post, in which each of its terms sets up to three bits of 64: a post of nine words has
  all those of another term in one case of 25.

And a post, beside its place, has a sketch of its words: the greatest weight of those of each of 16 kinds, four bits
each, rounded up.
"""

import math

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.geometry import RADIANS
from nearcast.common.kernels.mix import mix
from nearcast.common.kernels.sorting import sort_in_place

BLOCK = 32  # postings
GROUP = 16  # blocks
CLASSES = 24  # of weight, at most
SAMPLED = 32  # weights a class, from which its bounds are taken
SLACK = 5e-7  # of a chord between floats: 3 m
STEP = 1.0001 / 65535.0
FINE = 511.0  # steps a radius
COARSE = 0.05  # a step of a sketch, whose last (MOST) has all that is above
MOST = 15
ASTRAY = 0.0018  # of the radius: how far a place may be from where its posting has it


@kernel
def sign_of(term):
    """The bits of a term in a signature."""
    hashed, one, six = mix(term), np.uint64(1), np.uint64(63)
    return one << (hashed & six) | one << (hashed >> np.uint64(6) & six) | one << (hashed >> np.uint64(12) & six)


@kernel
def kind_of(term):
    """Where the bits of a term are in a sketch."""
    return mix(term) >> np.uint64(18) << np.uint64(2) & np.uint64(60)


@kernel
def sketched(sketch, term, weight):
    """A sketch, with one more word."""
    kind = kind_of(term)
    step = np.uint64(min(MOST, math.ceil(weight / COARSE)))
    had = sketch >> kind & np.uint64(MOST)
    return sketch + (step - had << kind) if step > had else sketch


@kernel
def most_weight(sketch, kind):
    """At least the weight of any word of a kind; 0 where there is none."""
    step = np.int64(sketch >> kind & np.uint64(MOST))
    return 1.0 if step == MOST else step * COARSE * (1.0 + 1e-9)


@kernel
def unit_vector(lon, lat):
    """A place on the sphere of radius 1."""
    shrink = math.sin((90.0 - abs(lat)) * RADIANS)
    return shrink * math.cos(lon * RADIANS), shrink * math.sin(lon * RADIANS), math.sin(lat * RADIANS)


@kernel
def lay_posts(given, offsets, weights, terms, perm, ends, own, heights, signs, sketches):
    """Fill the words (`own`: ranks of their terms, and `heights`: their weights, up to `ends`), signatures and sketches
    of posts in the order of `perm`. How often each term occurs.
    """
    counts = np.zeros(terms.size, np.int64)
    at = 0
    for i in range(perm.size):
        row = perm[i]
        for j in range(offsets[row], offsets[row + 1]):
            rank = given[j]
            counts[rank] += 1
            own[at], heights[at] = rank, weights[j]
            at += 1
            signs[i] |= sign_of(terms[rank])
            sketches[i] = sketched(sketches[i], terms[rank], weights[j])
        ends[i + 1] = at
    return counts


@kernel
def lay_postings(offsets, own, heights, starts, posts, weights):
    """Fill the lists (`starts[t]` is where that of term t begins) with posts and weights, in the order of the posts."""
    place = starts.copy()
    for i in range(offsets.size - 1):
        for j in range(offsets[i], offsets[i + 1]):
            at = place[own[j]]
            posts[at], weights[at] = i, heights[j]
            place[own[j]] = at + 1


@kernel
def classes_of(size):
    """Into how many classes of weight a list of so many postings is split: as many as make blocks about as fine by
    weight as by longitude and by latitude.
    """
    return min(CLASSES, max(1, int((size / BLOCK) ** (1.0 / 3.0) + 0.5)))


@kernel
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


@kernel
def pack_blocks(begins, posts, weights, places, signs, bounds, weighed, placed, signed):
    """Fill the bounds of each block (centre, radius, least and greatest weight: floats that err to the safe side) and
    its postings.
    """
    vectors = np.empty((signs.size, 3), np.float64)
    for post in range(signs.size):
        vectors[post, 0], vectors[post, 1], vectors[post, 2] = unit_vector(places[post, 0], places[post, 1])
    for block in range(bounds.shape[1]):
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
        bounds[0, block], bounds[1, block], bounds[2, block] = x / count, y / count, z / count
        x, y, z = np.float64(bounds[0, block]), np.float64(bounds[1, block]), np.float64(bounds[2, block])
        farthest = 0.0
        for i in range(begin, end):
            post = posts[i]
            square = (vectors[post, 0] - x) ** 2 + (vectors[post, 1] - y) ** 2 + (vectors[post, 2] - z) ** 2
            farthest = max(farthest, square)
        bounds[3, block] = math.sqrt(farthest) * (1.0 + 1e-6) + SLACK
        bounds[4, block] = least * (1.0 - 1e-6)
        bounds[5, block] = most * (1.0 + 1e-6)
        scale = FINE / np.float64(bounds[3, block])
        for i in range(begin, end):
            post = posts[i]
            weighed[i] = min(65535.0, math.ceil(weights[i] / STEP))
            dx = np.int64(round((vectors[post, 0] - x) * scale)) & 1023
            dy = np.int64(round((vectors[post, 1] - y) * scale)) & 1023
            dz = np.int64(round((vectors[post, 2] - z) * scale)) & 1023
            placed[i] = dx | dy << 10 | dz << 20
            signed[i] = signs[post]


@kernel
def group_blocks(block_starts, bounds, group_starts, grouped):
    """Fill the bounds of groups, each of GROUP blocks of a list or of what is left, from those of the blocks; those of
    term t begin at `group_starts[t]`.
    """
    for term in range(block_starts.size - 1):
        for group in range(group_starts[term], group_starts[term + 1]):
            begin = block_starts[term] + (group - group_starts[term]) * GROUP
            end = min(begin + GROUP, block_starts[term + 1])
            for axis in range(3):
                total = 0.0
                for block in range(begin, end):
                    total += bounds[axis, block]
                grouped[axis, group] = total / (end - begin)
            x, y, z = np.float64(grouped[0, group]), np.float64(grouped[1, group]), np.float64(grouped[2, group])
            farthest, least, most = 0.0, 2.0, 0.0
            for block in range(begin, end):
                square = (bounds[0, block] - x) ** 2 + (bounds[1, block] - y) ** 2 + (bounds[2, block] - z) ** 2
                farthest = max(farthest, math.sqrt(square) + bounds[3, block])
                least, most = min(least, bounds[4, block]), max(most, bounds[5, block])
            grouped[3, group] = farthest * (1.0 + 1e-6) + SLACK
            grouped[4, group], grouped[5, group] = least, most
