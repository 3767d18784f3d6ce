"""The files of a state that the second round reads, kept open in the process, and its dictionary."""

import numpy as np
import pyarrow as pa

from nearcast.engine.batch import BatchPlan
from nearcast.reader.open_files import OpenFiles
from nearcast.storage.dictionary import words_of_terms
from nearcast.storage.lexicon import Speller
from nearcast.storage.manifest import TERMS, Manifest

_files: OpenFiles | None = None


def open_files(plan: BatchPlan) -> OpenFiles:
    """Kept in the process."""
    global _files
    if _files is None or str(_files.state.root) != str(plan.state.root):
        _files = OpenFiles(plan.state)
    return _files


def speller(files: OpenFiles, manifest: Manifest) -> Speller:
    """The words of terms, as the dictionary has them."""

    def spell(terms: np.ndarray) -> pa.StringArray:
        return words_of_terms([files.terms(ref.name) for ref in manifest.of(TERMS)], terms)

    return spell
