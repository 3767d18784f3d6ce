"""Segments of posts: what is written is read back, and what the index says is what looking at every post says."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.arrays import frozen
from nearcast.common.geo.containment import encode
from nearcast.common.geo.shapes import Circle, Polygon, Rect
from nearcast.common.kernels.geometry import haversine_km, in_region
from nearcast.common.kernels.packing import pack_integers, take_integers
from nearcast.common.kernels.varint import PADDING, get, put
from nearcast.common.op_schema import BEGINNING, NEVER
from nearcast.storage.posts.kernels.blocks import APART, BLOCK, COVERS, least_distance_km, relation
from nearcast.storage.posts.kernels.postings import rows_in_runs
from nearcast.storage.posts.kernels.texts import decode_texts, encode_texts, learn_symbols
from nearcast.storage.posts.post_layout import text_buffers
from nearcast.storage.posts.post_segment import PostSegment, write_posts
from nearcast.storage.posts.question import Question
from nearcast.storage.posts.term_counts import MOST, Counting, count_terms, greatest

CASES = settings(max_examples=60, deadline=None)


def posts(count: int, words: int = 40, exact: bool = True, seed: int = 1, texts: list[str] | None = None) -> pa.Table:
    """Posts whose terms are made up, the frequent ones more often; the boundary 0 among them."""
    rng = np.random.default_rng(seed)
    lon, lat = rng.uniform(-180, 180, count), rng.normal(0, 20, count).clip(-90, 90)
    if not exact:
        lon, lat = np.round(lon, 6) + 0.0, np.round(lat, 6) + 0.0
    sizes = rng.integers(0, 9, count)
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    terms = ((words + 1) ** rng.random(offsets[-1])).astype(np.uint64) - np.uint64(1)
    return pa.table({
        "id": rng.permutation(count) - count // 2, "id_text": pa.nulls(count, pa.string()),
        "ts": rng.integers(-(10**15), 10**15, count), "lon": lon, "lat": lat,
        "text": pa.array(texts or [f"text {n} é 🌊" for n in range(count)], pa.string()),
        "leaf": pa.array(rng.integers(0, 5, count).astype(np.int32)),
        "terms": pa.ListArray.from_arrays(pa.array(offsets), pa.array(terms * np.uint64(0x9E3779B97F4A7C15))),
    })  # fmt: skip


def by_id(table: pa.Table) -> pa.Table:
    terms = table["terms"].cast(pa.list_(pa.uint64()))
    table = table.set_column(table.column_names.index("terms"), "terms", terms)
    return table.combine_chunks().sort_by([("id", "ascending"), ("id_text", "ascending")])


def same(one: pa.Table, other: pa.Table) -> bool:
    one, other = by_id(one), by_id(other)
    return all(one[name].combine_chunks().equals(other[name].combine_chunks()) for name in other.column_names)


# -- writing and reading -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 15, BLOCK, BLOCK + 1, 3000])
@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("exact", [False, True])
def test_all_posts_come_back_as_they_were(tmp_path: Path, count: int, sealed: bool, exact: bool) -> None:
    table = posts(count, exact=exact).append_column("price:f", pa.array(np.arange(count) / 2))
    table = table.append_column("tags:s", pa.array([None if n % 3 else f"t{n}" for n in range(count)], pa.string()))
    size, words = write_posts(tmp_path / "x", table, sealed=sealed)
    segment = PostSegment(tmp_path / "x")
    assert same(segment.all(), table) and len(segment) == count and size > 0
    assert (np.diff(segment.leaf) >= 0).all()
    assert np.array_equal(words.terms, np.unique(words.terms)) and 0 not in words.terms
    assert len(segment.fingerprints) == count and (np.diff(segment.fingerprints.astype(object)) >= 0).all()
    again = pa.concat_tables([segment.all()]).combine_chunks()
    write_posts(tmp_path / "y", again, sealed=not sealed)
    assert same(PostSegment(tmp_path / "y").all(), table)


@pytest.mark.parametrize("sealed", [False, True])
def test_merged_segments_are_as_if_written_at_once(tmp_path: Path, sealed: bool) -> None:
    table = posts(3000)
    cuts = [0, 1, 700, 701, 3000]
    for number, (begin, end) in enumerate(pairwise(cuts)):
        write_posts(tmp_path / f"{number}", table.slice(begin, end - begin).combine_chunks(), sealed=number % 2 == 0)
    parts = [PostSegment(tmp_path / f"{number}").all() for number in range(len(cuts) - 1)]
    kept = [part.filter(pc.not_equal(pc.bit_wise_and(part["id"], 3), 1)) for part in parts]
    whole = table.filter(pc.not_equal(pc.bit_wise_and(table["id"], 3), 1)).combine_chunks()
    _, words = write_posts(tmp_path / "merged", pa.concat_tables(kept).combine_chunks(), sealed=sealed)
    _, expected = write_posts(tmp_path / "once", whole, sealed=sealed)
    merged, once = PostSegment(tmp_path / "merged"), PostSegment(tmp_path / "once")
    assert len(whole) < len(table) and same(merged.all(), whole)
    assert np.array_equal(words.terms, expected.terms) and np.array_equal(words.counts, expected.counts)
    assert np.array_equal(merged.counts, once.counts) and merged.codes_of(words.terms).min() > 0
    repeated = merged.arrays["forward"].size == once.arrays["forward"].size
    assert repeated and merged.arrays["lists"].size == once.arrays["lists"].size


def test_a_segment_of_nothing(tmp_path: Path) -> None:
    table = posts(5)
    _, words = write_posts(tmp_path / "x", table, np.empty(0, np.int64))
    segment = PostSegment(tmp_path / "x")
    assert len(segment) == 0 and len(segment.all()) == 0 and len(words.terms) == 0
    assert len(segment.take(np.empty(0, np.int64))) == 0


def test_only_the_rows_of_the_order_are_written_and_counted(tmp_path: Path) -> None:
    table = posts(50)
    _, words = write_posts(tmp_path / "x", table, np.array([7, 3]), sealed=True)
    segment = PostSegment(tmp_path / "x")
    assert segment.id.tolist() == table["id"].take([7, 3]).to_pylist()
    wanted = {term for row in (3, 7) for term in table["terms"][row].as_py()} - {0}
    assert set(words.terms.tolist()) == wanted


@pytest.mark.parametrize("sealed", [False, True])
def test_rows_are_taken_in_the_order_asked_for(tmp_path: Path, sealed: bool) -> None:
    table = posts(2000).append_column("price:f", pa.array(np.arange(2000) / 2))
    write_posts(tmp_path / "x", table, sealed=sealed)
    segment = PostSegment(tmp_path / "x")
    rows = np.array([1999, 0, 5, 5, 1024])
    whole = segment.all()
    taken = segment.take(rows)
    assert all(taken[name].to_pylist() == whole[name].take(rows).to_pylist() for name in taken.column_names)
    columns = segment.columns(rows)
    assert columns.terms.tolist() == whole["terms"].take(rows).combine_chunks().flatten().to_pylist()


NASTY = ["", "a", "🌊" * 500, "x" * 100_000, "\x00\xff", "word " * 3000, "Straße\n", "é" * 7]


@pytest.mark.parametrize("sealed", [False, True])
def test_texts_of_any_size_and_script_come_back(tmp_path: Path, sealed: bool) -> None:
    table = posts(len(NASTY), texts=NASTY)
    write_posts(tmp_path / "x", table, sealed=sealed)
    assert same(PostSegment(tmp_path / "x").all(), table)


def test_string_ids_and_extreme_numbers_come_back(tmp_path: Path) -> None:
    table = posts(4)
    table = table.set_column(0, "id", pa.array([-(2**63), 2**63 - 1, 0, 7]))
    table = table.set_column(1, "id_text", pa.array([None, "b", None, "é"], pa.string()))
    write_posts(tmp_path / "x", table, sealed=True)
    segment = PostSegment(tmp_path / "x")
    assert same(segment.all(), table)
    deletes = pa.table({"id": [7, 2**63 - 1], "id_text": pa.array(["é", None], pa.string())})
    rows = np.flatnonzero(segment.deleted(deletes))
    assert segment.take(rows)["id_text"].to_pylist() == ["é"]


# -- the parts ---------------------------------------------------------------------------------------------------------


@CASES
@given(st.lists(st.integers(0, 2**32 - 1) | st.sampled_from([191, 192, 12_479, 12_480, 995_519, 995_520])))
def test_numbers_come_back_from_their_bytes(numbers: list[int]) -> None:
    data, at = np.zeros(5 * len(numbers) + PADDING, np.uint8), 0
    for number in numbers:
        at = put(data, at, number)
    end, at, back = at, 0, []
    while at < end:
        value, at = get(data, at)
        back.append(value)
    assert back == numbers


@CASES
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_integers_are_packed_in_the_bytes_they_need(values: list[int]) -> None:
    low, width = min(values), max(1, ((max(values) - min(values)).bit_length() + 7) // 8)
    data = pack_integers(frozen(np.array(values)), np.int64(low), width)
    assert take_integers(data, width, np.int64(low), np.arange(len(values))).tolist() == values


@CASES
@given(st.lists(st.text(max_size=40), min_size=1, max_size=30), st.booleans())
def test_texts_come_back_from_their_symbols(texts: list[str], learn: bool) -> None:
    texts = [text.encode("utf-8", "replace").decode() for text in texts] * 5
    data, bounds = text_buffers(pa.array(texts, pa.string()))
    order = frozen(np.arange(len(texts))[::-1].copy())
    values, lengths = np.empty(0, np.uint64), np.empty(0, np.uint8)
    if learn:
        values, lengths = learn_symbols(data, bounds, order)
    values, lengths = frozen(values), frozen(lengths)
    records, starts = encode_texts(data, bounds, order, values, lengths)
    rows = np.arange(len(texts))[::-1].copy()
    out, offsets = decode_texts(frozen(records), frozen(starts), values, lengths, rows)
    assert [out[a:b].tobytes().decode() for a, b in pairwise(offsets)] == texts


@pytest.fixture(scope="module")
def segment(tmp_path_factory: pytest.TempPathFactory) -> PostSegment:
    path = tmp_path_factory.mktemp("segment") / "x"
    write_posts(path, posts(20_000, words=3000), sealed=True)
    return PostSegment(path)


@CASES
@given(st.data())
def test_a_list_inside_runs_of_rows(segment: PostSegment, data: st.DataObject) -> None:
    code = data.draw(st.integers(1, len(segment.terms) - 1) | st.integers(1, 40))
    edges = sorted(data.draw(st.sets(st.integers(0, len(segment)), max_size=20)))
    edges = edges[: len(edges) // 2 * 2]
    begins, ends = (np.array(edges[i::2], np.int64) for i in range(2))
    rows, _ = rows_in_runs(code, segment.inverted, begins, ends)
    having = np.unique(np.repeat(np.arange(len(segment)), np.diff(segment.offsets))[segment.codes == code])
    inside = [row for row in having.tolist() if any(a <= row < b for a, b in zip(begins, ends, strict=True))]
    assert rows.tolist() == inside
    assert len(having) == segment.counts[code]


lons, lats = st.floats(-180, 180), st.floats(-90, 90)
boxes = st.builds(
    lambda a, b, w, h: np.array([a, b, min(180.0, a + w), min(90.0, b + h)]),
    lons,
    lats,
    st.floats(0, 90),
    st.floats(0, 60),
)


def places_of(box: np.ndarray, random: np.random.Generator) -> list[tuple[float, float]]:
    edge = [(box[i], box[j]) for i in (0, 2) for j in (1, 3)]
    return edge + [(random.uniform(box[0], box[2]), random.uniform(box[1], box[3])) for _ in range(20)]


@CASES
@given(lon=lons | st.sampled_from([180.0, -180.0]), lat=lats | st.sampled_from([90.0, -90.0]), box=boxes)
def test_no_place_of_a_box_is_nearer_than_its_least_distance(lon: float, lat: float, box: np.ndarray) -> None:
    least = least_distance_km(lon, lat, box)
    near = [haversine_km(lon, lat, x, y) for x, y in places_of(box, np.random.default_rng(1))]
    assert least <= min(near)


regions = (
    st.builds(lambda a, b, c, d: Rect(a, min(b, d), c, max(b, d)), lons, lats, lons, lats)
    | st.builds(Circle, lons, lats, st.sampled_from([1.0, 500.0, 5000.0, 15_000.0]))
    | st.lists(st.tuples(lons, lats), min_size=3, max_size=5, unique=True).map(lambda ring: Polygon((tuple(ring),)))
)


@CASES
@given(region=regions, box=boxes)
def test_a_region_covers_or_misses_all_places_of_a_box_where_it_says_so(region: Rect, box: np.ndarray) -> None:
    kind, bounds, shape = encode(region)
    form = np.array(shape, np.float64)
    said = relation(kind, *bounds, form, box)
    for x, y in places_of(box, np.random.default_rng(2)):
        inside = in_region(kind, *bounds, form, 0, len(form), x, y)
        assert said not in (COVERS, APART) or inside == (said == COVERS)


# -- term tables -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> PostSegment:
    """Large enough for tables at two levels, and for more words than are counted at first."""
    path = tmp_path_factory.mktemp("large") / "x"
    write_posts(path, posts(150_000, words=400_000, texts=["x"] * 150_000), sealed=True)
    return PostSegment(path)


def question(box: tuple[float, float, float, float] | None, since: int = BEGINNING, until: int = NEVER) -> Question:
    kind, bounds, shape = encode(None if box is None else Rect(*box))
    return Question(kind, bounds, frozen(np.array(shape, np.float64)), ((),), since, until, None)


@pytest.mark.parametrize(
    ("box", "since", "counting"),
    [
        (None, BEGINNING, Counting.MORE), (None, BEGINNING, Counting.ALL), (None, 0, Counting.MORE),
        ((-170, -80, 170, 80), BEGINNING, Counting.MORE), ((100, -90, -100, 10), BEGINNING, Counting.MORE),
        ((0, 0, 1, 1), 0, Counting.MORE), ((5, 85, 6, 86), BEGINNING, Counting.ALL),
    ],
)  # fmt: skip
def test_tables_and_border_posts_add_up(
    large: PostSegment, box: tuple[float, float, float, float] | None, since: int, counting: Counting
) -> None:
    asked = question(box, since)
    gone = frozen(np.sort(np.random.default_rng(3).choice(len(large), 1000, replace=False)))
    kind, bounds, shape = encode(None if box is None else Rect(*box))
    wanted = np.array(
        [in_region(kind, *bounds, np.array(shape), 0, 0, x, y) for x, y in zip(large.lon, large.lat, strict=True)]
    )
    wanted &= large.ts >= since
    wanted[gone] = False
    rows = np.repeat(np.arange(len(large)), np.diff(large.offsets))
    keys = np.unique(rows * len(large.terms) + large.codes)
    expected = np.bincount(keys[wanted[keys // len(large.terms)]] % len(large.terms), minlength=len(large.terms))
    part = count_terms(large, asked, gone, counting)
    assert part.posts.sum() == wanted.sum()
    if wanted.any():
        counted = int(part.counted[0])
        assert counted == min(MOST[counting], len(large.terms)) < len(large.terms) + 1
        assert np.array_equal(part.counts[1:-1], expected[1:counted])
    if box is None and since == BEGINNING:
        assert part.scans()[0].method == "term tables"
    for k in (1, 10, 5000):
        terms, sums, _ = greatest([count_terms(large, asked, gone, counting)], k, frozen(np.empty(0, np.uint64)))
        best = np.sort(expected[1:][expected[1:] > 0])[::-1]
        assert np.array_equal(np.sort(sums)[::-1][:k], best[:k])
        assert np.array_equal(expected[large.codes_of(frozen(terms))], sums)
