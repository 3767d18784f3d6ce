"""Times written as text: ISO 8601, or epoch milliseconds as digits.

Arrow's own cast reads the common case, a column in one uniform style, at some 50 ns a value; where it refuses a column,
a regular expression reads every value by itself. Both give the same microseconds for what both accept.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MIN_TIME = -62_135_596_800_000_000  # 0001-01-01
MAX_TIME = 253_402_300_799_999_999  # the end of 9999

_ISO = (
    r"^(?P<year>[+-]?[0-9]{4,9})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
    r"(?:[Tt ](?P<hour>[0-9]{2})(?::?(?P<minute>[0-9]{2})(?::?(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]+))?)?)?"
    r" ?(?:[Zz]|UTC|(?P<sign>[+-])(?P<zone_hour>[0-9]{2})(?::?(?P<zone_minute>[0-9]{2}))?)?)?$"
)
_DAYS_IN_MONTH = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


def parse_times(strings: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """(microseconds, bad) of a string array; nulls are neither.

    A time without a zone is UTC; digits beyond the microsecond are dropped. A time outside the years 1 to 9999 is not
    bad but comes back outside [MIN_TIME, MAX_TIME].
    """
    for style in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
        try:
            us = pc.fill_null(pc.cast(strings, style).cast(pa.int64()), 0)
        except pa.ArrowInvalid:
            continue
        return us.to_numpy(zero_copy_only=False), np.zeros(len(strings), bool)
    return parse_times_one_by_one(strings)


def parse_times_one_by_one(strings: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """What `parse_times` gives, for columns of any mixture of styles."""
    strings = pc.utf8_trim_whitespace(strings)
    digits = _mask(pc.match_substring_regex(strings, r"^[+-]?[0-9]+$"))
    parts = pc.extract_regex(strings, _ISO)
    iso = _mask(parts.is_valid())
    us = np.zeros(len(strings), np.int64)
    bad = _mask(strings.is_valid()) & ~iso & ~digits
    if iso.any():
        moments, impossible = _moments(parts)
        us[iso] = moments[iso]
        bad |= iso & impossible
    if digits.any():
        us[digits] = _milliseconds(strings.filter(pa.array(digits)))
    return us, bad


def from_milliseconds(milliseconds: np.ndarray) -> np.ndarray:
    """Whole epoch milliseconds as microseconds; what is out of range stays so, without overflow."""
    return np.asarray(np.clip(milliseconds, MIN_TIME // 1000 - 1, MAX_TIME // 1000 + 1).astype(np.int64) * 1000)


def _milliseconds(digits: pa.Array) -> np.ndarray:
    number = pc.utf8_ltrim(digits, "+")
    long = pc.greater(pc.utf8_length(number), 18)
    sentinel = pc.if_else(pc.starts_with(number, "-"), "-999999999999999999", "999999999999999999")
    return from_milliseconds(pc.if_else(long, sentinel, number).cast(pa.int64()).to_numpy(zero_copy_only=False))


def _moments(parts: pa.StructArray) -> tuple[np.ndarray, np.ndarray]:
    year = np.clip(_number(pc.utf8_ltrim(parts.field("year"), "+")), -10_000, 20_000)
    month, day = _number(parts.field("month")), _number(parts.field("day"))
    hour, minute, second = (_number(parts.field(name)) for name in ("hour", "minute", "second"))
    fraction = pc.utf8_rpad(pc.utf8_slice_codeunits(parts.field("fraction"), 0, 6), 6, "0")
    zone_hour, zone_minute = _number(parts.field("zone_hour")), _number(parts.field("zone_minute"))
    west = _mask(pc.equal(parts.field("sign"), "-"))

    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0)) & (month == 2)
    known_month = (month >= 1) & (month <= 12)
    last_day = _DAYS_IN_MONTH[np.where(known_month, month, 0)] + leap
    possible = known_month & (day >= 1) & (day <= last_day) & (hour <= 23) & (minute <= 59) & (second <= 60)
    possible &= (zone_hour <= 23) & (zone_minute <= 59)

    zone = np.where(west, -1, 1) * (zone_hour * 60 + zone_minute)
    seconds = _days_since_epoch(year, month, day) * 86_400 + hour * 3_600 + (minute - zone) * 60 + second
    return seconds * 1_000_000 + _number(fraction), ~possible


def _days_since_epoch(year: np.ndarray, month: np.ndarray, day: np.ndarray) -> np.ndarray:
    """Days of the proleptic Gregorian calendar, by counting years from March."""
    year = year - (month <= 2)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return np.asarray(year * 365 + year // 4 - year // 100 + year // 400 + day_of_year - 719_468)


def _number(strings: pa.Array) -> np.ndarray:
    filled = pc.if_else(pc.fill_null(pc.equal(strings, ""), True), "0", strings)
    return np.asarray(filled.cast(pa.int64()))


def _mask(booleans: pa.Array) -> np.ndarray:
    return np.asarray(pc.fill_null(booleans, False))
