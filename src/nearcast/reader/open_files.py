"""The files of a state, opened: segments of posts are kept open for as long as a manifest names them.

A cache may be used by many threads at once: what it holds is immutable, and to open a file twice does no harm.
"""

from collections.abc import Iterable

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.common.post_schema import attribute_of
from nearcast.storage.deletes import deletes_for
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import ARCHIVE, DELETES, Manifest, SegmentRef
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import NOTHING
from nearcast.storage.term_table import TermTable


class OpenFiles:
    """By name: segments of posts, term tables, the deleted rows of segments, and the columns of archives."""

    def __init__(self, state: StateDirectory) -> None:
        self.state = state
        self._segments: dict[str, PostSegment] = {}
        self._terms: dict[str, TermTable] = {}
        self._gone: dict[tuple[str, ...], np.ndarray] = {}
        self._columns: dict[str, tuple[str, ...]] = {}

    def segment(self, name: str) -> PostSegment:
        found = self._segments.get(name)
        if found is None:
            found = self._segments[name] = PostSegment(self.state.path(name))
        return found

    def attribute_columns(self, ref: SegmentRef) -> tuple[str, ...]:
        """The columns of attributes of a segment of posts, or of an archive."""
        if ref.kind != ARCHIVE:
            return self.segment(ref.name).attribute_columns
        found = self._columns.get(ref.name)
        if found is None:
            import pyarrow.parquet as pq

            names = pq.read_schema(self.state.path(ref.name, ".parquet")).names
            found = self._columns[ref.name] = tuple(name for name in names if attribute_of(name))
        return found

    def terms(self, name: str) -> TermTable:
        found = self._terms.get(name)
        if found is None:
            found = self._terms[name] = TermTable.open(self.state.path(name))
        return found

    def gone(self, manifest: Manifest, ref: SegmentRef, segment: PostSegment) -> np.ndarray:
        """The rows of a segment that are deleted, ascending."""
        since = ref.facts.get("cleaned", ref.batch)
        logs = [each.name for each in manifest.segments if each.kind == DELETES and each.batch > since]
        if not logs:
            return NOTHING
        key = (ref.name, str(since), *logs)
        found = self._gone.get(key)
        if found is None:
            found = frozen(segment.deleted_rows(deletes_for(self.state, manifest, ref)))
            self._gone[key] = found
        return found

    def keep_only(self, names: Iterable[str]) -> None:
        """Forget what the newest manifest does not name; who still reads it keeps it mapped."""
        wanted = set(names)
        for kept in (self._segments, self._terms, self._columns):
            for name in [name for name in list(kept) if name not in wanted]:
                kept.pop(name, None)
        for key in [key for key in list(self._gone) if key[0] not in wanted]:
            self._gone.pop(key, None)
