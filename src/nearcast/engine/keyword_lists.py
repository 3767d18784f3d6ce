"""Keyword lists of the leaves, as they grow while posts are routed (`partitioning.learned_words`): noted by the
workers, united with the commit, merged when there are many files.
"""

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import frozen
from nearcast.common.op_schema import SEARCH
from nearcast.engine.batch import BatchPlan, open_learned
from nearcast.partitioning.kernels.query_counts import keyword_sets
from nearcast.partitioning.learned_words import ANYWHERE, LearnedWords
from nearcast.storage.bundle import bundle_table
from nearcast.storage.files import write_table
from nearcast.storage.manifest import KEYWORDS, SegmentRef
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.subscriptions.rows import flat_lists

FILES = 8  # more than this are merged


def words_of_posts(plan: BatchPlan, columns: PostColumns, leaves: np.ndarray) -> LearnedWords:
    """What posts teach the leaves that store them: a worker gets the posts of its own leaves where words decide."""
    return plan.router.learned(columns.terms, columns.offsets, leaves)


def words_of_searches(plan: BatchPlan, ops: pa.Table) -> LearnedWords:
    """The words that the searches among some ops ask for, which leaves may learn from then on."""
    if not plan.router.roams:
        return LearnedWords.nothing()
    code, offsets = flat_lists(ops.filter(pa.array(ops["op"].to_numpy() == SEARCH))["code"])
    _, _, terms = keyword_sets(frozen(code), frozen(offsets.astype(np.int64)))
    terms = terms[terms != 0]
    return LearnedWords.of(np.full(len(terms), ANYWHERE, np.int32), terms)


def write_learned(plan: BatchPlan, worker: int, learned: LearnedWords) -> list[SegmentRef]:
    """What a worker has noted as a segment, if it is anything."""
    if not len(learned):
        return []
    name = plan.state.new_name(KEYWORDS, plan.batch, worker)
    arrays = {each: getattr(learned, each) for each in LearnedWords.names()}
    size = write_table(plan.state.path(name), bundle_table(arrays))
    return [SegmentRef(KEYWORDS, name, len(learned), size, plan.batch, worker, facts={"router": plan.manifest.router})]


def merge_learned(plan: BatchPlan, worker: int) -> tuple[list[SegmentRef], list[SegmentRef]]:
    """(old, new): many files as one, without what leaves have learned that are no more: a router that was made from
    another has its lists.
    """
    old = plan.manifest.of(KEYWORDS)
    if len(old) <= FILES:
        return [], []
    parts = []
    for ref in old:
        part = open_learned(plan.root, ref.name)
        parts.append(part if ref.facts["router"] == plan.manifest.router else part.take(part.leaf == ANYWHERE))
    return old, write_learned(plan, worker, LearnedWords.united(parts))
