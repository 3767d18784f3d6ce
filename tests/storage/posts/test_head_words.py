"""Bits of the most frequent words: they say what the posts say, and a search that trusts them answers the same."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.arrays import frozen
from nearcast.common.geo.containment import encode
from nearcast.common.geo.shapes import Circle, Polygon, Rect, Region
from nearcast.common.kernels.geometry import in_region
from nearcast.common.op_schema import BEGINNING, NEVER
from nearcast.storage.posts.kernels.blocks import BLOCK
from nearcast.storage.posts.kernels.half_bytes import COMMON
from nearcast.storage.posts.kernels.head_words import HALF, HEAD, OF_BLOCK, subtract_heads
from nearcast.storage.posts.post_layout import lay_out, place_order
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import Question
from nearcast.storage.posts.segment_group import SegmentGroup
from nearcast.storage.posts.term_counts import FEW_WANTED, Counting, count_terms_in, greatest
from tests.storage.posts.test_post_segment import posts
from tests.storage.posts.test_small_tables import NO_STOP_WORDS, occurrences, sealed

FAR_PLACE = Rect(60.0, 20.0, 80.0, 33.0)
LOCAL, HIDDEN = 77, 78  # words of that place only: one is frequent there, of one of so many there are others


@pytest.mark.parametrize("count", [0, 1, HALF, BLOCK - 1, BLOCK, 3 * BLOCK + 5])
@pytest.mark.parametrize("words", [1, 30, 5_000])
def test_bits_say_which_posts_have_a_frequent_word(count: int, words: int) -> None:
    segment = sealed(count, words)
    bits = frozen(segment.arrays["heads"])
    assert len(bits) == -(-count // BLOCK) * OF_BLOCK
    rng = np.random.default_rng(count)
    for block in range(-(-count // BLOCK)):
        chosen = rng.random(BLOCK) < 0.5
        low, high = (np.packbits(part, bitorder="little").view(np.uint64)[0] for part in (chosen[:HALF], chosen[HALF:]))
        counts = np.zeros(len(segment.terms) + 1, np.int32)
        subtract_heads(bits, block, low, high, counts)
        rows = [row for row in range(block * BLOCK, min(count, (block + 1) * BLOCK)) if chosen[row % BLOCK]]
        expected = sum((occurrences(segment, row, row + 1) for row in rows), np.zeros(len(segment.terms), np.int64))
        known = min(HEAD, len(segment.terms))
        assert np.array_equal(-counts[1:known], expected[1:known]) and not counts[known:].any()


def with_local_words(count: int, exact: bool, seed: int) -> PostSegment:
    """Posts of more words than small tables have. In one place most posts have a word that is not among the most
    frequent, and and one of three words that the tables leave out.
    """
    table = posts(count, words=60_000, exact=exact, seed=seed, texts=["x"] * count)
    table = table.set_column(table.column_names.index("leaf"), "leaf", pa.array(np.zeros(count, np.int32)))
    lists = table["terms"].combine_chunks()
    there = inside(FAR_PLACE, table["lon"].to_numpy(), table["lat"].to_numpy())
    rows = lists.to_pylist()
    for number, row in enumerate(np.flatnonzero(there).tolist()):
        rows[row] += [LOCAL] * (number % 10 < 7) + [HIDDEN + number % 3] * (number % 10 < 2)
    table = table.set_column(table.column_names.index("terms"), "terms", pa.array(rows, pa.list_(pa.uint64())))
    arrays, _ = lay_out(table, place_order(table), sealed=True)
    return PostSegment(Path(), {name: frozen(a) if isinstance(a, np.ndarray) else a for name, a in arrays.items()})


def inside(region: Region | None, lon: np.ndarray, lat: np.ndarray) -> np.ndarray:
    kind, bounds, shape = encode(region)
    shape = np.array(shape, np.float64)
    return np.array([in_region(kind, *bounds, shape, 0, len(shape), x, y) for x, y in zip(lon, lat, strict=True)])


@pytest.fixture(scope="module", params=[True, False], ids=["exact places", "decimal places"])
def group(request: pytest.FixtureRequest) -> SegmentGroup:
    parts = [with_local_words(size, request.param, seed) for seed, size in enumerate((30_000, 12_345, 700))]
    gone = [
        frozen(np.arange(0, len(part), 7)) if seed else frozen(np.empty(0, np.int64)) for seed, part in enumerate(parts)
    ]
    return SegmentGroup.of(parts, gone)


REGIONS = st.one_of(
    st.sampled_from([
        None, FAR_PLACE, Rect(59.0, 19.0, 81.0, 34.0),
        Rect(170.0, -30.0, -160.0, 40.0), Rect(-180.0, -90.0, 180.0, 0.0),
        Circle(70.0, 26.0, 900.0), Circle(179.0, 0.0, 3_000.0), Circle(0.0, 90.0, 9_000.0),
        Polygon((((-60.0, -30.0), (80.0, -35.0), (75.0, 40.0), (0.0, 5.0), (-50.0, 33.0)),)),
    ]),
    st.builds(Rect, *(st.floats(low, high) for low, high in ((-180, 180), (-60, 0), (-180, 180), (0, 60)))),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(region=REGIONS, data=st.data())
def test_terms_are_those_of_all_posts_though_few_are_counted(
    group: SegmentGroup, region: Region, data: st.DataObject
) -> None:
    kind, bounds, shape = encode(region)
    since = data.draw(st.sampled_from([BEGINNING, BEGINNING, 0, 9 * 10**14]))
    k = data.draw(st.sampled_from([1, 3, 10, FEW_WANTED]))
    stop = frozen(np.sort(group[0].terms[1:5])) if data.draw(st.booleans()) else NO_STOP_WORDS
    asked = Question(kind, bounds, frozen(np.array(shape, np.float64)), ((),), since, NEVER, None)
    terms, sums, _ = greatest([count_terms_in(group, np.arange(3), asked, Counting.SOME)], k, stop)
    expected: dict[int, int] = {}
    for segment, gone in zip(group.segments, group.gone, strict=True):
        assert segment is not None
        wanted = inside(region, segment.lon, segment.lat) & (segment.ts >= since)
        wanted[gone] = False
        rows = np.repeat(np.arange(len(segment)), np.diff(segment.offsets))
        keys = np.unique(rows * len(segment.terms) + segment.codes)
        codes, counts = np.unique(keys[wanted[keys // len(segment.terms)]] % len(segment.terms), return_counts=True)
        for term, count in zip(segment.terms[codes].tolist(), counts.tolist(), strict=True):
            if term and term not in stop.tolist():
                expected[term] = expected.get(term, 0) + count
    best = sorted(expected.values(), reverse=True)
    least = best[min(k, len(best)) - 1] if best else 0
    assert dict(zip(terms.tolist(), sums.tolist(), strict=True)) == {t: n for t, n in expected.items() if n >= least}


def test_a_border_is_counted_by_bits_and_local_words_are_seen(group: SegmentGroup) -> None:
    """That the cases above are what they are meant to be."""
    chosen = np.arange(1)
    kind, bounds, shape = encode(Rect(58.0, 18.0, 82.0, 36.0))
    asked = Question(kind, bounds, frozen(np.array(shape, np.float64)), ((),), BEGINNING, NEVER, None)
    part = count_terms_in(group, chosen, asked, Counting.SOME)
    assert part.exact.tolist() == [HEAD] and part.counted.tolist() == [COMMON]
    assert group[0].codes_of(frozen(np.array([LOCAL], np.uint64)))[0] > HEAD
    terms, _, parts = greatest([part], 3, NO_STOP_WORDS)
    assert LOCAL in terms.tolist()
    assert sum(len(each.posts) for each in parts) == 1
