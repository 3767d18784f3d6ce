"""The k posts most relevant to a place and some words, standing over a window and asked once (Skype and DSkype)."""

from nearcast.common.kinds import Kind

KIND = Kind(
    "relevance",
    code=4,
    package=__name__,
    distributed=True,
    columns=("scoring",),
    keeps=("ledger", "buffers", "distribution", "idf"),
    remembers=("ledger",),
)
