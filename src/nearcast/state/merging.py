"""Which segments to merge: small ones of about the same size, several at a time.

Each size class has at most FAN segments before they become one of the next, so a row is rewritten about log_FAN(n)
times, and a state of any length has few segments.
"""

from collections.abc import Sequence

from nearcast.state.manifest import SegmentRef

FAN = 8
LARGEST = {"posts": 4_000_000, "subscriptions": 20_000_000, "results": 2_000_000, "terms": 1 << 40}
SMALLEST = 2_000  # all segments below this are one class


def size_class(rows: int) -> int:
    size, level = SMALLEST, 0
    while rows > size:
        size *= FAN
        level += 1
    return level


def to_merge(refs: Sequence[SegmentRef], fan: int = FAN) -> list[SegmentRef]:
    """Segments of one size class that should become one, or none. The smallest class that is full goes first."""
    classes: dict[int, list[SegmentRef]] = {}
    for ref in refs:
        if ref.rows < LARGEST.get(ref.kind, 1 << 40):
            classes.setdefault(size_class(ref.rows), []).append(ref)
    for level in sorted(classes):
        if len(classes[level]) >= fan:
            return classes[level]
    return []


def run_to_merge(refs: Sequence[SegmentRef], fan: int = FAN) -> list[SegmentRef]:
    """As `to_merge`, for segments whose order matters: neighbours only. `refs` are in order."""
    run: list[SegmentRef] = []
    best: list[SegmentRef] = []
    for ref in refs:
        if run and size_class(ref.rows) != size_class(run[-1].rows):
            run = []
        if ref.rows >= LARGEST.get(ref.kind, 1 << 40):
            run = []
            continue
        run.append(ref)
        if len(run) >= fan and (not best or size_class(run[0].rows) < size_class(best[0].rows)):
            best = list(run)
    return best[: 4 * fan]
