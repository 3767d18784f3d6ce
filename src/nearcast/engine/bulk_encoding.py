"""Subscriptions given as columns, without SQL → the columns of a query (`op_schema.QUERY_FIELDS`), all at once.

Regions, words and lives are the same for every kind of question; which rows are whose, and what is particular to them,
the kinds say (`language.roles.QueryRole`).
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.errors import BadInput
from nearcast.common.geo.containment import encode as encode_region
from nearcast.common.geo.shapes import EVERYWHERE, RECT, Circle
from nearcast.common.geo.wkt import parse_polygon
from nearcast.common.kinds import Kind
from nearcast.common.op_schema import CODE_LAST, NEVER, NOTHING_ASKED, QUERY_FIELDS
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine.empty_columns import default
from nearcast.engine.kernels.keyword_codes import are_plain, plain_codes
from nearcast.language.bulk_columns import BulkColumns, is_length
from nearcast.language.dnf import MOST_ALTERNATIVES
from nearcast.language.encode import encode_expression
from nearcast.language.keywords import parse_contains, parse_overlaps
from nearcast.language.known_kinds import known
from nearcast.storage.subscriptions.rows import take_runs

BOX = ("min_lon", "min_lat", "max_lon", "max_lat")
EXPRESSION = r'["()]|\b(?:AND|OR|NOT)\b'  # a text with any of these is more than words


def encode_bulk(
    table: pa.Table, tokenizer: Tokenizer, rows: np.ndarray, reasons: dict[int, str], longest: int | None = None
) -> pa.Table:
    """Subscriptions given as columns, without a Python loop where they are rectangles or circles and plain words.

    `reasons` gets why some are refused, by their numbers in `rows`.
    """
    bulk = BulkColumns(table, tokenizer, longest)
    claimed = _claimed(bulk)
    columns: dict[str, pa.Array] = _regions(bulk, claimed)
    columns |= _asked(bulk, claimed)
    columns["code"] = _codes(bulk)
    columns["life"] = _lives(bulk)
    reasons.update((int(rows[row]), reason) for row, reason in bulk.reasons.items())
    made = [columns[each.name] if each.name in columns else default(each, len(bulk)) for each in QUERY_FIELDS]
    return pa.table(made, schema=pa.schema(QUERY_FIELDS))


def _claimed(bulk: BulkColumns) -> list[tuple[Kind, np.ndarray]]:
    """The kinds that the columns are about, and the rows that each takes; the rest are for ranges."""
    free = np.ones(len(bulk), np.bool_)
    claimed = []
    for kind in sorted(known().claiming, key=lambda kind: kind.query.bulk_turn):
        asking = kind.query.bulk_rows(bulk)
        if asking is not None:
            claimed.append((kind, asking & free))
            free &= ~asking
    return claimed


def _asked(bulk: BulkColumns, claimed: list[tuple[Kind, np.ndarray]]) -> dict[str, pa.Array]:
    """The columns of what is particular to the kinds; where several refuse a row, the first to claim has its say."""
    columns: dict[str, np.ndarray | pa.Array] = {}
    asks = np.full(len(bulk), NOTHING_ASKED["asks"], np.uint8)
    for kind, rows in reversed(claimed):
        asks[rows] = kind.code
        for name, values in kind.query.encode_bulk(bulk, rows).items():
            columns[name] = _either(rows, values, columns[name]) if name in columns else values
    return {"asks": pa.array(asks)} | {name: _array(values) for name, values in columns.items()}


def _array(values: np.ndarray | pa.Array) -> pa.Array:
    return pa.array(values) if isinstance(values, np.ndarray) else values


def _either(rows: np.ndarray, values: np.ndarray | pa.Array, others: np.ndarray | pa.Array) -> np.ndarray | pa.Array:
    """`values` for some rows, `others` for the rest."""
    if isinstance(values, np.ndarray) and isinstance(others, np.ndarray):
        return np.where(rows, values, others)
    return pc.if_else(pa.array(rows), _array(values), _array(others))


def _lives(bulk: BulkColumns) -> pa.Array:
    life = np.full(len(bulk), NEVER, np.int64)
    if bulk.has("for_seconds"):
        seconds = bulk.numbers("for_seconds")
        good = is_length(seconds)
        bulk.refuse(~good & ~np.isnan(seconds), "for_seconds is not a length of time")
        life[good] = (seconds[good] * 1e6).astype(np.int64)
    return pa.array(life)


def _regions(bulk: BulkColumns, claimed: list[tuple[Kind, np.ndarray]]) -> dict[str, pa.Array]:
    """The columns of the region: a rectangle, a circle, a polygon or everywhere."""
    n = len(bulk)
    boxes = np.stack([bulk.numbers(name) for name in BOX])
    lon, lat, radius = (bulk.numbers(name) for name in ("lon", "lat", "radius_km"))
    boxed = ~np.isnan(boxes).all(axis=0)
    round_ = ~boxed & ~(np.isnan(lon) & np.isnan(lat) & np.isnan(radius))
    for kind, rows in claimed:
        if kind.query.bulk_place:
            round_ &= ~(rows & np.isnan(radius))
    polygons = bulk.table["polygon"] if bulk.has("polygon") else pa.nulls(n, pa.string())
    drawn = pc.is_valid(polygons).to_numpy(zero_copy_only=False)
    bulk.refuse(
        boxed.astype(int) + ~np.isnan(radius) + drawn > 1,
        "a query has one region: give a rectangle, a circle or a polygon",
    )
    bad = boxed & ~(
        (np.abs(boxes[0::2]) <= 180).all(axis=0) & (np.abs(boxes[1::2]) <= 90).all(axis=0) & (boxes[1] <= boxes[3])
    )  # fmt: skip
    bulk.refuse(bad, "bad rectangle: lon in -180..180, lat in -90..90, min_lat not above max_lat")
    boxes[:, ~boxed | bad] = np.array([[-180.0], [-90.0], [180.0], [90.0]])
    ends = np.flatnonzero((boxes[0] == -180) != (boxes[2] == 180))
    boxes[0, ends] = np.where(boxes[0, ends] == -180, 180, boxes[0, ends])  # as `common.geo.containment.on_both_sides`
    boxes[2, ends] = np.where(boxes[2, ends] == 180, -180, boxes[2, ends])
    kinds = np.where(boxed, RECT, EVERYWHERE).astype(np.uint8)
    shapes: dict[int, list[float]] = {}
    for i in np.flatnonzero(round_ | (drawn & ~boxed)):  # boxes of circles and polygons are worked out one by one
        try:
            region = _circle(lon[i], lat[i], radius[i]) if round_[i] else parse_polygon(polygons[int(i)].as_py())
            kinds[i], boxes[:, i], shape = encode_region(region)
            shapes[int(i)] = list(shape)
        except BadInput as error:
            bulk.reasons.setdefault(int(i), str(error))
    columns = dict(zip(BOX, map(pa.array, boxes), strict=True))
    return columns | {"region_kind": pa.array(kinds), "shape": _shapes(shapes, n)}


def _circle(lon: float, lat: float, radius: float) -> Circle:
    if not (abs(lon) <= 180 and abs(lat) <= 90 and 0 <= radius < np.inf):
        raise BadInput("bad circle: lon in -180..180, lat in -90..90, radius_km not negative")
    return Circle(float(lon), float(lat), float(radius))


def _shapes(shapes: dict[int, list[float]], rows: int) -> pa.ListArray:
    sizes = np.zeros(rows + 1, np.int32)
    for at, shape in shapes.items():
        sizes[at + 1] = len(shape)
    flat = np.array([value for i in sorted(shapes) for value in shapes[i]], np.float64)
    return pa.ListArray.from_arrays(pa.array(np.cumsum(sizes, dtype=np.int32)), pa.array(flat))


def _codes(bulk: BulkColumns) -> pa.ListArray:
    """The codes of `text` (all words) or `overlaps` (any word); expressions are parsed, words are not."""
    n = len(bulk)
    words = [bulk.table[name] if bulk.has(name) else pa.nulls(n, pa.string()) for name in ("text", "overlaps")]
    is_set = [pc.is_valid(column).to_numpy(zero_copy_only=False) for column in words]
    text = pc.fill_null(pc.coalesce(*words), "")
    text = pa.concat_arrays(text.chunks) if isinstance(text, pa.ChunkedArray) else text
    offsets = np.frombuffer(text.buffers()[1], np.int32)[text.offset : text.offset + n + 1]
    plain = are_plain(np.frombuffer(text.buffers()[2] or b"", np.uint8), offsets) & ~(is_set[0] & is_set[1])
    plain |= ~(is_set[0] | is_set[1])
    plain &= (np.diff(offsets) < 2 * MOST_ALTERNATIVES) | ~is_set[1]  # a shorter one has no more words than that
    code, ends = plain_codes(*bulk.tokenizer.terms(text), is_set[1])
    if not plain.all():
        hard = np.flatnonzero(~plain)  # mostly few: it is quicker to cut them into words as well than to take the rest
        more, more_ends = _general_codes(bulk, hard, text, words, is_set)
        begins, sizes = ends[:-1].astype(np.int64), np.diff(ends).astype(np.int64)
        begins[hard], sizes[hard] = len(code) + more_ends[:-1], np.diff(more_ends)
        code, ends = take_runs(np.concatenate([code, more]), begins, sizes)
    return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), pa.array(code))


def _general_codes(
    bulk: BulkColumns, hard: np.ndarray, texts: pa.StringArray, columns: list[pa.Array], is_set: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """(codes, where each begins and the last ends) of the rows `hard`: words of any script, tags, and expressions."""
    n, pick = len(hard), pa.array(hard)
    text = pc.utf8_trim_whitespace(texts.take(pick))
    words, (every, either) = [column.take(pick) for column in columns], [each[hard] for each in is_set]
    pieces = pc.utf8_split_whitespace(text)
    edges = pieces.offsets.to_numpy().astype(np.int64)
    code, ends, strange = _literals(pieces.values, bulk.tokenizer)
    nothing = ~(every | either)
    any_word = np.repeat(either & ~every, np.diff(edges))
    code[ends[:-1][any_word]] |= np.uint64(CODE_LAST)
    code[ends[edges[1:] - 1]] |= np.uint64(CODE_LAST)
    begins, sizes = ends[edges[:-1]], ends[edges[1:]] - ends[edges[:-1]]
    sizes[nothing] = 0
    odd = np.add.reduceat(strange, edges[:-1]) > 0 if n else np.zeros(0, np.bool_)
    odd |= pc.match_substring_regex(text, EXPRESSION).to_numpy(zero_copy_only=False) | (every & either)
    odd |= (np.diff(edges) > MOST_ALTERNATIVES) & either
    parsed = [code]
    end = len(code)
    for i in np.flatnonzero(odd & ~nothing):
        try:
            own = _expression_code([w[int(i)].as_py() for w in words], bulk.tokenizer)
        except BadInput as error:
            bulk.reasons[int(hard[i])] = str(error)
            own = []
        parsed.append(np.array(own, np.uint64))
        begins[i], sizes[i] = end, len(own)
        end += len(own)
    return take_runs(np.concatenate(parsed), begins, sizes)


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
