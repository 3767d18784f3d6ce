"""Subscriptions given as columns, without SQL → the columns of a query (`op_schema.QUERY_FIELDS`), all at once."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.errors import BadInput
from nearcast.common.geo.containment import encode as encode_region
from nearcast.common.geo.shapes import EVERYWHERE, RECT, Circle, Region
from nearcast.common.geo.wkt import parse_polygon
from nearcast.common.op_schema import BEGINNING, CODE_LAST, NEAREST, NEVER, QUERY_FIELDS, RANGE, RELEVANT, TERMS
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine.kernels.keyword_codes import are_plain, plain_codes
from nearcast.kinds.relevance.query import HALF_WORLD_KM
from nearcast.kinds.relevance.vectors import Idf
from nearcast.language.dnf import MOST_ALTERNATIVES
from nearcast.language.encode import encode_expression
from nearcast.language.keywords import MOST_WORDS, parse_contains, parse_overlaps
from nearcast.sources.op_records import BEAT_COLUMNS, TASTE_COLUMNS
from nearcast.storage.subscriptions.rows import take_runs

TOO_LONG = "its window is longer than posts are kept (--retention)"
NO_WORDS, NO_TASTE = pa.array([], pa.uint64()), pa.array([], pa.float64())
OPERATOR = r"(?:^|\s)(?:AND|OR|NOT)(?:\s|$)"
EXPRESSION = r'["()]|\b(?:AND|OR|NOT)\b'  # a text with any of these is more than words


def encode_bulk(
    table: pa.Table, tokenizer: Tokenizer, rows: np.ndarray, reasons: dict[int, str], longest: int | None = None
) -> pa.Table:
    """Subscriptions given as columns, without a Python loop where they are rectangles or circles and plain words."""
    n = len(table)
    relevant = ~np.isnan(_numbers(table, "alpha")) if "alpha" in table.column_names else np.zeros(n, np.bool_)
    window, beat = _bulk_beats(table, rows, reasons, longest, relevant)
    k, lon, lat = _bulk_points(table, rows, reasons, beat > 0, relevant)
    boxes, kinds, shapes, shape_offsets = _bulk_regions(table, rows, reasons, ((k > 0) & (beat == 0)) | relevant)
    words, taste = _bulk_tastes(table, tokenizer, rows, reasons, longest, relevant)
    code, code_offsets = _bulk_codes(table, tokenizer, rows, reasons)
    life = np.full(n, NEVER, np.int64)
    if "for_seconds" in table.column_names:
        seconds = _numbers(table, "for_seconds")
        given = (seconds >= 1e-6) & (seconds < 1e12)
        for i in np.flatnonzero(~given & ~np.isnan(seconds)):
            reasons[int(rows[i])] = "for_seconds is not a length of time"
        life[given] = (seconds[given] * 1e6).astype(np.int64)
    columns = [
        pa.array(kinds), *(pa.array(column) for column in boxes),
        pa.ListArray.from_arrays(pa.array(shape_offsets), pa.array(shapes)),
        pa.ListArray.from_arrays(pa.array(code_offsets), pa.array(code)),
        pa.array(np.full(n, BEGINNING)), pa.array(np.full(n, NEVER)), pa.array(life),
        pa.nulls(n, pa.string()), pa.nulls(n, pa.string()),
        pa.array(np.select([relevant, beat > 0, k > 0], [RELEVANT, TERMS, NEAREST], RANGE).astype(np.uint8)),
        pa.array(k), pa.array(lon), pa.array(lat), pa.array(window), pa.array(beat), words, taste,
    ]  # fmt: skip
    return pa.table(columns, schema=pa.schema(QUERY_FIELDS))


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    if name not in table.column_names:
        return np.full(len(table), np.nan)
    return table[name].cast(pa.float64()).to_numpy()


def _bulk_beats(
    table: pa.Table, rows: np.ndarray, reasons: dict[int, str], longest: int | None, relevant: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(window, beat) in microseconds: both ask for the k most frequent terms; 0 where they are not given, and of the
    most relevant, whose window is part of their taste.
    """
    if not set(BEAT_COLUMNS) & set(table.column_names):
        return np.zeros(len(table), np.int64), np.zeros(len(table), np.int64)
    window, beat = (_numbers(table, name) for name in BEAT_COLUMNS)
    given = ~(np.isnan(window) & np.isnan(beat)) & ~relevant
    good = given & (window > 0) & (window < 1e12) & (beat >= 1e-6) & (beat < 1e12)
    window, beat = (np.where(good, each * 1e6, 0).astype(np.int64) for each in (window, beat))
    long = good & (window > longest) if longest is not None else np.zeros(len(table), np.bool_)
    for i in np.flatnonzero(given & ~good):
        reasons[int(rows[i])] = "window_seconds and sync_seconds are lengths of time, and come together"
    for i in np.flatnonzero(long):
        reasons[int(rows[i])] = TOO_LONG
    return window, beat


