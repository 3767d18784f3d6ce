"""How the papers' kernels are compiled: as those of Nearcast, into a cache of their own version.

Nearcast's cache is one of its own kernels' version, which does not change when only these do. So theirs is a directory
inside it, named after a digest of these sources: Numba would not notice by itself that a function which another calls,
or a tuple which it takes, has changed.
"""

import hashlib
import os
from pathlib import Path
from typing import Any

from numba.core import config as numba_config

from nearcast.common.kernels.compiled import kernel as compiled

config: Any = numba_config


def _digest() -> str:
    digest = hashlib.blake2b(digest_size=6)
    for path in sorted(Path(__file__).parent.rglob("kernels/*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


CACHE = os.path.join(config.CACHE_DIR, f"papers-{_digest()}")


def kernel(function: Any) -> Any:
    """`nearcast.common.kernels.compiled.kernel`, kept apart. Numba asks for the directory when a function is made."""
    before, config.CACHE_DIR = config.CACHE_DIR, CACHE
    try:
        return compiled(function)
    finally:
        config.CACHE_DIR = before
