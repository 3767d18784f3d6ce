"""A state directory opened for reading, over one manifest: the three searches of SSTD, the aggregates of STAR, and the
most relevant posts of Skype.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from nearcast.common.errors import BadInput
from nearcast.common.op_schema import BEGINNING
from nearcast.common.post_schema import ATTRIBUTE_KINDS
from nearcast.common.queries import (
    AggregateQuery,
    Conditions,
    NearestQuery,
    Query,
    RangeQuery,
    RelevantQuery,
    Statement,
    TermsQuery,
)
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.kinds.aggregates.answer_rows import most_terms, rows_of, shape_of
from nearcast.kinds.aggregates.approximate import bounded_terms
from nearcast.kinds.aggregates.cache.answer_cache import CachedAnswers
from nearcast.kinds.aggregates.cache.cached_groups import Partial, counters_for
from nearcast.kinds.aggregates.cache.snapshot import Searched
from nearcast.kinds.aggregates.coarse_search import is_for_coarse_slots, with_coarse
from nearcast.kinds.aggregates.coarse_slots import CoarseSlots
from nearcast.kinds.aggregates.groups import Shape
from nearcast.kinds.aggregates.search import (
    Aggregated,
    asks_for_attributes,
    cached_groups,
    given_once,
    groups_of,
)
from nearcast.kinds.relevance.newest_posts import Cut
from nearcast.kinds.relevance.search import find_relevant
from nearcast.language import check_attributes, check_kinds, check_numbers, check_search, encode_conditions, parse
from nearcast.reader.answer import Counted, Effort, Found, Hit, ordered, pick
from nearcast.reader.frequent_terms import Frequent, most_frequent
from nearcast.reader.open_files import OpenFiles
from nearcast.reader.stop_words import stop_terms
from nearcast.storage.deletes import deletes_for
from nearcast.storage.dictionary import spelt, spelt_words
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import ARCHIVE, COARSE, POSTS, TERMS, Manifest, SegmentRef
from nearcast.storage.named_regions import Regions
from nearcast.storage.posts.derived import DERIVED
from nearcast.storage.posts.nearest_search import NearInSeveral, search_nearest
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import NOTHING, Question
from nearcast.storage.posts.range_search import HitsInSeveral, Looked, meets_predicates, search_range_in
from nearcast.storage.posts.segment_group import Several
from nearcast.storage.term_table import TermTable

Answer = Found | Counted | Aggregated
MORE = 8  # times as many of the nearest are looked at, where attributes have rejected some


@dataclass(frozen=True)
class Opened:
    """A segment that a question concerns, and its deleted rows."""

    ref: SegmentRef
    segment: PostSegment
    gone: np.ndarray


class Reader:
    """Searches over one manifest. Every answer is exact for the batch that the manifest committed."""

    def __init__(
        self,
        state: StateDirectory | str | Path,
        manifest: Manifest | None = None,
        files: OpenFiles | None = None,
        cache: CachedAnswers | None = None,
    ) -> None:
        self.state = state if isinstance(state, StateDirectory) else StateDirectory(state)
        self.manifest = manifest or self.state.newest()
        self.files = files or OpenFiles(self.state)
        self.cache = cache
        self.tokenizer = Tokenizer(keep_accents=bool(self.manifest.settings.get("keep_accents")))
        self.regions = Regions(self.state.root)
        self.cuts: dict[int, Cut] = {}  # windows of so many posts
        self.refs = sorted((*self.manifest.of(POSTS), *self.manifest.of(ARCHIVE)), key=lambda ref: -ref.max_ts)
        self._times = np.array([(ref.min_ts, ref.max_ts) for ref in self.refs], np.int64).reshape(-1, 2)
        self._several = Several(len(self.refs))

    def search(self, sql: str, stop_words: str | Iterable[str] | None = None, idf: int | None = None) -> Answer:
        """Answer a `SELECT` from the posts kept and archived."""
        statement = parse(sql, self.tokenizer, self.regions)
        self.check(statement, idf)
        return self.answer(statement.query, stop_words, idf)

    def check(self, statement: Statement, idf: int | None = None) -> None:
        """Raises QueryError where a statement makes no sense as a search, or as an aggregate of the posts that there
        are. (Posts that no post happens to be like are no mistake: they are none.)
        """
        check_search(statement)
        if idf is not None and not isinstance(statement.query, RelevantQuery):
            raise BadInput("a version of the idf is for ORDER BY RELEVANCE: this search has no scores")
        if self.refs and any(each.name in DERIVED for each in statement.query.predicates):
            check_kinds(statement, {name: self.kinds[name] for name in DERIVED})
        if asks_for_attributes(statement.query):
            self.check_attributes(statement)

    def check_attributes(self, statement: Statement) -> None:
        """Raises QueryError where there are posts, and none has an attribute that the answer depends on."""
        if self.refs:
            check_attributes(statement, self.kinds)
            check_numbers(statement, self.kinds)

    @cached_property
    def kinds(self) -> dict[str, set[str]]:
        """The kinds of values that attributes may have: those of posts, and those that follow from every post."""
        derived = [spec.partition("=")[0] for spec in self.manifest.settings.get("derive") or ()]
        own = {**{name: set(ATTRIBUTE_KINDS) for name in derived}, **self.attributes}
        return {**own, **{name: {kind, *own.get(name, ())} for name, kind in DERIVED.items()}}

    @cached_property
    def attributes(self) -> dict[str, set[str]]:
        """The attributes that posts have, and the kinds of their values."""
        found: dict[str, set[str]] = {}
        for ref in self.refs:
            for column in self.files.attribute_columns(ref):
                name, _, kind = column.rpartition(":")
                found.setdefault(name, set()).add(kind)
        return found

    def answer(self, query: Query, stop_words: str | Iterable[str] | None = None, idf: int | None = None) -> Answer:
        match query:
            case RangeQuery():
                return self.range(query)
            case NearestQuery():
                return self.nearest(query)
            case RelevantQuery():
                return find_relevant(self, query, idf)
            case TermsQuery():
                return self.terms(query, stop_words)
            case AggregateQuery():
                return self.aggregate(query, stop_words)

    # -- the kinds -----------------------------------------------------------------------------------------------------

    def range(self, query: RangeQuery) -> Found:
        """Posts that satisfy the conditions, newest first, ties by id."""
        question = self.question(query)
        several, chosen = self.several(question, query.columns)
        hits: list[Hit] = []
        times: list[np.ndarray] = []
        searched: list[HitsInSeveral] = []
        width = len(chosen) if query.limit is None else 1
        while len(chosen):
            found = search_range_in(several, chosen[:width], question)
            searched.append(found)
            for number, rows in found.hits:
                hits.append((several[number], rows))
                times.append(several[number].ts_of(rows))
            chosen, width = chosen[width:], 2 * width
            if query.limit is not None:
                question = _narrowed(question, times, query.limit)
                chosen = chosen[~question.is_apart(*self._times[chosen].T)]
        effort = self.effort(question, lambda: self._named(searched))
        if not hits:
            return Found((), query.columns, effort)
        return Found(pick(hits, ordered(hits, -np.concatenate(times), query.limit)), query.columns, effort)

    def nearest(self, query: NearestQuery) -> Found:
        """The k posts nearest to a point, ties by id. The largest segments go first: what they give is the radius that
        the others are pruned by (SSTD §6.2).
        """
        return self.nearest_to(self.question(query), query.lon, query.lat, query.k, query.columns)

    def nearest_to(self, question: Question, lon: float, lat: float, k: int, columns: tuple[str, ...] | None) -> Found:
        """As `nearest`, for a question that is already encoded."""
        several, chosen = self.several(question, columns)
        total = int(several.rows[chosen].sum())
        k = wanted = min(k, total)
        while True:
            found = search_nearest(several, chosen, question, lon, lat, wanted)
            hits: list[Hit] = [(several[number], rows) for number, rows, _ in found.hits]
            km = np.concatenate([np.empty(0), *(part for *_, part in found.hits)])
            complete = len(km) < wanted or wanted == total
            if question.predicates:
                keep = [meets_predicates(segment, question, rows) for segment, rows in hits]
                hits = [(segment, rows[mask]) for (segment, rows), mask in zip(hits, keep, strict=True)]
                km = km[np.concatenate([np.empty(0, np.bool_), *keep])]
            if not question.predicates or complete or len(km) >= k:
                break
            wanted = min(MORE * wanted, total)
        order = ordered(hits, km, k) if len(km) else NOTHING
        effort = self.effort(question, lambda: self._named([found]))
        return Found(pick(hits, order), columns, effort, km[order])

    def terms(self, query: TermsQuery, stop_words: str | Iterable[str] | None = None) -> Counted:
        """The k terms that occur in most posts, ties by term."""
        stop = stop_terms(stop_words, self.tokenizer)
        question = self.question(query)
        found = most_frequent(*self.several(question, ()), question, query.k, stop)
        words = spelt(self.dictionary, found.terms) if len(found.terms) else []
        best = sorted(zip(words, found.counts.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0]))[: query.k]
        effort = self.effort(question, lambda: self._named([found]))
        return Counted(tuple(word for word, _ in best), tuple(n for _, n in best), found.posts, effort)

    def aggregate(self, query: AggregateQuery, stop_words: str | Iterable[str] | None = None) -> Aggregated:
        """One row a group, in the order of the query."""
        if self.cache is None or stop_words is not None:
            return self._aggregated(query, stop_words)
        return given_once(self.cache.given, self.manifest.version, query, lambda: self._aggregated(query))

    def _aggregated(self, query: AggregateQuery, stop_words: str | Iterable[str] | None = None) -> Aggregated:
        shape = shape_of(query)
        question, columns = self.question(query), (*shape.by, *shape.measured)
        coarsely = is_for_coarse_slots(query) and self._exact_since(question) is not None
        stop = stop_terms(stop_words, self.tokenizer)
        top = 0 if coarsely or not shape.terms else most_terms(query) + len(stop)
        top += query.approximate and top > 0  # what is certain is told by the next
        counters = counters_for(most_terms(query), len(stop)) if query.approximate and top else 0
        partial, looked, cached = self._groups(question, shape, columns, counters, top)
        effort, posts = self.effort(question, lambda: looked), int(partial.groups.posts.sum())

        def spell(terms: np.ndarray) -> pa.StringArray:
            return spelt_words(self.dictionary, terms)

        if coarsely:
            tally = self._coarse_slots.tally(question)
            table, coarse = with_coarse(query, partial.groups, tally, spell, stop)
            return Aggregated(table, posts, effort, cached, coarse)
        frequent = bounded_terms(partial, spell, stop) if query.approximate else None
        table = rows_of(query, partial.groups, spell, stop, frequent)
        return Aggregated(table, posts, effort, cached)

    def _groups(
        self, question: Question, shape: Shape, columns: Sequence[str], counters: int, top: int
    ) -> tuple[Partial, Searched, str | None]:
        """(aggregates, how segments were searched, what came from the cache); `top` as in `groups_of`."""
        if self.cache is not None:
            opened = self.segments(question, columns, (ARCHIVE,))
            beside = [(each.ref.name, each.segment, each.gone) for each in opened]
            posts = self.posts, self._several_posts
            return cached_groups(self.cache, *posts, beside, question, shape, counters, top)
        several, chosen = self.several(question, columns)
        chosen = chosen[several.rows[chosen] > 0]
        parts = [(several[n], several.gone[n]) for n in chosen.tolist()]
        groups, looked = groups_of(parts, question, shape, several, chosen.tolist(), top)
        names = (self.refs[n].name for n in chosen.tolist())
        return Partial(groups), tuple(zip(names, looked, strict=True)), None

    @cached_property
    def _several_posts(self) -> Several:
        return Several.of([segment for _, segment, _ in self.posts], [gone for _, _, gone in self.posts])

    @cached_property
    def posts(self) -> tuple[tuple[str, PostSegment, np.ndarray], ...]:
        """The segments of posts, and the deleted rows of each: what a cache is of."""
        refs = [ref for ref in self.refs if ref.kind == POSTS]
        held = [(ref, self.files.segment(ref.name)) for ref in refs]
        return tuple((ref.name, segment, self.files.gone(self.manifest, ref, segment)) for ref, segment in held)

    @property
    def dictionary(self) -> list[TermTable]:
        return [self.files.terms(ref.name) for ref in self.manifest.of(TERMS)]

    # -- what is kept --------------------------------------------------------------------------------------------------

    def effort(self, question: Question, looked: Callable[[], Iterable[tuple[str, Looked]]]) -> Effort:
        return Effort(looked, len(self.refs), self.manifest.batch, self._exact_since(question))

    def _named(self, searched: Iterable[HitsInSeveral | NearInSeveral | Frequent]) -> Iterable[tuple[str, Looked]]:
        """How segments were searched, by name; what comes later counts."""
        looked = {number: how for each in searched for number, how in each.looked().items()}
        return [(self.refs[number].name, how) for number, how in looked.items()]

    def _exact_since(self, question: Question) -> int | None:
        """From when on posts are kept, where a question reaches back to some that are not."""
        left = self.manifest.of(COARSE)
        reaches = any(not question.is_apart(ref.min_ts, ref.max_ts) for ref in left)
        return self.manifest.kept_since if reaches else None

    @cached_property
    def _coarse_slots(self) -> CoarseSlots:
        return CoarseSlots.merged([CoarseSlots.open(self.state.path(ref.name)) for ref in self.manifest.of(COARSE)])

    # -- opening -------------------------------------------------------------------------------------------------------

    def question(self, query: Conditions) -> Question:
        clock = BEGINNING if self.manifest.clock is None else self.manifest.clock
        return Question.of(encode_conditions(query, clock))

    def several(self, question: Question, columns: Sequence[str] | None = None) -> tuple[Several, np.ndarray]:
        """As `segments`, to be searched together: (all that are open, the numbers of those that the time touches)."""
        self._check_kept()
        chosen = np.flatnonzero(~question.is_apart(*self._times.T))
        several = self._several
        new = chosen[~several.held[chosen]]
        for number in new.tolist():
            if self.refs[number].kind == ARCHIVE and several is self._several:
                several = several.copy()  # for what is read of an archive serves this question only
            opened = self._opened(self.refs[number], question, columns)
            several.hold(number, opened.segment, opened.gone)
        return several, chosen

    def segments(
        self, question: Question, columns: Sequence[str] | None = None, kinds: Sequence[str] = (POSTS, ARCHIVE)
    ) -> list[Opened]:
        """All segments that a question's time touches, newest first, opened before any is searched: what is mapped
        stays readable whatever the writer removes.
        """
        self._check_kept()
        refs = [ref for ref in self.refs if ref.kind in kinds and not question.is_apart(ref.min_ts, ref.max_ts)]
        return [self._opened(ref, question, columns) for ref in refs]

    def _check_kept(self) -> None:
        if self.manifest.settings.get("keep") == "none":
            raise BadInput("this state keeps no posts (--keep none): there is nothing to search")

    def _opened(self, ref: SegmentRef, question: Question, columns: Sequence[str] | None) -> Opened:
        if ref.kind == ARCHIVE:
            from nearcast.reader.archive import read_archive

            deletes = deletes_for(self.state, self.manifest, ref)
            path = self.state.path(ref.name, ".parquet")
            return Opened(ref, read_archive(path, question, columns, deletes, self.tokenizer), NOTHING)
        segment = self.files.segment(ref.name)
        return Opened(ref, segment, self.files.gone(self.manifest, ref, segment))


def _narrowed(question: Question, times: list[np.ndarray], limit: int | None) -> Question:
    """With enough newer posts in hand, older ones need not be looked for."""
    if not limit or sum(len(part) for part in times) < limit:
        return question
    ts = np.concatenate(times)
    return replace(question, since=max(question.since, int(np.partition(ts, len(ts) - limit)[len(ts) - limit])))
