"""The values a post must have (id, time, place, text) from columns of any type, with what is wrong with them.

Each function takes the columns of one field, of which the first that is set in a row counts, and marks faulty rows.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.kernels.hashing import hash_strings
from nearcast.sources.iso_times import MAX_TIME, MIN_TIME, from_milliseconds, parse_times
from nearcast.sources.raw import Faults

MAX_TEXT_BYTES = 4 << 20
JSON_NUMBER = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$"
_ANY_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def mask(booleans: pa.Array) -> np.ndarray:
    """A boolean array as a NumPy mask, null being false."""
    return np.asarray(pc.fill_null(booleans, False))


def is_set(array: pa.Array) -> np.ndarray:
    """The rows with a value."""
    return np.ones(len(array), bool) if array.null_count == 0 else mask(array.is_valid())


def ids(columns: Sequence[pa.Array], faults: Faults) -> tuple[pa.Array, pa.Array]:
    """(`id`, `id_text`): whole numbers are themselves, strings are kept and hashed."""
    rows = faults.codes.size
    values, found, wrong = np.zeros(rows, np.int64), np.zeros(rows, bool), np.zeros(rows, bool)
    texts: pa.Array = pa.nulls(rows, pa.string())
    for array in columns:
        here = is_set(array) & ~found
        if not here.any():
            continue
        strings = _utf8(array, here, faults)
        if strings is not None:
            here &= ~mask(pc.equal(strings, ""))
            texts = pc.if_else(pa.array(here), strings, texts)
            values = np.where(here, hash_strings(*string_buffers(strings)), values)
        else:
            numbers, missing, unusable, outside = _whole_numbers(array)
            here &= ~missing
            faults.mark(here & outside, "id out of range")
            wrong |= here & unusable
            values = np.where(here, numbers, values)
        found |= here
    faults.mark(~found, "no id")
    faults.mark(wrong, "bad id")
    return pa.array(values), texts


def times(columns: Sequence[pa.Array], faults: Faults, required: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """(microseconds, which rows have them)."""
    rows = faults.codes.size
    us, found, wrong = np.zeros(rows, np.int64), np.zeros(rows, bool), np.zeros(rows, bool)
    for array in columns:
        here = is_set(array) & ~found
        moments, missing, bad = _moments(array, here, faults)
        here &= ~missing
        us = np.where(here, moments, us)
        wrong |= here & bad
        found |= here
    if required:
        faults.mark(~found, "no time")
    faults.mark(wrong, "bad time")
    faults.mark(found & ((us < MIN_TIME) | (us > MAX_TIME)), "time out of range")
    return us, found


def coordinates(columns: Sequence[pa.Array], faults: Faults) -> np.ndarray:
    """Degrees, as doubles; whether they are in range is for the caller to say."""
    rows = faults.codes.size
    degrees, found, wrong = np.zeros(rows), np.zeros(rows, bool), np.zeros(rows, bool)
    for array in columns:
        here = is_set(array) & ~found
        numbers, missing, bad = _numbers(array, here, faults)
        here &= ~missing
        degrees = np.where(here, numbers, degrees)
        wrong |= here & (bad | ~np.isfinite(numbers))
        found |= here
    faults.mark(~found, "no coordinates")
    faults.mark(wrong, "bad coordinates")
    return degrees


def texts(columns: Sequence[pa.Array], faults: Faults) -> pa.Array:
    """The text, '' where there is none."""
    text = strings(columns, faults, "text is not a string")
    faults.mark(mask(pc.greater(pc.binary_length(text), MAX_TEXT_BYTES)), "text too long")
    return text if text.null_count == 0 else pc.fill_null(text, "")


def strings(columns: Sequence[pa.Array], faults: Faults, otherwise: str) -> pa.Array:
    """The strings among the values; a value of another type is a fault, with that reason."""
    found: pa.Array | None = None
    for array in columns:
        here = is_set(array)
        text = _utf8(array, here, faults)
        if text is None:
            faults.mark(here, otherwise)
        else:
            found = text if found is None else pc.coalesce(found, text)
    return pa.nulls(faults.codes.size, pa.string()) if found is None else found


def string_buffers(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """(bytes, int64 offsets) of a string array, nulls being empty."""
    array = array if array.null_count == 0 else pc.fill_null(array, "")
    if len(array) == 0:
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    _, offsets, data = array.buffers()
    positions = np.frombuffer(offsets, np.int32, len(array) + 1, array.offset * 4)
    return np.frombuffer(data or b"", np.uint8), positions.astype(np.int64)


def _utf8(array: pa.Array, here: np.ndarray, faults: Faults) -> pa.Array | None:
    """The array as strings, or None if it holds none; bytes that are no UTF-8 are marked."""
    if pa.types.is_string(array.type):
        return array
    if not (pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)):
        return None
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        values = array.to_pylist()
        decoded = [None if value is None else value.decode("utf-8", "replace") for value in values]
        broken = [text is not None and text.encode() != value for text, value in zip(decoded, values, strict=True)]
        faults.mark(here & np.array(broken, bool), "not UTF-8")
        return pa.array(decoded, pa.string())


def _whole_numbers(array: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(int64, missing, unusable, out of range)."""
    rows, kind = len(array), array.type
    nothing = np.zeros(rows, bool)
    if pa.types.is_decimal(kind):
        try:
            array = array.cast(pa.int64())
        except pa.ArrowInvalid:
            array = array.cast(pa.float64())
        kind = array.type
    if pa.types.is_uint64(kind):
        numbers = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
        return numbers.astype(np.int64), nothing, nothing, numbers > np.uint64(2**63 - 1)
    if pa.types.is_integer(kind):
        return _filled(array.cast(pa.int64())), nothing, nothing, nothing
    if pa.types.is_floating(kind):
        numbers = _filled(array.cast(pa.float64()))
        missing = np.isnan(numbers)
        unusable = ~missing & (~np.isfinite(numbers) | (numbers != np.floor(numbers)))
        outside = ~missing & ~unusable & ((numbers >= 2.0**63) | (numbers < -(2.0**63)))
        return np.where(missing | unusable | outside, 0, numbers).astype(np.int64), missing, unusable, outside
    return np.zeros(rows, np.int64), nothing, ~nothing, nothing