def _bulk_points(
    table: pa.Table, rows: np.ndarray, reasons: dict[int, str], reporting: np.ndarray, relevant: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(k, lon, lat): `k` with `lon` and `lat` asks for the k nearest to that place, or most relevant, or for k terms
    where they are reported (10 unless given); 0 where it is not given.
    """
    if "k" not in table.column_names and not (reporting | relevant).any():
        return np.zeros(len(table), np.int64), np.zeros(len(table)), np.zeros(len(table))
    k, lon, lat = (_numbers(table, name) for name in ("k", "lon", "lat"))
    k = np.where(reporting & np.isnan(k), 10.0, k)
    given = ~np.isnan(k) | relevant
    whole = given & (k >= 1) & (k < 2**53) & (k == np.floor(k))
    there = reporting | ((np.abs(lon) <= 180) & (np.abs(lat) <= 90))
    for i in np.flatnonzero(given & ~whole):
        reasons[int(rows[i])] = "k is not a whole number of at least 1"
    for i in np.flatnonzero(whole & ~there):
        what = "most relevant" if relevant[i] else "nearest"
        reasons[int(rows[i])] = f"k asks for the {what} to a place: give lon in -180..180 and lat in -90..90"
    good = whole & there
    nearest = good & ~reporting
    return np.where(good, k, 0).astype(np.int64), np.where(nearest, lon, 0.0), np.where(nearest, lat, 0.0)


def _bulk_tastes(
    table: pa.Table,
    tokenizer: Tokenizer,
    rows: np.ndarray,
    reasons: dict[int, str],
    longest: int | None,
    relevant: np.ndarray,
) -> tuple[pa.ListArray, pa.ListArray]:
    """(words, taste) as in `common.op_schema`: `alpha` asks for the most relevant to `words`, of the last
    `window_posts` or `window_seconds`, within a reach (`reach_km`) of half the world unless given. Both are empty for
    other rows.
    """
    n = len(table)
    empty = pa.array(np.zeros(n + 1, np.int32))
    if not {*TASTE_COLUMNS, "words"} & set(table.column_names):
        return pa.ListArray.from_arrays(empty, NO_WORDS), pa.ListArray.from_arrays(empty, NO_TASTE)
    given = {name: _numbers(table, name) for name in (*TASTE_COLUMNS, *BEAT_COLUMNS)}
    alpha, reach, posts, seconds, beat = given.values()
    counted, timed, texts = ~np.isnan(posts), ~np.isnan(seconds), pa.nulls(n, pa.string())
    stray = counted | ~np.isnan(reach)
    if "words" in table.column_names:
        texts = table["words"]
        stray |= pc.is_valid(texts).to_numpy()
    for i in np.flatnonzero(stray & ~relevant):
        reasons[int(rows[i])] = "words, reach_km and window_posts ask for the most relevant, which takes an alpha too"
    joined = pc.fill_null(pc.match_substring_regex(texts, OPERATOR), False).to_numpy(zero_copy_only=False)
    texts = texts if relevant.all() else pc.if_else(pa.array(relevant), texts, None)
    terms, offsets, _ = Idf.none().weigh(*tokenizer.terms(texts))  # each word once, in order
    sizes = np.diff(offsets)
    reach = np.where(np.isnan(reach), HALF_WORLD_KM, reach)
    window = np.rint(np.where((seconds > 0) & (seconds < 1e12), seconds, 0.0) * 1e6)
    whole = (posts >= 1) & (posts < 2**53) & (posts == np.floor(posts))
    for bad, reason in (
        (~((alpha >= 0) & (alpha <= 1)), "alpha is not a number from 0 (words alone) to 1 (nearness alone)"),
        (~((reach > 0) & (reach < np.inf)), "reach_km is not a number greater than 0"),
        (joined, "RELEVANCE takes plain words, and each that a post has counts; for AND, OR and NOT use text"),
        (sizes == 0, "the most relevant are so to some words: give at least one in words"),
        (sizes > MOST_WORDS, f"words has more than {MOST_WORDS:,} words"),
        (~np.isnan(beat), "the most relevant are kept at all times: with alpha, sync_seconds makes no sense"),
        (counted == timed, "the most relevant are those of a window: give window_posts or window_seconds"),
        (counted & ~whole, "window_posts is not a whole number of at least 1"),
        (timed & (window < 1), "window_seconds is not a length of time"),
        (window > (np.inf if longest is None else longest), TOO_LONG),
    ):
        for i in np.flatnonzero(bad & relevant):
            reasons[int(rows[i])] = reason
    taste = np.stack([alpha, reach, np.where(counted, posts, 0.0), window], axis=1)[relevant]
    ends = np.zeros(n + 1, np.int32)
    np.cumsum(4 * relevant, out=ends[1:])
    return (
        pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(terms)),
        pa.ListArray.from_arrays(pa.array(ends), pa.array(taste.ravel())),
    )


def _bulk_regions(
    table: pa.Table, rows: np.ndarray, reasons: dict[int, str], nearest: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    n = len(table)
    boxes = np.stack([_numbers(table, name) for name in ("min_lon", "min_lat", "max_lon", "max_lat")])
    lon, lat, radius = (_numbers(table, name) for name in ("lon", "lat", "radius_km"))
    boxed = ~np.isnan(boxes).all(axis=0)
    round_ = ~boxed & ~(np.isnan(lon) & np.isnan(lat) & np.isnan(radius))
    round_ &= ~(nearest & np.isnan(radius))  # the nearest or most relevant to a place, wherever they are
    polygons = table["polygon"] if "polygon" in table.column_names else None
    drawn = ~boxed & ~round_ & (pc.is_valid(polygons).to_numpy() if polygons is not None else np.zeros(n, np.bool_))
    kinds = np.full(n, EVERYWHERE, np.uint8)
    kinds[boxed] = RECT
    bad = boxed & ~(
        (np.abs(boxes[0::2]) <= 180).all(axis=0) & (np.abs(boxes[1::2]) <= 90).all(axis=0) & (boxes[1] <= boxes[3])
    )  # fmt: skip
    twice = (
        boxed.astype(int) + ~np.isnan(radius) + (pc.is_valid(polygons).to_numpy() if polygons is not None else 0) > 1
    )
    for i in np.flatnonzero(twice):
        reasons[int(rows[i])] = "a query has one region: give a rectangle, a circle or a polygon"
    for i in np.flatnonzero(bad):
        reasons[int(rows[i])] = "bad rectangle: lon in -180..180, lat in -90..90, min_lat not above max_lat"
    boxes[:, ~boxed | bad] = np.array([[-180.0], [-90.0], [180.0], [90.0]])
    ends = np.flatnonzero((boxes[0] == -180) != (boxes[2] == 180))
    boxes[0, ends] = np.where(boxes[0, ends] == -180, 180, boxes[0, ends])  # as `common.geo.containment.on_both_sides`
    boxes[2, ends] = np.where(boxes[2, ends] == 180, -180, boxes[2, ends])
    shapes: dict[int, list[float]] = {}
    for i in np.flatnonzero(round_ | drawn):  # bounding boxes of circles and polygons are worked out one by one
        try:
            if round_[i]:
                if not (abs(lon[i]) <= 180 and abs(lat[i]) <= 90 and 0 <= radius[i] < np.inf):
                    raise BadInput("bad circle: lon in -180..180, lat in -90..90, radius_km not negative")
                region: Region = Circle(float(lon[i]), float(lat[i]), float(radius[i]))
            else:
                region = parse_polygon(polygons[int(i)].as_py() if polygons is not None else "")
            kind, boxes[:, i], shape = encode_region(region)
            kinds[i] = kind
            shapes[int(i)] = list(shape)
        except BadInput as error:
            reasons.setdefault(int(rows[i]), str(error))
    sizes = np.zeros(n + 1, np.int32)
    for at, shape in shapes.items():
        sizes[at + 1] = len(shape)
    flat = np.array([value for i in sorted(shapes) for value in shapes[i]], np.float64)
    return boxes, kinds, flat, np.cumsum(sizes, dtype=np.int32)


def _bulk_codes(
    table: pa.Table, tokenizer: Tokenizer, rows: np.ndarray, reasons: dict[int, str]
) -> tuple[np.ndarray, np.ndarray]:
    """The codes of `text` (all words) or `overlaps` (any word); expressions are parsed, words are not."""
    n = len(table)
    words = [table[name] if name in table.column_names else pa.nulls(n, pa.string()) for name in ("text", "overlaps")]
    given = [pc.is_valid(column).to_numpy(zero_copy_only=False) for column in words]
    text = pc.fill_null(pc.coalesce(*words), "")
    text = pa.concat_arrays(text.chunks) if isinstance(text, pa.ChunkedArray) else text
    offsets = np.frombuffer(text.buffers()[1], np.int32)[text.offset : text.offset + n + 1]
    plain = are_plain(np.frombuffer(text.buffers()[2] or b"", np.uint8), offsets) & ~(given[0] & given[1])
    plain |= ~(given[0] | given[1])
    plain &= (np.diff(offsets) < 2 * MOST_ALTERNATIVES) | ~given[1]  # a shorter one has no more words than that
    code, ends = plain_codes(*tokenizer.terms(text), given[1])
    if plain.all():
        return code, ends
    hard = np.flatnonzero(~plain)  # mostly few: it is quicker to cut them into words as well than to take the others
    pick = pa.array(hard)
    some = [column.take(pick) for column in words]
    more, more_ends = _general_codes(
        text.take(pick), some, [each[hard] for each in given], tokenizer, rows[hard], reasons
    )
    begins, sizes = ends[:-1].astype(np.int64), np.diff(ends).astype(np.int64)
    begins[hard], sizes[hard] = len(code) + more_ends[:-1], np.diff(more_ends)
    taken, offsets = take_runs(np.concatenate([code, more]), begins, sizes)
    return taken, offsets.astype(np.int32)


def _general_codes(
    text: pa.StringArray,
    words: list[pa.Array],
    given: list[np.ndarray],
    tokenizer: Tokenizer,
    rows: np.ndarray,
    reasons: dict[int, str],
) -> tuple[np.ndarray, np.ndarray]:
    """Words of any script, tags, and expressions."""
    n = len(text)
    text = pc.utf8_trim_whitespace(text)
    pieces = pc.utf8_split_whitespace(text)
    edges = pieces.offsets.to_numpy().astype(np.int64)
    code, ends, strange = _literals(pieces.values, tokenizer)
    nothing = ~(given[0] | given[1])
    any_word = np.repeat(given[1] & ~given[0], np.diff(edges))
    code[ends[:-1][any_word]] |= np.uint64(CODE_LAST)
    code[ends[edges[1:] - 1]] |= np.uint64(CODE_LAST)
    begins, sizes = ends[edges[:-1]], ends[edges[1:]] - ends[edges[:-1]]
    sizes[nothing] = 0
    odd = np.add.reduceat(strange, edges[:-1]) > 0 if n else np.zeros(0, np.bool_)
    odd |= pc.match_substring_regex(text, EXPRESSION).to_numpy(zero_copy_only=False) | (given[0] & given[1])
    odd |= (np.diff(edges) > MOST_ALTERNATIVES) & given[1]
    parsed = [code]
    end = len(code)
    for i in np.flatnonzero(odd & ~nothing):
        try:
            own = _expression_code([w[int(i)].as_py() for w in words], tokenizer)
        except BadInput as error:
            reasons[int(rows[i])] = str(error)
            own = []
        parsed.append(np.array(own, np.uint64))
        begins[i], sizes[i] = end, len(own)
        end += len(own)
    taken, out = take_runs(np.concatenate(parsed), begins, sizes)
    return taken, out.astype(np.int32)


def _literals(pieces: pa.StringArray, tokenizer: Tokenizer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(code, where each piece's literal begins and the last ends, which pieces are no single word, phrase or tag)."""
    terms, offsets = tokenizer.terms(pieces)
    counts = np.diff(offsets)
    boundaries = np.concatenate(([0], np.cumsum(terms == 0)))
    tagged = boundaries[offsets[1:]] > boundaries[offsets[:-1]]
    simple_tag = tagged & (counts == 3) & pc.match_substring_regex(pieces, "^[#@]").to_numpy(zero_copy_only=False)
    strange = (counts == 0) | (tagged & ~simple_tag)
    lengths = np.where(
        strange, 0, np.where(simple_tag, 1, counts)
    )  # of "#flood" (flood, boundary, #flood) only the tag
    ends = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum(lengths + 1, out=ends[1:])
    code = np.empty(ends[-1], np.uint64)
    code[ends[:-1]] = lengths.astype(np.uint64)
    firsts = np.cumsum(lengths) - lengths
    source = np.repeat(offsets[:-1] + np.where(simple_tag, 2, 0) - firsts, lengths) + np.arange(lengths.sum())
    target = np.repeat(ends[:-1] + 1 - firsts, lengths) + np.arange(lengths.sum())
    code[target] = terms[source]
    return code, ends, strange


def _expression_code(words: list[str | None], tokenizer: Tokenizer) -> list[int]:
    if words[0] is not None and words[1] is not None:
        raise BadInput("give text (all words) or overlaps (any word), not both")
    if words[0] is not None:
        expression = parse_contains(words[0], tokenizer)
    else:
        expression = parse_overlaps(str(words[1]), tokenizer)
    code = encode_expression(expression)
    if code is None:
        raise BadInput("this expression can match nothing")
    return code
