"""Standing answers of the nearest: state of their own, for they outlive the posts they came from.

A segment is two files: `.arrow`, arrays of the answers and of their members; and `.posts.arrow`, the posts, each once,
memory-mapped. A batch writes the answers that it changed, whole; of several answers of one subscription the one of the
latest batch counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from nearcast.common.kernels.mix import id_keys
from nearcast.storage.bundle import bundle_table, open_bundle
from nearcast.storage.directory import StateDirectory
from nearcast.storage.files import open_table, write_table
from nearcast.storage.manifest import NEAREST, Manifest
from nearcast.storage.posts.post_tables import NO_POSTS, take_posts


@dataclass(frozen=True)
class Answers:
    """Answers, one for each `seq` (the op that made the subscription), and their members, nearest first.

    `k` is 0 where an answer is no more. `id`, `id_text` and `columns` are the subscription's. Member i of answer a is
    at starts[a] + i of `km` and `post`.
    """

    seq: np.ndarray
    batch: np.ndarray
    k: np.ndarray
    id: np.ndarray
    id_text: pa.StringArray
    columns: pa.StringArray
    starts: np.ndarray
    km: np.ndarray
    post: np.ndarray
    posts: pa.Table

    def __len__(self) -> int:
        return len(self.seq)

    def write(self, path: Path) -> int:
        arrays = {name: value for name, value in self.__dict__.items() if name != "posts"}
        size = write_table(path.with_suffix(".arrow"), bundle_table(arrays))
        return size + write_table(path.with_suffix(".posts.arrow"), self.posts.combine_chunks())

    @classmethod
    def open(cls, path: Path) -> "Answers":
        arrays = open_bundle(path.with_suffix(".arrow"))
        return cls(**arrays, posts=open_table(path.with_suffix(".posts.arrow")))

    def pick(self, rows: np.ndarray) -> "Answers":
        """Some of the answers, with all posts."""
        at, starts = spans(self.starts, rows)
        picked = pa.array(rows)
        return Answers(
            self.seq[rows], self.batch[rows], self.k[rows], self.id[rows], self.id_text.take(picked),
            self.columns.take(picked), starts, self.km[at], self.post[at], self.posts,
        )  # fmt: skip

    def take(self, rows: np.ndarray) -> "Answers":
        """Some of the answers, with just their posts."""
        some = self.pick(rows)
        hit, post = np.unique(some.post, return_inverse=True)
        return replace(some, post=post.astype(np.int32), posts=take_posts(self.posts, hit))

    @classmethod
    def concat(cls, parts: Sequence["Answers"]) -> "Answers":
        """Answers of several files end to end."""
        if len(parts) == 1:
            return parts[0]
        sizes = np.concatenate([np.empty(0, np.int64), *(np.diff(part.starts) for part in parts)])
        bases = np.cumsum([0, *(len(part.posts) for part in parts)])
        post = [part.post + base for part, base in zip(parts, bases[:-1], strict=True)]
        whole = {name: _joined([getattr(part, name) for part in parts], kind) for name, kind in _PLAIN.items()}
        return cls(
            **whole,
            id_text=pa.concat_arrays([pa.nulls(0, pa.string()), *(part.id_text for part in parts)]),
            columns=pa.concat_arrays([pa.nulls(0, pa.string()), *(part.columns for part in parts)]),
            starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            post=_joined(post, np.int32),
            posts=pa.concat_tables([NO_POSTS, *(part.posts for part in parts)], promote_options="default"),
        )


_PLAIN = {
    "seq": np.int64, "batch": np.int64, "k": np.int64, "id": np.int64, "km": np.float64,
}  # fmt: skip


def _joined(arrays: Sequence[np.ndarray], kind: type) -> np.ndarray:
    return np.concatenate([np.empty(0, kind), *arrays]).astype(kind)


def spans(starts: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(places of all members of some answers, where those of each begin among them)."""
    begin, sizes = starts[rows], starts[rows + 1] - starts[rows]
    out = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return np.arange(out[-1]) + np.repeat(begin - out[:-1], sizes), out


