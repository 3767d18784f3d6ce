"""What the process environment must hold before NumPy, Numba or PySpark is imported.

Only `os` and `sys` are needed for it, so that `import nearcast` stays fast.
"""

import os
import sys

MARKER = "package"  # in a cache of ours: which package made it. Who uses the cache holds a lock on this file.
UNUSED_DAYS = 14  # after which a cache goes of which nobody can say whether it is still wanted
REMOVED = "removed-"  # a cache that is being removed is renamed first
PACKAGE = os.path.dirname(os.path.abspath(__file__))

_held: list[int] = []  # open files whose locks end with the process


def configure() -> None:
    """Choose where Numba keeps compiled code, and the Python that Spark starts; what the user has set stays.

    And NumPy is not to ask for huge pages for large arrays: those are always new, and clearing them took a quarter of
    the time of registering a million subscriptions.
    """
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
    if not os.environ.get("NUMBA_CACHE_DIR"):
        os.environ["NUMBA_CACHE_DIR"] = _numba_cache()
    elif os.path.exists(os.path.join(os.environ["NUMBA_CACHE_DIR"], MARKER)):  # that of the process which started us
        _hold(os.environ["NUMBA_CACHE_DIR"])
    if not os.environ.get("PYSPARK_PYTHON") and sys.executable:
        os.environ["PYSPARK_PYTHON"] = sys.executable


def _numba_cache() -> str:
    """The user's cache directory, or one under the system's temporary directory where that cannot be written.

    Numba runs what it finds there, so a directory in a place open to all is used only if it is ours alone.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the XDG rules: a relative path is to be ignored
        base = os.path.join(os.path.expanduser("~"), ".cache")
    caches = os.path.join(base, "nearcast")
    path = os.path.join(caches, f"numba-{_kernels(PACKAGE)}")
    new = not os.path.exists(path)
    if os.path.isabs(path) and _usable(path):
        _hold(path)
        if new:
            _remove_old(caches)
        return path

    import tempfile

    path = os.path.join(tempfile.gettempdir(), f"nearcast-numba-{os.getuid()}-{_kernels(PACKAGE)}")
    return path if _usable(path) and _private(path) else tempfile.mkdtemp(prefix="nearcast-numba-")


def _kernels(package: str) -> str:
    """A digest of the kernels' sources and of where they lie. Numba itself keeps code by the place of its source, and
    does not notice when a function that another calls has changed.
    """
    import hashlib

    digest = hashlib.blake2b(digest_size=6)
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


# -- caches of other versions ------------------------------------------------------------------------------------------


def _hold(path: str) -> None:
    """Note whose cache this is, and lock it against removal for as long as the process lives.

    Where the file system knows no locks there are none, and then nobody removes anything.
    """
    for _ in range(10):
        try:
            os.makedirs(path, mode=0o700, exist_ok=True)
            file = os.open(os.path.join(path, MARKER), os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:  # renamed after we had made it
            continue
        except OSError:
            return
        if _locked(file) and _still_there(path, file):
            _sign(file)
            _held.append(file)
            return
        os.close(file)  # the cache was renamed before we had the lock: it is made again


def _locked(file: int, exclusive: bool = False) -> bool:
    """Take the lock of an open marker; the exclusive one only if nobody has it."""
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB if exclusive else fcntl.LOCK_SH)
    except OSError:
        return False
    return True


def _still_there(path: str, file: int) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(os.path.join(path, MARKER)))
    except OSError:
        return False


def _sign(file: int) -> None:
    """Write into a marker who uses the cache, and when it was used last."""
    identity = _identity(PACKAGE).encode()
    if os.pread(file, len(identity) + 1, 0) != identity:
        os.ftruncate(file, 0)
        os.pwrite(file, identity, 0)
    os.utime(file)


def _identity(package: str) -> str:
    """Where a package lies, and in which directory: the same path may lead elsewhere in another container."""
    status = os.stat(os.path.dirname(package))
    return f"{package}\n{status.st_dev} {status.st_ino}\n"


def _remove_old(caches: str) -> None:
    """Remove the caches that nobody uses and nobody will use again."""
    import shutil

    try:
        names = os.listdir(caches)
    except OSError:
        return
    for name in names:
        aside = name if name.startswith(REMOVED) else f"{REMOVED}{name}-{os.getpid()}"
        if aside == name or (name.startswith("numba-") and _superseded(caches, name) and _renamed(caches, name, aside)):
            shutil.rmtree(os.path.join(caches, aside), ignore_errors=True)


def _superseded(caches: str, name: str) -> bool:
    """Whether the package that made a cache has other kernels now, or is gone. Where that cannot be seen from here, as
    from another container, or nobody has signed (version 0.1): whether the cache was long unused.
    """
    path = os.path.join(caches, name)
    try:
        signed = _text(os.path.join(path, MARKER))
        package = signed.partition("\n")[0]
        if signed and os.path.isdir(os.path.dirname(package)) and _identity(package) == signed:
            return name != f"numba-{_kernels(package)}"
    except OSError:  # it is being installed or removed at this moment
        return False
    return _days_unused(path) > UNUSED_DAYS


def _text(path: str) -> str:
    """What a file holds, nothing where there is none."""
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def _days_unused(path: str) -> float:
    """Since a cache was last signed, or its code read or written; a look at folder and marker is no use of it."""
    import time

    newest = 0.0
    for folder, _, names in os.walk(path):
        for name in ("", *names):
            try:
                status = os.stat(os.path.join(folder, name))
            except OSError:  # it has just been replaced
                return 0.0
            newest = max(newest, status.st_mtime, status.st_atime if name not in ("", MARKER) else 0.0)
    return (time.time() - newest) / 86400


def _renamed(caches: str, name: str, aside: str) -> bool:
    """Set a cache aside that no process holds, so that none can come to use it while it is being removed."""
    path = os.path.join(caches, name)
    try:
        file = os.open(os.path.join(path, MARKER), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return False
    try:
        if not _locked(file, exclusive=True):
            return False
        os.rename(path, os.path.join(caches, aside))
        return True
    except OSError:  # another process has removed it
        return False
    finally:
        os.close(file)
