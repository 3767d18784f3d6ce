"""A kind of question that is not ours: the first post of each cell of one degree, asked once.

The tests name it by the environment variable NEARCAST_KINDS. No line of `src/` knows it.
"""

from nearcast.common.kinds import Kind

KIND = Kind("first posts", code=40, package=__name__)
