"""Aggregates by group, reported on a tick and asked once (STAR)."""

from nearcast.common.kinds import Kind

KIND = Kind("aggregates", code=3, package=__name__, reporting=True, columns=("ticks",), keeps=("partials",))
