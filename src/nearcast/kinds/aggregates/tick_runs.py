"""Which reports a subscription sends of the beats that are due: all, but of many empty ones in a row only some."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nearcast.common.kernels.tick_limits import MOST_EMPTY


@dataclass(frozen=True)
class Sent:
    """A report of the window that ends at `window_end`; `rows` is the place of its rows, -1 if it has none. It stands
    for `skipped` empty ones, if that is not 0.
    """

    window_end: int
    rows: int = -1
    skipped: int = 0


def sent(begin: int, count: int, beat: int, busy: Mapping[int, int], final: bool, run: list[int]) -> Iterator[Sent]:
    """The reports of `count` beats from `begin` on. `busy` has the beats that are not empty, in order, and the place of
    their rows. `run` holds how many empty ones there were in a row, and is brought up to date.

    The first MOST_EMPTY empty ones in a row are sent; how many there were more is told before the next that is not
    empty, or at the end (`final`).
    """
    upcoming, end = begin, begin + count * beat
    for moment, rows in [*busy.items(), (end, -1)]:
        empty = (moment - upcoming) // beat
        for n in range(min(empty, max(0, MOST_EMPTY - run[0]))):
            yield Sent(upcoming + n * beat)
        run[0] += empty
        if moment == end:
            break
        if run[0] > MOST_EMPTY:
            yield Sent(moment - beat, skipped=run[0] - MOST_EMPTY)
        yield Sent(moment, rows)
        run[0] = 0
        upcoming = moment + beat
    if final and run[0] > MOST_EMPTY:
        yield Sent(end - beat, skipped=run[0] - MOST_EMPTY)
        run[0] = 0
