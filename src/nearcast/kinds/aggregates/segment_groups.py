"""The groups of an aggregate over the segments of a state (STAR §3.2: partial results of the workers, united by the
aggregator), without a cache and through one.
"""

from collections.abc import Sequence

import numpy as np

from nearcast.common.threads import cores
from nearcast.kinds.aggregates.answer_rows import NO_TERMS
from nearcast.kinds.aggregates.cache.answer_cache import AggregateCache
from nearcast.kinds.aggregates.cache.cached_groups import Partial, combined
from nearcast.kinds.aggregates.cache.snapshot import Scans
from nearcast.kinds.aggregates.group_by import aggregate, groups_of, merge, nothing, search_groups, takes_all
from nearcast.kinds.aggregates.group_rows import FEW_ROWS, aggregate_rows_of
from nearcast.kinds.aggregates.groups import Groups, Shape
from nearcast.kinds.aggregates.spellings import NO_SPELLING
from nearcast.kinds.aggregates.top_terms import likely
from nearcast.reader.roles import Segments
from nearcast.storage.posts.frequent_terms import FrequentTerms, most_frequent
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import Question
from nearcast.storage.posts.range_search import SegmentScan, search_range, search_range_in
from nearcast.storage.posts.segment_group import SegmentGroup

PARALLEL_ROWS = 1_000_000
SMALL = 100.0  # square degrees
TERMS_ALONE = Shape(terms=True)
SegmentPart = tuple[PostSegment, np.ndarray]  # a segment and some rows of it: the deleted ones, or those wanted


def groups_in(
    parts: Sequence[SegmentPart],
    question: Question,
    shape: Shape,
    group: SegmentGroup | None = None,
    members: Sequence[int] = (),
    top: int = 0,
) -> tuple[Groups, list[SegmentScan]]:
    """The groups of all segments, and how each was searched; large ones on all cores at once. A small place is searched
    for in all together, where they are known as `members` of a group. Where no more than the `top` most frequent terms
    of a group are asked for, some that are not among them are left out: all others, where terms of all posts are all
    that is asked for.
    """
    if group is not None and top and shape == TERMS_ALONE:
        frequent = most_frequent(group, np.array(members, np.int64), question, top, NO_TERMS)
        scans = frequent.scans()
        return _groups_of_terms(frequent), [scans[n] for n in members]
    if group is not None and is_small(question) and not shape.terms:
        result = search_range_in(group, np.array(members, np.int64), question)
        scans = result.scans()
        return aggregate_rows_of([(group[n], rows) for n, rows in result.hits], shape), [scans[n] for n in members]

    def search(part: SegmentPart) -> tuple[Groups | SegmentPart, SegmentScan]:
        segment, gone = part
        if shape.terms or takes_all(segment, question):
            return search_groups(segment, question, shape, gone)
        hits = search_range(segment, question, gone)
        few = len(hits.rows) <= FEW_ROWS
        return (segment, hits.rows) if few else aggregate(segment, hits.rows, shape), hits.scan

    many = sum(len(segment) > PARALLEL_ROWS for segment, _ in parts) > 1
    results = list(cores().map(search, parts)) if many else [search(part) for part in parts]
    grouped = [each for each, _ in results if isinstance(each, Groups)]
    rest = aggregate_rows_of([each for each, _ in results if not isinstance(each, Groups)], shape)
    return merge([rest, *(likely(grouped, top) if top else grouped)]), [scan for _, scan in results]


def is_small(question: Question) -> bool:
    """Whether only a place of few posts is asked about: to look for them takes no longer than to begin."""
    west, south, east, north = question.box
    return bool(question.kind and not question.predicates and east >= west and (east - west) * (north - south) < SMALL)


def _groups_of_terms(frequent: FrequentTerms) -> Groups:
    """The posts as one group, which has these terms and no others; none where there are no posts."""
    if not frequent.posts:
        return nothing(TERMS_ALONE)
    keys = np.empty((1, 0), np.uint8), np.empty((1, 0), np.int64)
    measured = np.empty((1, 0, 3), np.int64), np.empty((1, 0, 6))
    words = np.zeros(len(frequent.terms), np.int64), frequent.terms, frequent.counts
    return groups_of(TERMS_ALONE, *keys, np.array([frequent.posts]), *measured, words, NO_SPELLING)


def cached_groups(
    cache: AggregateCache,
    posts: Segments,
    group: SegmentGroup,
    beside: Segments,
    question: Question,
    shape: Shape,
    counters: int,
    top: int,
) -> tuple[Partial, Scans, str]:
    """The same through a cache: (aggregates, how segments were searched, what the cache did). `group` are the posts, to
    be searched together; `beside` are segments that the cache does not know: slots of the archive, of which only what
    is asked for was read. `top` as in `groups_in`.
    """

    def plain(narrowed: Question) -> tuple[Groups, Scans]:
        members = np.flatnonzero((group.rows > 0) & ~narrowed.is_apart(*group.times.T)).tolist()
        parts = [posts[n][1:] for n in members]
        whole = narrowed is question and not beside  # else what it finds is added to something
        groups, scans = groups_in(parts, narrowed, shape, group, members, top if whole else 0)
        return groups, tuple(zip((posts[n][0] for n in members), scans, strict=True))

    result = cache.groups(posts, question, shape, counters, plain)
    if not beside:
        return result.partial, result.used.scans, str(result.used)
    groups, scans = groups_in([(segment, gone) for _, segment, gone in beside], question, shape)
    whole = combined([result.partial, Partial(groups)])
    names = (name for name, _, _ in beside)
    return whole, (*result.used.scans, *zip(names, scans, strict=True)), str(result.used)
