"""A kind of question that is not ours: the first post of each cell of one degree, standing and asked once.

    SELECT First(cell) FROM stream WHERE text CONTAINS 'flood'

The tests name it by the environment variable NEARCAST_KINDS. No line of `src/` knows it; `docs/extending/kind.md`
goes through its files.
"""

from nearcast.common.kinds import Kind

FIRSTS = "firsts"  # the kind of its own segments: the first post of each cell so far
KIND = Kind("first posts", code=40, package=__name__, keeps=(FIRSTS,))
