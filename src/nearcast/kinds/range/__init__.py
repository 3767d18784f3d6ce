"""Every post in a region, with words, in a time, with attributes: standing (SSTD's CRQ, PS2Stream, Tornado) and asked
once (SRQ).
"""

from nearcast.common.kinds import Kind

KIND = Kind("range", code=0, package=__name__, placed=True)
