"""Standing reports of frequent terms (CTQ: SSTD §3.1, Definition 3, continuous version), worked out beat by beat.

The paper: every δ time units a query reports the k terms that occur in the most of the posts that lie in its region and
came in a window of length T. Here (docs/language) the window of beat b is (b − T, b], beats are whole multiples of
δ since the epoch, and a subscription reports at those in [start, end). A beat fires in the batch after which clock −
lateness is past it, with all posts that have arrived by then; of a post that comes after that, `late` tells.

Versions of subscriptions, deletions and duplicates are those of the stream's oracle (tests/pipeline/oracle.py), so that
reports, matches and answers of one stream can be checked together; a report's rows are those of the search's oracle.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from nearcast.common.errors import BadInput
from nearcast.kinds.nearest.query import NearestQuery
from nearcast.kinds.range.query import RangeQuery
from nearcast.kinds.terms.query import TermsQuery
from nearcast.language import parse
from tests.engine.oracle import BEGINNING, DAY, TOKENIZER, Batch, Oracle, Version, is_post, satisfies
from tests.oracles.searches import term_counts

SILENCE = 1440  # empty reports in a row; those after them are skipped

Post = dict[str, Any]
Late = tuple[int | str, int | str, int]  # query_id, post_id, ts


@dataclass(frozen=True)
class Report:
    """One `report` of the outbox; `number` is that of the op that made its subscription."""

    batch: int
    window_end: int
    number: int
    query_id: int | str
    rows: list[dict[str, Any]]
    skipped: int | None = None

    @property
    def told(self) -> tuple[Any, ...]:
        """What it says, whichever batch it was in: something to sort by."""
        rows = tuple((row["term"], row["count"]) for row in self.rows)
        return self.window_end, repr(self.query_id), rows, self.skipped or 0


@dataclass
class Reporting(Version):
    """One subscription to frequent terms. Its beats from `first` on, before `upcoming`, have fired."""

    number: int = 0
    first: int = 0
    upcoming: int = 0
    empty: int = 0  # reports sent in a row, up to the last one
    skipped: int = 0  # beats since then

    @property
    def terms(self) -> TermsQuery:
        return cast(TermsQuery, self.query)

    @property
    def window(self) -> int:
        assert self.terms.after is not None and self.terms.after.ago is not None
        return self.terms.after.ago

    @property
    def beat(self) -> int:
        assert self.terms.sync is not None
        return self.terms.sync

    def wants(self, post: Post) -> bool:
        """It gives reports, and no posts."""
        return False

    def has_reported(self, post: Post) -> bool:
        """Whether a beat whose window the post is in has fired: ts ≤ b < ts + T."""
        return self._counts_in_one_before(post, self.upcoming)

    def reports(self, post: Post) -> bool:
        """Whether any beat has the post in its window, fired or to come."""
        return self._counts_in_one_before(post, max(self.end, self.upcoming))

    def _counts_in_one_before(self, post: Post, stop: float) -> bool:
        earliest = max(self.first, beat_from(post["ts"], self.beat))
        return earliest < min(post["ts"] + self.window, stop) and satisfies(cast(Any, self.query), post)


def beat_from(moment: int, beat: int) -> int:
    """The first beat at or after a moment."""
    return -(-moment // beat) * beat


class ReportOracle(Oracle):
    """As the stream's oracle, which it is for the other kinds of subscription: `reports` in their order, and `late`."""

    def __init__(
        self,
        first_post: int,
        keep: str = "posts",
        max_future: int = DAY,
        lateness: int = 0,
        retention: int | None = None,
    ) -> None:
        super().__init__(first_post, keep, max_future)
        self.lateness = lateness
        self.retention = retention
        self.counted: list[Post] = []  # posts that reports count: not too old when they came, not deleted
        self.reports: list[Report] = []
        self.late: Counter[Late] = Counter()
        self.ops = self.batches = 0

    def run(self, batches: list[Batch]) -> "ReportOracle":
        for batch in batches:
            self.batch(batch)
        return self

    def batch(self, batch: Batch) -> None:
        """Ops and posts as ever; then the beats that the clock has passed, in order of (beat, op)."""
        super().batch(batch)
        due = [report for query_id, version in self.reporting() for report in self.due(query_id, version)]
        self.reports += sorted(due, key=lambda report: (report.window_end, report.number))
        self.batches += 1

    def reporting(self) -> Iterator[tuple[int | str, Reporting]]:
        for query_id, versions in self.versions.items():
            yield from ((query_id, version) for version in versions if isinstance(version, Reporting))

    # -- ops -----------------------------------------------------------------------------------------------------------

    def apply(self, op: dict[str, Any]) -> Version | None:
        self.ops += 1
        if op["op"] == "delete":
            self.counted = [post for post in self.counted if post["id"] != op["id"]]
        if op["op"] == "subscribe" and self.looks_too_far_back(op["sql"]):
            self.rejects += 1
            return None
        return super().apply(op)

    def looks_too_far_back(self, sql: str) -> bool:
        """A standing window may not be longer than posts are kept."""
        try:
            query = parse(sql, TOKENIZER).query
        except BadInput:
            return False
        sliding = isinstance(query, TermsQuery) and query.after is not None and query.after.ago is not None
        return sliding and self.retention is not None and cast(Any, query.after).ago > self.retention

    def version(self, query: RangeQuery | NearestQuery | TermsQuery, sql: str, moment: float) -> Version:
        """One that was there from the beginning reports from the first post on."""
        plain = super().version(cast(Any, query), sql, moment)
        if not isinstance(query, TermsQuery):
            return plain
        first = beat_from(int(self.first_post if plain.start == BEGINNING else plain.start), cast(int, query.sync))
        return Reporting(plain.query, sql, plain.start, plain.end, [], number=self.ops, first=first, upcoming=first)

    # -- posts ---------------------------------------------------------------------------------------------------------

    def arrive(self, post: Post, arrival: int | None) -> int | None:
        """As ever, and late for what has reported without it; one older than retention counts nowhere."""
        post = {**post, "text": post.get("text") or ""}
        same = (type(post["id"]), post["id"], post["ts"], post["lon"], post["lat"])
        horizon = BEGINNING if self.retention is None else self.clock - self.retention
        if is_post(post) and post["ts"] < horizon and same not in self.seen:
            self.seen.add(same)
            self.tell_late(post, too_old=True)
            return int(post["ts"])
        moment = super().arrive(post, arrival)
        if moment is not None:
            self.counted.append(post)
            self.tell_late(post)
        return moment

    def offer(self, query_id: int | str, version: Version, post: Post) -> bool:
        """Where posts are not kept, what a report may count is known, as what matches is."""
        counts = isinstance(version, Reporting) and satisfies(version.query, post)
        return super().offer(query_id, version, post) or counts

    def tell_late(self, post: Post, too_old: bool = False) -> None:
        """Once for an id, of however many beats and versions."""
        for query_id, versions in self.versions.items():
            if any(self.is_late(version, post, too_old) for version in versions):
                self.late[query_id, post["id"], post["ts"]] += 1

    @staticmethod
    def is_late(version: Version, post: Post, too_old: bool) -> bool:
        if isinstance(version, Reporting):
            return version.reports(post) if too_old else version.has_reported(post)
        return too_old and version.wants(post)

    # -- beats ---------------------------------------------------------------------------------------------------------

    def due(self, query_id: int | str, version: Reporting) -> Iterator[Report]:
        """The reports of the beats that fire now. Only those that have a post in their window are looked at."""
        if BEGINNING in (self.clock, version.end):  # there was no post yet, or none when it ended
            return
        query, window, beat = version.terms, version.window, version.beat
        stop = int(min(self.clock - self.lateness, version.end))  # it fires what is before
        since = version.upcoming - window
        posts = [p for p in self.counted if since < p["ts"] < stop and satisfies(cast(Any, query), p)]
        busy: set[int] = set()
        for post in posts:
            busy.update(range(max(version.upcoming, beat_from(post["ts"], beat)), min(post["ts"] + window, stop), beat))
        inside: list[Post] = []
        rows: list[dict[str, Any]] = []
        for moment in sorted(busy):
            before, inside = inside, [post for post in posts if moment - window < post["ts"] <= moment]
            if inside != before:
                counts = term_counts(inside, query, moment, TOKENIZER)
                rows = [{"term": term, "count": count} for term, count in counts]
            if rows:
                yield from self.nothing_until(moment, query_id, version)
                yield from self.how_many_were_skipped(query_id, version)
                yield Report(self.batches, moment, version.number, query_id, rows)
                version.upcoming = moment + beat
                version.empty = 0
        yield from self.nothing_until(stop, query_id, version)
        if version.upcoming >= version.end:
            yield from self.how_many_were_skipped(query_id, version)

    def nothing_until(self, stop: int, query_id: int | str, version: Reporting) -> Iterator[Report]:
        """Empty reports of the beats before a moment, as far as they are sent."""
        beats = max(0, -(-(stop - version.upcoming) // version.beat))
        sent = min(beats, SILENCE - version.empty)
        for n in range(sent):
            yield Report(self.batches, version.upcoming + n * version.beat, version.number, query_id, [])
        version.upcoming += beats * version.beat
        version.empty += sent
        version.skipped += beats - sent

    def how_many_were_skipped(self, query_id: int | str, version: Reporting) -> Iterator[Report]:
        if version.skipped:
            last = version.upcoming - version.beat
            yield Report(self.batches, last, version.number, query_id, [], version.skipped)
            version.skipped = 0
