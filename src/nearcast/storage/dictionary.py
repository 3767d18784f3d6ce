"""Terms back to words, by the dictionary of the state."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.arrays import arrow
from nearcast.storage.term_table import TermTable


def words_of_terms(tables: Sequence[TermTable], terms: np.ndarray) -> pa.StringArray:
    """As `spelled`, of many terms."""
    words = pa.nulls(len(terms), pa.string())
    for table in tables:
        if not len(table.term) or not words.null_count:
            continue
        at = np.minimum(np.searchsorted(table.term, terms), len(table.term) - 1)
        found = table.word.take(pa.array(at, mask=table.term[at] != terms))
        words = pc.coalesce(words, found)
    if words.null_count:
        words = pc.coalesce(words, pa.array([f"word{term:016x}" for term in terms.tolist()]))
    return words


def spelled(tables: Sequence[TermTable], terms: np.ndarray) -> list[str]:
    """The word of each term; a name made of its number where no table has it."""
    words: list[str | None] = [None] * len(terms)
    missing = np.arange(len(terms))
    for table in tables:
        if not len(missing) or not len(table.term):
            continue
        at = np.minimum(np.searchsorted(table.term, terms[missing]), len(table.term) - 1)
        hit = np.flatnonzero(table.term[at] == terms[missing])
        found = table.word.take(arrow(at[hit])).to_pylist()
        for place, word in zip(missing[hit].tolist(), found, strict=True):
            words[place] = word if word is not None else words[place]
        missing = np.array([place for place in missing.tolist() if words[place] is None], np.int64)
    return [word if word is not None else f"word{term:016x}" for word, term in zip(words, terms.tolist(), strict=True)]
