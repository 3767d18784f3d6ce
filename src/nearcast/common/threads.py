"""Threads for work that leaves the interpreter free, one for each core; made when they are first needed."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache


@cache
def cores() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="nearcast")


os.register_at_fork(after_in_child=cores.cache_clear)  # threads do not come along
