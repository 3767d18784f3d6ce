"""The k nearest posts, standing (SSTD's CKQ) and asked once (SKQ)."""

from nearcast.common.kinds import Kind

KIND = Kind("nearest", code=1, package=__name__, columns=("points",), keeps=("nearest",))
