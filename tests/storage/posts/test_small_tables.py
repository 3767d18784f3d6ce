"""Small tables of frequent words: they say what their posts say, and searches answer the same without them."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.arrays import frozen
from nearcast.storage.posts.kernels.blocks import FAN
from nearcast.storage.posts.kernels.half_bytes import (
    FREQUENT,
    MOST_WAITING,
    SPAN,
    WIDE,
    add_halves,
    add_several,
    add_wide,
    pour,
    write_halves,
)
from nearcast.storage.posts.kernels.head_words import HEAD
from nearcast.storage.posts.post_layout import lay_out, place_order
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.term_counts import MOST, CountedTerms, Counting, count_terms, greatest
from tests.storage.posts.test_post_segment import posts, question

SMALL = ("halves", "tops", "beyond", "beyond_starts", "several", "wide", "rare", "heads")
NO_STOP_WORDS = frozen(np.empty(0, np.uint64))
LATER = st.integers(-(10**15), 10**15)


def sealed(count: int, words: int, seed: int = 1) -> PostSegment:
    table = posts(count, words, seed=seed, texts=["x"] * count)
    arrays, _ = lay_out(table, place_order(table), sealed=True)
    return PostSegment(Path(), {name: frozen(a) if isinstance(a, np.ndarray) else a for name, a in arrays.items()})


def without_small_tables(segment: PostSegment) -> PostSegment:
    """As fresh segments are, but with inverted lists and term tables."""
    none = (np.zeros(int(name == "beyond_starts"), segment.arrays[name].dtype) for name in SMALL)
    return PostSegment(Path(), {**segment.arrays, **dict(zip(SMALL, map(frozen, none), strict=True))})


def occurrences(segment: PostSegment, begin: int, end: int) -> np.ndarray:
    """In how many of the posts [begin, end) each code occurs."""
    out = np.zeros(len(segment.terms), np.int64)
    for row in range(begin, min(end, len(segment))):
        out[np.unique(segment.codes[segment.offsets[row] : segment.offsets[row + 1]])] += 1
    return out


@pytest.mark.parametrize("count", [0, 1, SPAN - 1, SPAN, SPAN + 1, 2 * SPAN + 77])
@pytest.mark.parametrize("words", [1, 2, 3, 40, 40_000])
def test_a_table_says_in_how_many_posts_of_its_node_each_frequent_word_occurs(count: int, words: int) -> None:
    segment = sealed(count, words)
    forward = segment.arrays["forward"], segment.arrays["forward_starts"]
    *tables, _, _, _ = (frozen(array) for array in write_halves(*(*forward, count, len(segment.terms))))
    codes = min(len(segment.terms), FREQUENT)
    for node in range(-(-count // SPAN)):
        counts, sums = np.zeros(codes + 1, np.int32), np.zeros(codes + codes % 2, np.uint8)
        assert add_halves(*(*tables, node, node + 1, counts, sums, 0)) == 1
        pour(sums, counts)
        assert np.array_equal(counts[1:codes], occurrences(segment, node * SPAN, (node + 1) * SPAN)[1:codes])
    if count >= SPAN and 1 < words < 40_000:
        assert segment.counts.max() > 15  # more than half a byte holds


def test_many_tables_add_up_to_more_than_bytes_hold() -> None:
    count = (2 * MOST_WAITING + 3) * SPAN
    segment = sealed(count, 20)
    forward = segment.arrays["forward"], segment.arrays["forward_starts"]
    *tables, _, _, _ = (frozen(array) for array in write_halves(*(*forward, count, len(segment.terms))))
    codes = len(segment.terms)
    counts, sums = np.zeros(codes + 1, np.int32), np.zeros(codes + codes % 2, np.uint8)
    assert add_halves(*(*tables, 0, count // SPAN, counts, sums, 0)) == 3
    assert pour(sums, counts) == 0 and not sums.any()
    assert np.array_equal(counts[1:codes], occurrences(segment, 0, count)[1:codes])


@pytest.mark.parametrize("nodes", [1, WIDE, WIDE + 1, 3 * WIDE - 1])
def test_a_table_of_several_nodes_says_what_they_say(nodes: int) -> None:
    count = nodes * SPAN - 5
    segment = sealed(count, 300)
    starts, wide = (frozen(segment.arrays[name]) for name in ("beyond_starts", "wide"))
    codes = len(segment.terms)
    half = (codes + 1) // 2
    for first in range(0, nodes, FAN):
        counts, last = np.zeros(codes + 1, np.int32), min(nodes, first + FAN)
        add_several(*(frozen(segment.arrays["several"]), half, first // FAN, counts))
        assert np.array_equal(counts[1:codes], occurrences(segment, first * SPAN, last * SPAN)[1:codes])
    for first in range(0, nodes, WIDE):
        counts, last = np.zeros(codes + 1, np.int32), min(nodes, first + WIDE)
        assert add_wide(*(wide, half, first, last, counts)) == 1
        assert np.array_equal(counts[1:codes], occurrences(segment, first * SPAN, last * SPAN)[1:codes])
    assert len(starts) == nodes + 1


@pytest.fixture(scope="module", params=[60, 30_000], ids=["few words", "many words"])
def segment(request: pytest.FixtureRequest) -> PostSegment:
    return sealed(150_000, request.param)


def answer(part: CountedTerms, k: int) -> dict[int, int]:
    terms, sums, _ = greatest([part], k, NO_STOP_WORDS)
    return dict(zip(terms.tolist(), sums.tolist(), strict=True))


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_counts_are_the_same_without_them(segment: PostSegment, data: st.DataObject) -> None:
    west, east = data.draw(st.floats(-180, 180)), data.draw(st.floats(-180, 180))
    south = data.draw(st.floats(-90, 0))
    place = data.draw(st.sampled_from([None, (west, south, east, -south), (-170.0, south, 175.0, 85.0)]))
    since, until = sorted(data.draw(st.tuples(LATER, LATER)))
    asked = question(place, *data.draw(st.sampled_from([(), (since,), (since, until)])))
    gone = frozen(np.array(sorted(data.draw(st.sets(st.integers(0, len(segment) - 1), max_size=50))), np.int64))
    counting = data.draw(st.sampled_from(Counting))
    old = without_small_tables(segment)
    part, before = count_terms(segment, asked, gone, counting), count_terms(old, asked, gone)
    assert np.array_equal(part.posts, before.posts)
    for exact, counted, more in zip(part.exact, part.counted, part.most_uncounted, strict=True):
        assert counted == min(len(segment.terms), MOST[counting]) and (exact in (HEAD, counted))
        assert np.array_equal(part.counts[1:exact], before.counts[1:exact])
        assert np.all(part.counts[exact:counted] >= before.counts[exact:counted])
        assert counting == Counting.SOME or exact == counted
        assert more >= before.counts[counted:-1].max(initial=0)
    k = data.draw(st.sampled_from([1, 10, 2000]))
    assert answer(part, k) == answer(before, k)


def test_a_region_that_covers_nodes_is_counted_from_tables() -> None:
    segment = sealed(30_000, 30_000)
    scan = count_terms(segment, question(None)).scans()[0]
    assert (scan.method, scan.candidates) == ("term tables", 0)
    assert scan.why.startswith("1 term tables, 0 of 30,000 posts")
    assert count_terms(without_small_tables(segment), question(None)).scans()[0].candidates == 30_000
