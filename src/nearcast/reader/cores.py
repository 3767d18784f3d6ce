"""Threads for work that leaves the interpreter free, one for each core; made when they are first needed."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


@cache
def cores() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="nearcast")


def shared_out(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """`work` of each item, in their order: dealt out in turns to as many threads as there are cores, of which the
    caller's is one. A thread is woken once, not for each item.
    """
    threads = min(os.cpu_count() or 1, len(items))
    if threads < 2:
        return [work(each) for each in items]

    def share(first: int) -> list[tuple[int, R]]:
        return [(place, work(items[place])) for place in range(first, len(items), threads)]

    others = [cores().submit(share, first) for first in range(1, threads)]
    done = dict(share(0))
    for each in others:
        done.update(each.result())
    return [done[place] for place in range(len(items))]


os.register_at_fork(after_in_child=cores.cache_clear)  # threads do not come along