def _numbers(array: pa.Array, here: np.ndarray, faults: Faults) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(doubles, missing, not a number at all)."""
    nothing = np.zeros(len(array), bool)
    text = _utf8(array, here, faults)
    if text is not None:
        text = pc.utf8_trim_whitespace(text)
        numeric = mask(pc.match_substring_regex(text, _ANY_NUMBER))
        numbers = pc.utf8_ltrim(pc.if_else(pa.array(numeric), text, "0"), "+").cast(pa.float64())
        return _filled(numbers), mask(pc.equal(text, "")), ~numeric
    if pa.types.is_integer(array.type) or pa.types.is_floating(array.type) or pa.types.is_decimal(array.type):
        return _filled(pc.cast(array, pa.float64(), safe=False)), nothing, nothing
    return np.zeros(len(array)), nothing, ~nothing


def _moments(array: pa.Array, here: np.ndarray, faults: Faults) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(microseconds, missing, bad); a moment out of range stays out of range."""
    rows, kind = len(array), array.type
    nothing = np.zeros(rows, bool)
    text = _utf8(array, here, faults)
    if text is not None:
        blank = mask(pc.equal(text, ""))
        if blank.any():
            text = pc.if_else(pa.array(blank), pa.scalar(None, pa.string()), text)
        us, bad = parse_times(text)
        return us, blank, bad
    if pa.types.is_timestamp(kind):
        ticks = _filled(array.cast(pa.int64()))
        return (ticks // 1000 if kind.unit == "ns" else _scaled(ticks, _MICROSECONDS[kind.unit])), nothing, nothing
    if pa.types.is_date32(kind):
        return _scaled(_filled(array.cast(pa.int32())).astype(np.int64), 86_400_000_000), nothing, nothing
    if pa.types.is_date64(kind):
        return from_milliseconds(_filled(array.cast(pa.int64()))), nothing, nothing
    if pa.types.is_uint64(kind):
        return from_milliseconds(np.minimum(_filled(array), np.uint64(MAX_TIME)).astype(np.int64)), nothing, nothing
    if pa.types.is_integer(kind):
        return from_milliseconds(_filled(array.cast(pa.int64()))), nothing, nothing
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = _filled(pc.cast(array, pa.float64(), safe=False))
        missing, endless = np.isnan(numbers), np.isinf(numbers)
        numbers = np.clip(np.where(missing, 0.0, numbers), MIN_TIME / 1000 - 1, MAX_TIME / 1000 + 2)
        whole = np.floor(numbers)
        return from_milliseconds(whole) + np.rint((numbers - whole) * 1000).astype(np.int64), missing, endless
    return np.zeros(rows, np.int64), nothing, ~nothing


def _scaled(ticks: np.ndarray, factor: int) -> np.ndarray:
    return ticks if factor == 1 else np.clip(ticks, MIN_TIME // factor - 1, MAX_TIME // factor + 1) * factor


def _filled(array: pa.Array) -> np.ndarray:
    return np.asarray(array if array.null_count == 0 else pc.fill_null(array, 0))
