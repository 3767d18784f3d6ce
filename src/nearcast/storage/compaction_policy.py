"""Which segments to merge: small ones of about the same size, several at a time.

Each size class has at most FAN segments before they become one of the next, so a row is rewritten about log_FAN(n)
times, and a state of any length has few segments.

A batch stands still while it merges, at some 2 µs a post, and holds all the posts in memory. So segments of LARGEST
rows and more are left as they are, and a merge has some eight times that at most. With batches of 100,000 posts and two
workers the longest is one of 3.2 million posts, some 7 s; were that not the end, the next would be eight times as long.
In exchange a search of 100 million posts has some 30 segments more to look at, some ten microseconds each.
"""

from collections.abc import Sequence

from nearcast.storage.manifest import SegmentRef

FAN = 8
LARGEST = {"posts": 1_000_000, "subscriptions": 20_000_000, "results": 2_000_000, "terms": 1 << 40}
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
