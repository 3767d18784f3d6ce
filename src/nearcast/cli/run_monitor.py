"""Running a pipeline under a person's eyes: a live view, Ctrl-C, and one line at the end.

The pipeline has a thread of its own, so that signals and the screen belong to the main one (Spark, started in a main
thread, would take Ctrl-C for itself).
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from rich.live import Live

from nearcast.cli.progress import Progress
from nearcast.cli.tables import messages

TICK = 0.2
LINE_EVERY = 3.0  # seconds, where there is no terminal

Work = Callable[[threading.Event], Any]


def conduct(progress: Progress, work: Work, seconds: float | None = None) -> Any:
    """Do `work(stop)`, showing progress on stderr; what it returns, or its error raised.

    The first Ctrl-C (or SIGTERM) sets `stop`, the second leaves at once. With `seconds`, `stop` is set so long after
    the first batch.
    """
    stop = threading.Event()
    outcome: dict[str, Any] = {}

    def body() -> None:
        try:
            outcome["value"] = work(stop)
        except BaseException as error:
            outcome["error"] = error

    thread = threading.Thread(target=body, name="pipeline", daemon=True)
    with stopped_by_signals(stop, progress), shown(progress) as refresh:
        thread.start()
        while thread.is_alive():
            thread.join(TICK)
            refresh()
            began = progress.streaming
            if seconds is not None and began is not None and time.monotonic() - began >= seconds:
                stop.set()
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]


@contextmanager
def stopped_by_signals(stop: threading.Event, progress: Progress) -> Iterator[None]:
    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            print("\x1b[?25h" if sys.stderr.isatty() else "", end="", file=sys.stderr, flush=True)  # show the cursor
            os._exit(128 + number)
        stop.set()
        progress.title += " · stopping"

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def shown(progress: Progress) -> Iterator[Callable[[], None]]:
    """A live view on a terminal, else a line every few seconds."""
    out = messages()
    if out.is_terminal:
        with Live(progress, console=out, refresh_per_second=5, transient=False, vertical_overflow="crop") as live:
            yield live.refresh
        return
    said, at = "", 0.0

    def line() -> None:
        nonlocal said, at
        text = progress.line()
        if text != said and (progress.manifest is None or time.monotonic() - at >= LINE_EVERY):
            said, at = text, time.monotonic()
            print(f"nearcast: {text}", file=sys.stderr, flush=True)

    yield line
    line()
