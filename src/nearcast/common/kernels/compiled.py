"""How every kernel is compiled: once per machine, and free of Python's lock.

Kernels call each other and are called from Python, never from C: a wrapper for that would be a sixteenth of the time.
"""

from typing import Any

from numba import njit

OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}

kernel = njit(**OPTIONS)
inlined = njit(inline="always", **OPTIONS)  # by Numba, before types are known
forced_inline = njit(forceinline=True, **OPTIONS)  # by LLVM
