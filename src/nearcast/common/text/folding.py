"""The table that says what each code point is folded to, shipped so that term ids never change with Python.

It was made by scripts/make_folding.py from Unicode's own tables.
"""

from functools import cache
from importlib.resources import files

import numpy as np

from nearcast.common.kernels.tokens import DROP, MARK, Folding


@cache
def folding(keep_accents: bool) -> Folding:
    """The table, read once in a process; accents (U+0300-U+036F) are dropped unless they are to be kept."""
    with files("nearcast.common.text").joinpath("folding.npz").open("rb") as file, np.load(file) as table:
        return Folding(table["pages"], table["directory"], table["expansions"], MARK if keep_accents else DROP)


@cache
def unicode_version() -> str:
    """The version of Unicode that the table was made from."""
    with files("nearcast.common.text").joinpath("folding.npz").open("rb") as file, np.load(file) as table:
        return str(table["unicode"])
