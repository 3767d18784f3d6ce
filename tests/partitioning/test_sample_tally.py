"""Counts over rectangles of cells, against counting."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nearcast.partitioning.router_sample import RouterSample
from nearcast.partitioning.sample_tally import WORLD, Tally, extent_of
from tests.partitioning.routers.tile_cases import cell, sample_of, samples

CELLS = 8
corners = st.tuples(*[st.integers(0, CELLS - 1)] * 4).map(
    lambda c: (min(c[0], c[2]), min(c[1], c[3]), max(c[0], c[2]) + 1, max(c[1], c[3]) + 1)
)


@given(samples, corners)
def test_counts_are_those_of_counting(sample: RouterSample, part: tuple[int, int, int, int]) -> None:
    tally = Tally.of(sample, CELLS)
    west, south, width, height = tally.extent
    x0, y0, x1, y1 = part
    posts = sum(
        x0 <= cell(lon, west, width, CELLS) < x1 and y0 <= cell(lat, south, height, CELLS) < y1
        for lon, lat in zip(sample.posts.lon, sample.posts.lat, strict=True)
    )
    queries = 0
    for box in sample.queries.boxes:
        first, last = cell(box[0], west, width, CELLS), cell(box[2], west, width, CELLS)
        sides = [(first, last)] if box[0] <= box[2] else [(first, CELLS - 1), (0, last)]
        if box[0] > box[2] and last + 1 >= first:  # they meet
            sides = [(0, CELLS - 1)]
        rows = range(cell(box[1], south, height, CELLS), cell(box[3], south, height, CELLS) + 1)
        queries += sum(any(a <= x <= b and y in rows for x in range(x0, x1) for y in range(y0, y1)) for a, b in sides)
    where = [np.array([edge]) for edge in part]
    assert tally.posts(*where).tolist() == [posts]
    assert tally.queries(*where).tolist() == [queries]


def test_an_extent_has_a_width_and_a_height_even_of_one_post() -> None:
    west, south, width, height = extent_of(sample_of([(7.0, 8.0, [])], []))
    assert (west, south) == (7.0, 8.0)
    assert width > 0 and height > 0


def test_the_extent_of_nothing_is_the_world() -> None:
    assert extent_of(sample_of([], [((0.0, 0.0, 1.0, 1.0), [])])) == WORLD
