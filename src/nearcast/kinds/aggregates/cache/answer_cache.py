"""A cache as a reader uses it: it answers, notes what was asked, and chooses anew what to keep."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock, Thread

from nearcast.common.errors import BadInput
from nearcast.kinds.aggregates.cache.answer_memory import AnswerMemory
from nearcast.kinds.aggregates.cache.cached_groups import Partial
from nearcast.kinds.aggregates.cache.catalog import Catalog
from nearcast.kinds.aggregates.cache.learning import Budget, learn
from nearcast.kinds.aggregates.cache.nodes import Quadtree
from nearcast.kinds.aggregates.cache.plan import CacheResult, Used, carry_out, planned
from nearcast.kinds.aggregates.cache.query_log import Log
from nearcast.kinds.aggregates.cache.snapshot import Plain, Snapshot, Snapshots
from nearcast.kinds.aggregates.groups import Shape
from nearcast.reader.roles import Segments
from nearcast.storage.posts.question import Question

FIRST = 50  # queries until the first choice
EVERY = 500  # queries from one choice to the next
REMEMBERED = 0.05  # of the bytes of views, and beside them, are for whole answers


@dataclass(frozen=True)
class CacheStatus:
    """What a cache may hold, holds and has done. Answers that it `remembered` are no queries of its own."""

    budget: Budget
    views: int
    view_bytes: int
    regions: int
    region_bytes: int
    queries: int
    from_views: int
    from_borders: int
    choices: int
    remembered: int


class AggregateCache:
    """Answers aggregates over segments the same as without it, and faster where queries are like earlier ones.

    Many threads may ask. `views` and `objects` are bytes (C and B of STAR). After every so many queries what to
    keep is chosen anew, in the background if asked to.
    """

    def __init__(
        self, views: int, objects: int = 0, *, classic: bool = False, regions: bool = True, background: bool = True
    ) -> None:
        self.budget = Budget(views, objects, classic, regions)
        self.background = background
        self.memory = AnswerMemory(int(REMEMBERED * views))
        self._catalog = Catalog(Quadtree.of(()))
        self._log = Log()
        self._snapshots = Snapshots()
        self._busy = Lock()  # held while a choice is made
        self._posts = 0  # there when the last choice was made
        self._queries = self._from_views = self._from_borders = self._choices = 0

    def groups(
        self,
        segments: Segments,
        question: Question,
        shape: Shape,
        counters: int = 0,
        plain: Plain | None = None,
    ) -> CacheResult:
        """The aggregates of the posts of all segments that satisfy the question.

        `plain` answers a question over the same segments without a cache. `counters` allows summaries of terms, with so
        many of them for a group, or more; 0 wants exact counts.
        """
        snapshot = self._snapshots.of(segments)
        self._log.note(snapshot, question, shape, counters)
        self._queries += 1
        answer = self._answer(snapshot, question, shape, counters, plain or snapshot.plain(shape))
        self._from_views += answer.used.views > 0
        self._from_borders += answer.used.cached > 0
        if self._queries % EVERY == 0 or (self._queries == FIRST and not self._choices):
            self._choose_later(snapshot)
        return answer

    def note(self, segments: Segments, question: Question, shape: Shape, counters: int = 0) -> None:
        """Learn that a query was asked, without an answer."""
        self._log.note(self._snapshots.of(segments), question, shape, counters)

    def _answer(self, snapshot: Snapshot, question: Question, shape: Shape, counters: int, plain: Plain) -> CacheResult:
        plan = planned(self._catalog, snapshot, question, shape, counters)
        if plan is None:
            return _without(plain, question)
        try:
            return carry_out(plan, snapshot, question, shape, counters, plain, self._queries)
        except BadInput:  # a view may have more groups than an answer, and grow beyond what is allowed
            return _without(plain, question)

    # -- choosing ------------------------------------------------------------------------------------------------------

    def choose(self, segments: Segments) -> None:
        """Choose anew what to keep, now."""
        with self._busy:
            self._choose(self._snapshots.of(segments))

    def _choose_later(self, snapshot: Snapshot) -> None:
        self._later(lambda: self._choose(snapshot))

    def _later(self, work: Callable[[], None]) -> None:
        """In the background, if asked to; not at all while something else is done there: it will come up again."""
        if not self._busy.acquire(blocking=False):
            return

        def run() -> None:
            try:
                work()
            finally:
                self._busy.release()

        if self.background:
            Thread(target=run, name="nearcast-cache", daemon=True).start()
        else:
            run()

    def _choose(self, snapshot: Snapshot) -> None:
        arrived = max(0, snapshot.posts - self._posts) if self._posts else 0
        self._catalog = learn(self.budget, self._log.taken(), snapshot, self._catalog, arrived)
        self._posts = snapshot.posts
        self._choices += 1

    def refresh_later(self, segments: Callable[[], Segments]) -> None:
        """`refresh` in the background, if asked to; what it does not get to, queries do when they need it."""

        def work() -> None:
            try:
                self._refresh(self._snapshots.of(segments()))
            except FileNotFoundError:  # the writer has gone on, and its newest manifest will be brought here too
                return

        if self._catalog.views or len(self._catalog.borders):
            self._later(work)

    def refresh(self, segments: Segments) -> None:
        """Bring what is kept up to date with new segments, and within its budget; queries would do so one by one."""
        with self._busy:
            self._refresh(self._snapshots.of(segments))

    def _refresh(self, snapshot: Snapshot) -> None:
        catalog, held, kept = self._catalog, 0, []
        for view in sorted(catalog.views, key=lambda view: -view.used):
            try:
                view.total(snapshot.sources, snapshot.keys)
            except BadInput:  # it has grown beyond the groups that are allowed
                continue
            held += view.nbytes
            if held <= self.budget.views:
                kept.append(view)
        names = {each.name for each in snapshot.sources}
        for name in [name for name in list(catalog.borders.segments) if name not in names]:
            catalog.borders.segments.pop(name, None)
        for each in snapshot.sources:
            catalog.borders.rows(each.name, each.segment)
        self._catalog = Catalog(catalog.tree, tuple(kept), catalog.borders.within(self.budget.objects))

    def status(self) -> CacheStatus:
        catalog = self._catalog
        return CacheStatus(
            self.budget, len(catalog.views), sum(view.nbytes for view in catalog.views), len(catalog.borders),
            catalog.borders.nbytes, self._queries, self._from_views, self._from_borders, self._choices,
            self.memory.hits,
        )  # fmt: skip


def _without(plain: Plain, question: Question) -> CacheResult:
    groups, scans = plain(question)
    return CacheResult(Partial(groups), Used(scans=scans))
