"""Terms: the dictionary back to words, and in how many posts each term was seen, as a log of sorted tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from nearcast.storage.files import open_table, write_table

SCHEMA = pa.schema([("term", pa.uint64()), ("count", pa.uint64()), ("word", pa.string())])


@dataclass(frozen=True)
class TermTable:
    """Sorted by term, each once. `word` is null where an earlier table has it."""

    term: np.ndarray
    count: np.ndarray
    word: pa.StringArray

    def write(self, path: Path) -> int:
        columns = [pa.array(self.term), pa.array(self.count.astype(np.uint64)), self.word]
        return write_table(path.with_suffix(".arrow"), pa.table(columns, schema=SCHEMA))

    @classmethod
    def open(cls, path: Path) -> "TermTable":
        table = open_table(path.with_suffix(".arrow")).combine_chunks()
        columns = [column.chunk(0) if column.num_chunks else pa.nulls(0, column.type) for column in table.columns]
        return cls(columns[0].to_numpy(), columns[1].to_numpy(), columns[2])

    @classmethod
    def merged(cls, tables: Sequence["TermTable"]) -> "TermTable":
        """Counts added up, words united."""
        terms, inverse = np.unique(np.concatenate([t.term for t in tables]), return_inverse=True)
        counts = np.zeros(len(terms), np.uint64)
        np.add.at(counts, inverse, np.concatenate([t.count for t in tables]).astype(np.uint64))
        words = pa.concat_arrays([t.word for t in tables])
        known = np.flatnonzero(words.is_valid().to_numpy(zero_copy_only=False))
        source = np.full(len(terms), -1, np.int64)
        source[inverse[known]] = known
        return cls(terms, counts, words.take(pa.array(source, mask=source < 0)))


def frequencies(tables: Sequence[TermTable]) -> tuple[np.ndarray, np.ndarray]:
    """Sorted terms and their counts over all tables."""
    if len(tables) == 1:
        return tables[0].term, tables[0].count
    tables = [TermTable(np.empty(0, np.uint64), np.empty(0, np.uint64), pa.nulls(0, pa.string())), *tables]
    terms, inverse = np.unique(np.concatenate([t.term for t in tables]), return_inverse=True)
    counts = np.zeros(len(terms), np.uint64)
    np.add.at(counts, inverse, np.concatenate([t.count for t in tables]).astype(np.uint64))
    terms.flags.writeable = counts.flags.writeable = False  # as those mapped from a file are
    return terms, counts
