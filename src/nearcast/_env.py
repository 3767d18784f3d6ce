"""What the process environment must hold before NumPy, Numba or PySpark is imported.

Only `os` and `sys` are needed for it, so that `import nearcast` stays fast.
"""

import os
import sys


def configure() -> None:
    """Choose where Numba keeps compiled code, and the Python that Spark starts; what the user has set stays.

    And NumPy is not to ask for huge pages for large arrays: those are always new, and clearing them took a quarter of
    the time of registering a million subscriptions.
    """
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
    if not os.environ.get("NUMBA_CACHE_DIR"):
        os.environ["NUMBA_CACHE_DIR"] = _numba_cache()
    if not os.environ.get("PYSPARK_PYTHON") and sys.executable:
        os.environ["PYSPARK_PYTHON"] = sys.executable


def _numba_cache() -> str:
    """The user's cache directory, or one under the system's temporary directory where that cannot be written.

    Numba runs what it finds there, so a directory in a place open to all is used only if it is ours alone.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the XDG rules: a relative path is to be ignored
        base = os.path.join(os.path.expanduser("~"), ".cache")
    path = os.path.join(base, "nearcast", f"numba-{_kernels()}")
    if os.path.isabs(path) and _usable(path):
        return path

    import tempfile

    path = os.path.join(tempfile.gettempdir(), f"nearcast-numba-{os.getuid()}")
    return path if _usable(path) and _private(path) else tempfile.mkdtemp(prefix="nearcast-numba-")


def _kernels() -> str:
    """A digest of the kernels' sources and of where they lie. Numba itself keeps code by the place of its source, and
    does not notice when a function that another calls has changed.
    """
    import hashlib

    digest = hashlib.blake2b(digest_size=6)
    package = os.path.dirname(os.path.abspath(__file__))
    digest.update(os.fsencode(package))
    for folder, folders, names in os.walk(package):
        folders.sort()
        if os.path.basename(folder) == "kernels":
            for name in sorted(name for name in names if name.endswith(".py")):
                with open(os.path.join(folder, name), "rb") as source:
                    digest.update(source.read())
    return digest.hexdigest()


def _usable(path: str) -> bool:
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError:
        return False
    return os.access(path, os.W_OK | os.X_OK)


def _private(path: str) -> bool:
    status = os.lstat(path)
    return status.st_uid == os.getuid() and status.st_mode & 0o170077 == 0o040000
