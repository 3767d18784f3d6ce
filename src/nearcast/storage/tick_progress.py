"""How far the reports of subscriptions on a tick have come: small, and written whole whenever a tick has fired."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nearcast.storage.bundle import bundle_table, open_bundle
from nearcast.storage.directory import StateDirectory
from nearcast.storage.files import write_table
from nearcast.storage.manifest import TICKS, Manifest


@dataclass(frozen=True)
class TickProgress:
    """By `seq` (sorted) of a subscription its first tick that has not been reported, and how many empty reports in a
    row came last. One that is not there has reported nothing yet.
    """

    seq: np.ndarray
    following: np.ndarray
    empty: np.ndarray

    def __len__(self) -> int:
        return len(self.seq)

    @classmethod
    def none(cls) -> "TickProgress":
        return cls(*(np.empty(0, np.int64) for _ in range(3)))

    @classmethod
    def open(cls, state: StateDirectory, manifest: Manifest) -> "TickProgress":
        for ref in manifest.of(TICKS):
            return cls.open_file(state.path(ref.name))
        return cls.none()

    @classmethod
    def open_file(cls, path: Path) -> "TickProgress":
        return cls(**{name: np.asarray(values) for name, values in open_bundle(path).items()})

    def write(self, path: Path) -> int:
        return write_table(path.with_suffix(".arrow"), bundle_table(self.__dict__))

    def of(self, seqs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(known, following, empty) of some subscriptions."""
        if not len(self):
            nothing = np.zeros(len(seqs), np.int64)
            return np.zeros(len(seqs), np.bool_), nothing, nothing
        at = np.minimum(np.searchsorted(self.seq, seqs), len(self) - 1)
        known = self.seq[at] == seqs
        return known, np.where(known, self.following[at], 0), np.where(known, self.empty[at], 0)

    def updated(self, new: Sequence["TickProgress"], standing: np.ndarray) -> "TickProgress":
        """With what is new of some, of those subscriptions only that still stand."""
        old = ~np.isin(self.seq, np.concatenate([part.seq for part in new]))
        seq, following, empty = (
            np.concatenate([getattr(self, name)[old], *(getattr(part, name) for part in new)])
            for name in ("seq", "following", "empty")
        )
        order = np.argsort(seq)
        order = order[np.isin(seq[order], standing)]
        return TickProgress(seq[order], following[order], empty[order])
