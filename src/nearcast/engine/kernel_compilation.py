"""The kernels of a run: compiled while Spark starts and plans, and those for later questions while the stream runs."""

import gc
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

from nearcast.common.errors import NearcastError
from nearcast.engine.batch import open_router
from nearcast.engine.warmup import finish, in_background, is_warm, other_half, warm_up_later, warm_up_words
from nearcast.storage.directory import StateDirectory

TICK = 0.2  # seconds


class Kernels:
    """`start` once the state has its router, `ready` before and `rest` after every batch."""

    def __init__(self, folder: Path, pool: ThreadPoolExecutor) -> None:
        self.folder = folder
        self.pool = pool
        self.stopped = False
        self.other = None
        if not is_warm():
            gc.disable()  # as in `uncollected`
            self.other = other_half(folder)
        self.compiled: Future[None] | None = None
        self.later: subprocess.Popen[bytes] | None = None
        self.kinds: list[subprocess.Popen[bytes]] = []
        self.rested = False

    def start(self, state: StateDirectory, kinds: Sequence[str] = ()) -> None:
        """Compile the rest in a thread: what building the router needs, this process has compiled by now. And what
        some kinds of subscriptions need, side by side.
        """
        textual = open_router(str(state.root), state.newest().router or "").textual

        def compile_all() -> None:
            if self.other is not None:
                finish(self.folder, self.other, lambda: self.stopped)
                gc.freeze()  # what compiling leaves is looked through when the first results are out
                gc.enable()
            if textual and not self.stopped:
                warm_up_words()
            for kind in kinds:
                if not self.stopped:
                    self.kinds.append(in_background("warmup.warm_up_for", kind))
            for process in self.kinds:
                if self.stopped:  # since it was started
                    process.terminate()
                process.wait()

        self.compiled = self.pool.submit(compile_all)

    def then(self, call: Callable[[], None]) -> None:
        """Call when all is compiled that a stream needs: at once where it is."""
        assert self.compiled is not None
        self.compiled.add_done_callback(lambda _: call())

    def ready(self, stop: threading.Event) -> None:
        """Wait until a batch of ranges, and of the kinds forecast, finds all compiled; `stop` ends the waiting."""
        assert self.compiled is not None
        while not wait([self.compiled], TICK).done:
            if stop.is_set():
                raise NearcastError("stopped before the first batch")
        self.compiled.result()

    def rest(self, posts: int) -> None:
        """Compile what searches and other kinds of subscriptions need, once the stream has had posts."""
        if posts and not self.rested:
            self.rested = True
            gc.unfreeze()
            self.later = warm_up_later()

    def stop(self) -> None:
        self.stopped = True
        gc.unfreeze()
        gc.enable()
        for process in (self.other, self.later, *self.kinds):
            if process is not None:
                process.terminate()
                process.wait()


@contextmanager
def compiling() -> Iterator[Kernels]:
    """Begin to compile what a stream needs, on another core; what has not come to an end is stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="nearcast-warmup-") as name, ThreadPoolExecutor(1) as pool:
        kernels = Kernels(Path(name), pool)
        try:
            yield kernels
        finally:
            kernels.stop()
