"""The most frequent terms, reported on a tick (SSTD's CTQ) and asked once (STQ)."""

from nearcast.common.kinds import Kind

KIND = Kind("terms", code=2, package=__name__, reporting=True, windowed=True, columns=("ticks",))
