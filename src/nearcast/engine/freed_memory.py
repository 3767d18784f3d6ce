"""Memory that a worker frees and soon wants again.

The C library gives arrays of more than a few hundred kilobytes back to the system when they are freed, and the system
hands out zeroed pages, one fault each, when the next batch asks for the same again.
"""

import contextlib
import ctypes

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # of mallopt, malloc.h
LARGEST = 32 << 20  # that glibc takes from the heap
KEPT = 1 << 30


def keep_freed_memory() -> None:
    """Let this process, and those it forks, keep up to a gigabyte that it has freed. Without glibc nothing happens."""
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(MMAP_THRESHOLD, LARGEST)
        mallopt(TRIM_THRESHOLD, KEPT)
