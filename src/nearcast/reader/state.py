"""A state directory as Python sees it: `nearcast.open`."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nearcast.common.errors import BadInput, NearcastError, QueryError
from nearcast.common.kinds import kinds
from nearcast.common.sizes import size_of
from nearcast.language import parse
from nearcast.reader.answer import Answer
from nearcast.reader.current_answer import CurrentAnswer, read_current
from nearcast.reader.explain import Explanation, explain
from nearcast.reader.open_files import OpenFiles
from nearcast.reader.reader import Reader
from nearcast.reader.results import follow_results, read_results
from nearcast.reader.roles import SearchCache
from nearcast.reader.status import Status, read_status
from nearcast.reader.subscription_list import Subscriptions
from nearcast.storage.directory import StateDirectory

ATTEMPTS = 10
QUIET = 0.1  # seconds after which a folder that still has the same time of change has not changed


class State:
    """Reads a state, without Spark, while it rests or while a run writes it; from many threads at once.

    Every call looks at the newest committed batch; what it returns belongs to that batch.

    Examples:
        >>> import nearcast
        >>> state = nearcast.open("state")
        >>> state
        nearcast.open('state')
    """

    def __init__(self, path: str | Path, cache: int | str | None = None) -> None:
        """`cache` is how much memory may be used to answer aggregates like earlier ones faster: bytes, or "500 MB"."""
        self.directory = StateDirectory(path)
        self.cache = None if cache is None else cache_of(cache)
        self._files = OpenFiles(self.directory)
        self._reader = Reader(self.directory, files=self._files, cache=self.cache)
        self._seen = 0  # the folder's time of change when it was last listed, 0 if it may have changed in that instant

    @property
    def reader(self) -> Reader:
        """A reader of the newest batch; opened segments are kept for as long as manifests name them."""
        try:
            changed = os.stat(self.directory.manifests).st_mtime_ns
        except FileNotFoundError:
            changed = 0
        if changed and changed == self._seen:
            return self._reader
        quiet = time.time_ns() - changed > QUIET * 1e9
        newest = self.directory.newest()
        reader = self._reader
        if newest.version != reader.manifest.version:
            reader = self._reader = Reader(self.directory, newest, self._files, self.cache)
            self._files.keep_only(ref.name for ref in newest.segments)
            if self.cache is not None:
                self.cache.refresh_later(lambda: reader.posts)
        self._seen = changed if quiet else 0
        return reader

    def search(self, sql: str, **options: Any) -> Answer | Explanation:
        """The rows of a SELECT, or the plan of an EXPLAIN SELECT.

        Kinds of question have options of their own. `stop_words` are left out of counts of frequent terms: 'english',
        the path of a file of words, or words. `idf` is the version of the term statistics that scores of RELEVANCE come
        from, the newest unless given.

        Examples:
            >>> import nearcast
            >>> state = nearcast.open("state")
            >>> for row in state.search("SELECT id, text FROM stream WHERE text CONTAINS 'flood AND NOT drill'"):
            ...     print(row)
            {'id': 1, 'text': 'Flood in the subway, stay home'}
            >>> nearest = state.search("SELECT id FROM stream ORDER BY DISTANCE(loc, POINT(2.3, 48.8)) LIMIT 1")
            >>> nearest.to_pandas().id.tolist()
            [4]
            >>> list(state.search("SELECT TopK(text, 2) FROM stream WHERE text CONTAINS 'flood'"))
            [{'term': 'flood', 'count': 2}, {'term': 'at', 'count': 1}]
        """
        for _ in range(ATTEMPTS):
            reader = self.reader
            try:
                statement = parse(sql, reader.tokenizer, reader.regions)
                if statement.explain:
                    return explain(reader, statement, **options)
                reader.check(statement)
                return reader.answer(statement.query, **options)
            except FileNotFoundError as error:  # the writer has gone on and swept: take its newest manifest
                missing = error
                self._seen = 0
        raise NearcastError(f"{self.directory.root}: a file of the state is missing: {missing}")

    def why_empty(self, sql: str) -> str | None:
        """Why a search of posts may have found nothing: it asks for an attribute that no post has."""
        reader = self.reader
        try:
            reader.check_attributes(parse(sql, reader.tokenizer, reader.regions))
        except QueryError as mistake:
            return str(mistake)
        return None

    def results(
        self, query: str | int | None = None, since_seq: int = 0, follow: bool = False
    ) -> Iterator[dict[str, Any]]:
        """The results in order, of one query or of all; with `follow`, those to come too.

        Examples:
            >>> import nearcast
            >>> [(row["kind"], row["post_id"]) for row in nearcast.open("state").results("busy")]
            [('match', 2), ('match', 4)]
        """
        if follow:
            return follow_results(self.directory, query, since_seq)
        return read_results(self.reader, query, since_seq)

    def current(self, query: str | int) -> CurrentAnswer:
        """The answer of a subscription as it stands, best first, where its kind keeps one."""
        return read_current(self.reader, query)

    def subscriptions(self) -> Subscriptions:
        """The subscriptions that stand.

        Examples:
            >>> import nearcast
            >>> [each.id for each in nearcast.open("state").subscriptions().all()]
            ['ny-floods', 'busy']
        """
        return Subscriptions(self.reader)

    def status(self) -> Status:
        """What the state holds, as figures.

        Examples:
            >>> import nearcast
            >>> status = nearcast.open("state").status()
            >>> status.counts["posts"], status.rejects
            (4, {'latitude out of range': 1})
        """
        return read_status(self.reader)

    def __repr__(self) -> str:
        return f"nearcast.open({str(self.directory.root)!r})"


def cache_of(memory: int | str) -> SearchCache:
    """A cache of so many bytes, for the first kind that has one."""
    size = size_of(memory, "cache")
    cache = next((cache for kind in kinds() if (cache := kind.search.cache(size)) is not None), None)
    if cache is None:
        raise BadInput("cache=: no kind of search has a cache")
    return cache
