"""Which words of a batch the state's dictionary does not have yet."""

import numpy as np
import pyarrow as pa

from nearcast.engine.batch import BatchPlan
from nearcast.engine.kernels.term_set import add_terms, missing_terms
from nearcast.storage.manifest import TERMS
from nearcast.storage.term_table import TermTable

_known: tuple[str, frozenset[str], np.ndarray] | None = None


def new_words(plan: BatchPlan, terms: np.ndarray, texts: pa.ChunkedArray) -> pa.StringArray:
    """For each (sorted) term its word, or null where the dictionary has it; the words are found again in the texts."""
    missing = np.flatnonzero(missing_terms(known_terms(plan), terms))
    words = pa.nulls(len(terms), pa.string())
    if not len(missing):
        return words
    found, spelled = plan.tokenizer.words_of(texts, terms[missing])
    at = np.searchsorted(terms, found)
    source = np.full(len(terms), -1, np.int64)
    source[at] = np.arange(len(found))
    return pa.array(spelled, pa.string()).take(pa.array(source, mask=source < 0))


def known_terms(plan: BatchPlan) -> np.ndarray:
    """The terms of the dictionary as a hash set, kept in the process and extended by the tables that are new."""
    global _known
    names = frozenset(ref.name for ref in plan.manifest.of(TERMS))
    if _known is None or _known[0] != plan.root:
        _known = (plan.root, frozenset(), np.zeros(1 << 14, np.uint64))
    table = _known[2]
    for name in sorted(names - _known[1]):
        table = add_terms(table, TermTable.open(plan.state.path(name)).term)
    _known = (plan.root, names, table)
    return table
