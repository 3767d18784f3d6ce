"""A state directory opened for reading, over one manifest: what the searches of all kinds share.

A search is parsed, checked and handed to the role `search` of its kind (`reader.roles`), which asks the reader for the
segments that the question concerns.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from nearcast.common.errors import BadInput
from nearcast.common.kinds import kind_named, kinds
from nearcast.common.op_schema import BEGINNING
from nearcast.common.post_schema import ATTRIBUTE_KINDS
from nearcast.common.queries import Query, Statement
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.language import check_attributes, check_kinds, check_numbers, check_search, encode_conditions, parse
from nearcast.reader.answer import Answer, Effort
from nearcast.reader.open_files import OpenFiles
from nearcast.reader.roles import Options, SearchCache, SearchRole
from nearcast.storage.deletes import deletes_for
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import ARCHIVE, COARSE, POSTS, TERMS, Manifest, SegmentRef
from nearcast.storage.named_regions import Regions
from nearcast.storage.posts.derived import DERIVED
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import NOTHING, Question
from nearcast.storage.posts.range_search import SegmentScan
from nearcast.storage.posts.segment_group import SegmentGroup
from nearcast.storage.term_table import TermTable

Made = TypeVar("Made")


@dataclass(frozen=True)
class OpenSegment:
    """A segment that a question concerns, and its deleted rows."""

    ref: SegmentRef
    segment: PostSegment
    gone: np.ndarray


class Scanned(Protocol):
    """What a search of a group of segments gives: how each was searched, by its number."""

    @property
    def scans(self) -> Callable[[], dict[int, SegmentScan]]: ...


class Reader:
    """Searches over one manifest. Every answer is exact for the batch that the manifest committed."""

    def __init__(
        self,
        state: StateDirectory | str | Path,
        manifest: Manifest | None = None,
        files: OpenFiles | None = None,
        cache: SearchCache | None = None,
    ) -> None:
        self.state = state if isinstance(state, StateDirectory) else StateDirectory(state)
        self.manifest = manifest or self.state.newest()
        self.files = files or OpenFiles(self.state)
        self.cache = cache
        self.tokenizer = Tokenizer(keep_accents=bool(self.manifest.settings.get("keep_accents")))
        self.regions = Regions(self.state.root)
        self.refs = sorted((*self.manifest.of(POSTS), *self.manifest.of(ARCHIVE)), key=lambda ref: -ref.max_ts)
        self.times = np.array([(ref.min_ts, ref.max_ts) for ref in self.refs], np.int64).reshape(-1, 2)
        self._group = SegmentGroup(len(self.refs))
        self._made: dict[Hashable, Any] = {}

    # -- searching -----------------------------------------------------------------------------------------------------

    def search(self, sql: str, **options: Any) -> Answer:
        """Answer a `SELECT` from the posts kept and archived."""
        statement = parse(sql, self.tokenizer, self.regions)
        self.check(statement)
        return self.answer(statement.query, **options)

    def check(self, statement: Statement) -> None:
        """Raises QueryError where a statement makes no sense as a search, or for the posts that there are. (Posts that
        no post happens to be like are no mistake: they are none.)
        """
        check_search(statement)
        query = statement.query
        if query.predicates and self.refs and any(each.name in DERIVED for each in query.predicates):
            check_kinds(statement, {name: self.attribute_types[name] for name in DERIVED})
        kind_named(query.kind).search.check(self, statement)

    def answer(self, query: Query, **options: Any) -> Answer:
        """The answer to a question, by its kind; options that are None are not given."""
        role = kind_named(query.kind).search
        return role.answer(self, query, _options_for(role, options) if options else options)

    def check_attributes(self, statement: Statement) -> None:
        """Raises QueryError where there are posts, and none has an attribute that the answer depends on."""
        if self.refs:
            check_attributes(statement, self.attribute_types)
            check_numbers(statement, self.attribute_types)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What a kind makes once of a manifest, and asks for again by the same key."""
        if key not in self._made:
            self._made[key] = make()
        return cast(Made, self._made[key])

    # -- what there is -------------------------------------------------------------------------------------------------

    @cached_property
    def attribute_types(self) -> dict[str, set[str]]:
        """The types of values that attributes may have: those of posts, and those that follow from every post."""
        derived = [spec.partition("=")[0] for spec in self.manifest.settings.get("derive") or ()]
        own = {**{name: set(ATTRIBUTE_KINDS) for name in derived}, **self.attributes}
        return {**own, **{name: {kind, *own.get(name, ())} for name, kind in DERIVED.items()}}

    @cached_property
    def attributes(self) -> dict[str, set[str]]:
        """The attributes that posts have, and the types of their values."""
        types: dict[str, set[str]] = {}
        for ref in self.refs:
            for column in self.files.attribute_columns(ref):
                name, _, type_ = column.rpartition(":")
                types.setdefault(name, set()).add(type_)
        return types

    @cached_property
    def posts(self) -> tuple[tuple[str, PostSegment, np.ndarray], ...]:
        """The segments of posts, and the deleted rows of each: what a cache is of."""
        refs = [ref for ref in self.refs if ref.kind == POSTS]
        held = [(ref, self.files.segment(ref.name)) for ref in refs]
        return tuple((ref.name, segment, self.files.gone(self.manifest, ref, segment)) for ref, segment in held)

    @property
    def dictionary(self) -> list[TermTable]:
        return [self.files.terms(ref.name) for ref in self.manifest.of(TERMS)]

    def exact_since(self, question: Question) -> int | None:
        """From when on posts are kept, where a question reaches back to some that are not."""
        left = self.manifest.of(COARSE)
        reaches = any(not question.is_apart(ref.min_ts, ref.max_ts) for ref in left)
        return self.manifest.kept_since if reaches else None

    # -- segments of a question ----------------------------------------------------------------------------------------

    def question(self, query: Query) -> Question:
        clock = BEGINNING if self.manifest.clock is None else self.manifest.clock
        return Question.of(encode_conditions(query, clock))

    def segment_group(
        self, question: Question, columns: Sequence[str] | None = None
    ) -> tuple[SegmentGroup, np.ndarray]:
        """As `segments`, to be searched together: (all that are open, the numbers of those that the time touches)."""
        self._check_kept()
        members = np.flatnonzero(~question.is_apart(*self.times.T))
        group = self._group
        new = members[~group.held[members]]
        for number in new.tolist():
            if self.refs[number].kind == ARCHIVE and group is self._group:
                group = group.copy()  # for what is read of an archive serves this question only
            each = self._open(self.refs[number], question, columns)
            group.hold(number, each.segment, each.gone)
        return group, members

    def segments(
        self, question: Question, columns: Sequence[str] | None = None, file_kinds: Sequence[str] = (POSTS, ARCHIVE)
    ) -> list[OpenSegment]:
        """All segments that a question's time touches, newest first, opened before any is searched: what is mapped
        stays readable whatever the writer removes.
        """
        self._check_kept()
        refs = [ref for ref in self.refs if ref.kind in file_kinds and not question.is_apart(ref.min_ts, ref.max_ts)]
        return [self._open(ref, question, columns) for ref in refs]

    def _check_kept(self) -> None:
        if self.manifest.settings.get("keep") == "none":
            raise BadInput("this state keeps no posts (--keep none): there is nothing to search")

    def _open(self, ref: SegmentRef, question: Question, columns: Sequence[str] | None) -> OpenSegment:
        if ref.kind == ARCHIVE:
            from nearcast.reader.archive import read_archive

            deletes = deletes_for(self.state, self.manifest, ref)
            path = self.state.path(ref.name, ".parquet")
            return OpenSegment(ref, read_archive(path, question, columns, deletes, self.tokenizer), NOTHING)
        segment = self.files.segment(ref.name)
        return OpenSegment(ref, segment, self.files.gone(self.manifest, ref, segment))

    # -- what a search cost --------------------------------------------------------------------------------------------

    def effort(self, question: Question, scans: Callable[[], Iterable[tuple[str, SegmentScan]]]) -> Effort:
        """`scans` says, by name, how segments were searched."""
        return Effort(scans, len(self.refs), self.manifest.batch, self.exact_since(question))

    def group_effort(self, question: Question, searches: Sequence[Scanned]) -> Effort:
        """The same of searches of the reader's group of segments; what comes later counts."""

        def scans() -> Iterable[tuple[str, SegmentScan]]:
            by_number = {number: scan for each in searches for number, scan in each.scans().items()}
            return [(self.refs[number].name, scan) for number, scan in by_number.items()]

        return self.effort(question, scans)


def _options_for(role: SearchRole, options: Options) -> Options:
    """Those that the kind takes; raises BadInput where it refuses one."""
    wanted = {name: value for name, value in options.items() if value is not None}
    for name in wanted.keys() - role.options.keys():
        messages = [each.search.options[name] for each in kinds() if name in each.search.options]
        if not messages:
            raise BadInput(f"no kind of search has an option {name}")
        if messages[0]:
            raise BadInput(messages[0])
    return {name: value for name, value in wanted.items() if name in role.options}