class AnswerSet:
    """The standing answers of a manifest, over all its files; `seq` is sorted."""

    def __init__(self, files: Sequence[Answers]) -> None:
        self.files = [file for file in files if len(file)]
        seq = _joined([file.seq for file in self.files], np.int64)
        batch = _joined([file.batch for file in self.files], np.int64)
        of = _joined([np.full(len(file), i) for i, file in enumerate(self.files)], np.int64)
        row = _joined([np.arange(len(file)) for file in self.files], np.int64)
        order = np.lexsort((batch, seq))
        last = np.ones(len(order), np.bool_)
        last[:-1] = seq[order][1:] != seq[order][:-1]
        self.known = order[last]  # the newest of each, those that are no more included
        alive = self.known[_joined([file.k for file in self.files], np.int64)[self.known] > 0]
        self.seq, self.of, self.row = seq[alive], of[alive], row[alive]
        self._all = of, row

    @classmethod
    def open(cls, state: StateDirectory, manifest: Manifest) -> "AnswerSet":
        """Kept in the process while the state has the same files."""
        global _opened
        names = (str(state.root), *(ref.name for ref in manifest.of(NEAREST)))
        if _opened is None or _opened[0] != names:
            _opened = names, cls([Answers.open(state.path(name)) for name in names[1:]])
        return _opened[1]

    def __len__(self) -> int:
        return len(self.seq)

    def _gather(self, name: str) -> np.ndarray:
        parts = [(self.of == i, getattr(file, name)) for i, file in enumerate(self.files)]
        out = np.zeros(len(self), parts[0][1].dtype if parts else np.int64)
        for mine, values in parts:
            out[mine] = values[self.row[mine]]
        return out

    @cached_property
    def k(self) -> np.ndarray:
        return self._gather("k")

    @cached_property
    def keys(self) -> np.ndarray:
        """The key of each subscription's id."""
        textual = np.zeros(len(self), np.bool_)
        for i, file in enumerate(self.files):
            mine = self.of == i
            textual[mine] = file.id_text.is_valid().to_numpy(zero_copy_only=False)[self.row[mine]]
        return id_keys(self._gather("id"), textual)

    @cached_property
    def radii(self) -> np.ndarray:
        """The distance of each answer's k-th post, infinity where it has fewer."""
        out = np.full(len(self), np.inf)
        for i, file in enumerate(self.files):
            mine = np.flatnonzero(self.of == i)
            rows = self.row[mine]
            full = file.starts[rows + 1] - file.starts[rows] >= file.k[rows]
            out[mine[full]] = file.km[file.starts[rows[full] + 1] - 1]
        return out

    def places(self, seqs: np.ndarray) -> np.ndarray:
        """Where the answers of some subscriptions are, -1 for those that have none."""
        if not len(self):
            return np.full(len(seqs), -1, np.int64)
        at = np.minimum(np.searchsorted(self.seq, seqs), len(self) - 1)
        return np.where(self.seq[at] == seqs, at, -1)

    def limits(self, seqs: np.ndarray, none: float) -> np.ndarray:
        """From how far each subscription still takes posts; `none` for one that has no answer."""
        at = self.places(seqs)
        return np.where(at >= 0, self.radii[at], none) if len(self) else np.full(len(seqs), none)

    def answers(self, at: np.ndarray) -> Answers:
        """Some answers (by place) as one, sorted by seq; with more posts than just theirs."""
        whole = Answers.concat([file.pick(self.row[at[self.of[at] == i]]) for i, file in enumerate(self.files)])
        return whole.pick(np.argsort(whole.seq, kind="stable"))

    def holding(self, ids: np.ndarray) -> np.ndarray:
        """The seqs of the answers that have a member with one of these ids (a number, or the hash of a string)."""
        found = [np.empty(0, np.int64)]
        for i, file in enumerate(self.files):
            mine = self.row[self.of == i]
            posts = np.isin(file.posts["id"].to_numpy(), ids)
            if posts.any():
                at, starts = spans(file.starts, mine)
                hit = np.repeat(np.arange(len(mine)), np.diff(starts))[posts[file.post[at]]]
                found.append(file.seq[mine[np.unique(hit)]])
        return np.unique(np.concatenate(found))

    def merged(self, tombstones: bool) -> Answers:
        """All answers as one file; with those that are no more, where older files may still have them."""
        known = np.sort(self.known)
        of, row = self._all
        parts = [file.pick(row[known[of[known] == i]]) for i, file in enumerate(self.files)]
        whole = Answers.concat(parts)
        keep = np.arange(len(whole)) if tombstones else np.flatnonzero(whole.k > 0)
        return whole.take(keep[np.argsort(whole.seq[keep], kind="stable")])


_opened: tuple[tuple[str, ...], AnswerSet] | None = None
