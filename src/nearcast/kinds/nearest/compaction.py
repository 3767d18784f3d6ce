"""Compaction of subscriptions to the nearest, and of their answers."""

import numpy as np

from nearcast.engine.batch import open_segments
from nearcast.engine.segment_rewriter import Rewriting
from nearcast.engine.subscription_compaction import SubscriptionCompaction
from nearcast.kinds.nearest.index import MANY, NOWHERE, NearestPart
from nearcast.kinds.nearest.nearest_filing import FORGOTTEN, SUPERSEDED, open_reach
from nearcast.kinds.nearest.state import Answers, AnswerSet
from nearcast.storage.compaction_policy import to_merge
from nearcast.storage.manifest import NEAREST, SegmentRef
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Ends


def mostly_moved(compaction: SubscriptionCompaction, refs: list[SegmentRef]) -> list[SegmentRef]:
    """A segment, if there is one, whose circles have become much smaller than they are filed, or larger."""
    answers = AnswerSet.open(compaction.plan.state, compaction.manifest)
    for ref in refs:
        (segment,) = open_segments(compaction.plan, [ref.name]).values()
        limits = answers.limits(segment.rows.seq, NOWHERE)
        part = NearestPart(segment, Ends.none(len(segment)), limits, open_reach(compaction.plan, ref.name))
        if part.stale() + int((part.limits > part.reach).sum()) > MANY * len(part):
            return [ref]
    return []


def forget(compaction: SubscriptionCompaction, rows: Rows, dead: np.ndarray) -> None:
    """Note the subscriptions whose answers are no more. What one had that ended before it began leaves its answer, and
    nobody else would tell of it.
    """
    never = rows.end <= rows.start
    compaction.result.note(SUPERSEDED, rows.seq[never].tolist())
    compaction.result.note(FORGOTTEN, rows.seq[dead & ~never].tolist())


def merge_answers(rewriting: Rewriting) -> None:
    """Files of answers as one; all of them, where most that they know are no more."""
    state, refs = rewriting.plan.state, rewriting.manifest.of(NEAREST)
    old = to_merge(refs)
    if not old and refs:
        answers = AnswerSet.open(state, rewriting.manifest)
        old = refs if len(answers.known) >= 2 * len(answers) else []
    if old:
        merged = AnswerSet([Answers.open(state.path(ref.name)) for ref in old]).merged(tombstones=len(old) < len(refs))
        name, new = rewriting.name(NEAREST), []
        if len(merged):
            size = merged.write(state.path(name))
            new = [rewriting.ref(NEAREST, name, len(merged) + len(merged.km), size, old)]
        rewriting.replace(old, new)
