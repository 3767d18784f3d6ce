"""Compaction of the ledger: small segments as larger ones, and nothing left of deleted posts but their place in
windows.

Their numbers stay, so buffers and what processes remember stay true. At most one rewriting a batch.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nearcast.engine.segment_rewriter import Rewriting
from nearcast.kinds.relevance.ledger import deleted_rows, first_number, open_part
from nearcast.kinds.relevance.ledger_file import NUMBER, merge_ledger
from nearcast.storage.compaction_policy import SMALLEST, run_to_merge
from nearcast.storage.manifest import DELETES, LEDGER, SegmentRef

LARGE = 64  # a segment with this part of all posts stays as it is: it has to leave whole, and not too late


class LedgerCompaction(Rewriting):
    def merge_ledger(self) -> None:
        refs = sorted(self.manifest.of(LEDGER), key=first_number)
        old = next((run for each in unbroken(refs) if (run := run_to_merge(each))), [])
        if not old and self.manifest.of(DELETES):
            old = self._next_to_clean(refs)
        if old:
            deleted = [deleted_rows(self.plan.state, self.manifest, ref) for ref in old]
            self.replace(old, [self._rewritten(old, deleted)])

    def _next_to_clean(self, refs: Sequence[SegmentRef]) -> list[SegmentRef]:
        """The first segment that has deleted posts; what is before it and has none is noted to have none."""
        for ref in refs:
            if len(deleted_rows(self.plan.state, self.manifest, ref)):
                return [ref]
            if ref.facts.get("cleaned", ref.batch) < self.plan.batch - 1:
                same = replace(ref, facts={**ref.facts, "cleaned": self.plan.batch - 1})
                self.result.gone.append(ref.name)
                self.result.segments.append(same)
        return []

    def _rewritten(self, old: list[SegmentRef], deleted: list[np.ndarray]) -> SegmentRef:
        name = self.name(LEDGER)
        size = merge_ledger(self.plan.state.path(name), [open_part(self.plan.state, ref) for ref in old], deleted)
        facts = {NUMBER: first_number(old[0]), "cleaned": self.plan.batch - 1, "layout": None}
        ref = self.ref(LEDGER, name, sum(each.rows for each in old), size, old, **facts)
        return replace(ref, batch=max(each.batch for each in old))  # in which its last posts came


def unbroken(refs: Sequence[SegmentRef]) -> list[list[SegmentRef]]:
    """Segments in runs whose numbers follow each other, without large ones."""
    enough = max(SMALLEST, sum(ref.rows for ref in refs) // LARGE)
    runs: list[list[SegmentRef]] = [[]]
    end = -1
    for ref in refs:
        if first_number(ref) != end or ref.rows > enough:
            runs.append([])
        if ref.rows <= enough:
            runs[-1].append(ref)
        end = first_number(ref) + ref.rows
    return runs
