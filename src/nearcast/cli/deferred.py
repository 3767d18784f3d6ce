"""Something to look at while libraries are loaded, which takes some seconds on a slow machine."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Say 'loading …' on a terminal, and take it back."""
    shown = sys.stderr.isatty()
    if shown:
        print("loading …", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
