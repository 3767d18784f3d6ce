"""The pyramid: a multi-level grid in the manner of FAST, which SSTD uses for its continuous range queries.

Guarantees: exact; a box is filed in at most MOST_CELLS cells per conjunction, whatever its size; a post looks at one
cell a level, and only at the levels where one of its terms is a key.

SSTD §6.1 names FAST as the local index of continuous range queries. As there, a query is filed under its rarest
word and at the level that fits its size. FAST's move of crowded lists to finer levels is left out: entries carry
their box in 256ths of the cell, which rejects without a look at the query what a finer level would have.
"""

from nearcast.storage.subscriptions.filing import Filing

MOST_CELLS = 6  # with STEP the smallest of the fastest of eight pairs tried on 1 M subscriptions
STEP = 2
PYRAMID = Filing("pyramid", coarsest=0, finest=18, step=STEP, most_cells=MOST_CELLS)
