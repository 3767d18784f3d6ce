"""A kind of question that is not ours: posts that lie far apart, in a text and as columns.

The tests name it by the environment variable NEARCAST_KINDS. No line of `src/` knows it.
"""

from nearcast.common.kinds import Kind

KIND = Kind("spread out", code=41, package=__name__)
