"""Cutting text files into blocks of whole lines, so that several readers share a file and none reads a line twice."""

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

BLOCK = 8 << 20
MAX_LINE = 64 << 20
_CUT = b"\x00"  # no JSON and no number holds it, so a line that was cut cannot pass for a whole one
_QUOTE, _NEWLINE = 34, 10


def line_blocks(stream: BinaryIO, start: int, stop: int, begin: int, end: int) -> Iterator[bytes]:
    """Blocks of whole lines, about 8 MB each: the lines that start in [start, stop), of those in [begin, end).

    Nothing outside [begin, end) is looked at: `begin` starts a line, `end` ends one. A line of more than 64 MB is cut.
    """
    position = start
    if start > begin:
        position = _next_line(stream, start - 1, end)
    stream.seek(position)
    carry = b""
    while position < stop:
        chunk = stream.read(min(BLOCK, stop - position))
        if not chunk:
            break
        position += len(chunk)
        if position >= stop and not chunk.endswith(b"\n"):
            rest = stream.readline(min(end - position, MAX_LINE))
            yield carry + chunk + (rest + _CUT if len(rest) == MAX_LINE else rest)
            return
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield carry + chunk[:cut]
            carry = chunk[cut:]
        else:
            carry = _longer(carry, chunk)
    if carry:
        yield carry


def stream_blocks(stream: BinaryIO) -> Iterator[bytes]:
    """Blocks of whole lines of a stream that cannot be sought in, to its end."""
    carry = b""
    while chunk := stream.read(BLOCK):
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield carry + chunk[:cut]
            carry = chunk[cut:]
        else:
            carry = _longer(carry, chunk)
    if carry:
        yield carry


def record_blocks(stream: BinaryIO) -> Iterator[bytes]:
    """Blocks of whole CSV records of a stream, to its end: a newline inside quotes ends no record.

    A quote that is not closed within 64 MB is taken for a stray one.
    """
    carry = b""
    while chunk := stream.read(BLOCK):
        data = carry + chunk
        cut = record_ends(data)[-1:]
        if not cut.size and len(data) > MAX_LINE:
            cut = np.array([data.rfind(b"\n") + 1 or len(data)])
        if cut.size:
            yield data[: cut[0]]
            data = data[cut[0] :]
        carry = data
    if carry:
        yield carry


def record_ends(data: bytes) -> np.ndarray:
    """Where CSV records end: after each newline that has an even number of quotes before it."""
    array = np.frombuffer(data, np.uint8)
    newlines = np.flatnonzero(array == _NEWLINE)
    if b'"' in data:
        newlines = newlines[np.searchsorted(np.flatnonzero(array == _QUOTE), newlines) % 2 == 0]
    return newlines + 1


def has_quoted_newlines(stream: BinaryIO) -> bool:
    """Whether some newline of a CSV file may be inside quotes, so that its lines are not its records."""
    odd = 0
    while chunk := stream.read(BLOCK):
        if b'"' not in chunk:
            if odd and b"\n" in chunk:
                return True
            continue
        array = np.frombuffer(chunk, np.uint8)
        quotes = np.flatnonzero(array == _QUOTE)
        newlines = np.flatnonzero(array == _NEWLINE)
        if ((np.searchsorted(quotes, newlines) + odd) % 2).any():
            return True
        odd = (odd + quotes.size) % 2
    return bool(odd)


def _next_line(stream: BinaryIO, position: int, end: int) -> int:
    """Where the first line after `position` begins (after the first newline at or behind it), or `end`."""
    stream.seek(position)
    while position < end:
        part = stream.readline(min(end - position, BLOCK))
        position += len(part)
        if not part or part.endswith(b"\n"):
            break
    return position


def _longer(line: bytes, more: bytes) -> bytes:
    if len(line) > MAX_LINE:
        return line
    line += more
    return line if len(line) <= MAX_LINE else line[:MAX_LINE] + _CUT
