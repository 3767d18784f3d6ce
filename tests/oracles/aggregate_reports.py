"""Standing aggregates (STAR §3.1, SYNC), worked out beat by beat.

Beats, windows, late posts, starts and ends are those of reports of frequent terms (reports.py), which this oracle gives
too; the rows of a report are those that a search would have given at its beat (aggregates.py). In addition:

- Without a time in its WHERE an aggregate counts from its start on: at a beat b the posts of [start, b], whenever they
  came, also those that have expired since.
- A report is empty if it counts no post, or has no row. Without GROUP BY an empty one still has its row (`count` 0).
  Of more than 1,440 empty ones in a row one report, without rows, tells how many were skipped.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, cast

from nearcast.common.errors import BadInput
from nearcast.kinds.aggregates.query import AggregateQuery
from nearcast.language import parse
from tests.engine.oracle import BEGINNING, TOKENIZER, Batch, Version
from tests.oracles.aggregates import meets_but_time, rows_of
from tests.oracles.reports import SILENCE, Post, Report, Reporting, ReportOracle, beat_from


def reports(
    batches: Iterable[Batch], first_post: int, lateness: int = 0, retention: int | None = None
) -> "AggregateReports":
    """What the outbox holds after these batches: `reports` in their order, and `late`."""
    oracle = AggregateReports(first_post, lateness=lateness, retention=retention)
    for batch in batches:
        oracle.batch(batch)
    return oracle


@dataclass
class Aggregating(Reporting):
    """One standing aggregate. Its beats from `first` on, before `upcoming`, have fired."""

    @property
    def asked(self) -> AggregateQuery:
        return cast(AggregateQuery, cast(Any, self.query))

    @property
    def reach(self) -> float:
        """How long before a beat its window begins."""
        return inf if self.asked.after is None else cast(int, self.asked.after.ago)

    def covers(self, post: Post) -> bool:
        """Whether some beat, if there were one at every moment, would count the post."""
        sliding = self.asked.after is not None
        return (sliding or post["ts"] >= self.start) and meets_but_time(post, self.asked, TOKENIZER)

    def _counts_in_one_before(self, post: Post, stop: float) -> bool:
        earliest = max(self.first, beat_from(post["ts"], self.beat))
        return earliest < min(post["ts"] + self.reach, stop) and self.covers(post)


class AggregateReports(ReportOracle):
    """As the oracle of reports, with aggregates among the subscriptions."""

    def looks_too_far_back(self, sql: str) -> bool:
        try:
            query = parse(sql, TOKENIZER).query
        except BadInput:
            return False
        if not isinstance(query, AggregateQuery):
            return super().looks_too_far_back(sql)
        window = None if query.after is None else query.after.ago
        return window is not None and self.retention is not None and window > self.retention

    def version(self, query: Any, sql: str, moment: float) -> Version:
        plain = super().version(query, sql, moment)
        if not isinstance(query, AggregateQuery):
            return plain
        first = beat_from(int(self.first_post if plain.start == BEGINNING else plain.start), cast(int, query.sync))
        return Aggregating(plain.query, sql, plain.start, plain.end, [], number=self.ops, first=first, upcoming=first)

    def offer(self, query_id: int | str, version: Version, post: Post) -> bool:
        return version.covers(post) if isinstance(version, Aggregating) else super().offer(query_id, version, post)

    def due(self, query_id: int | str, version: Reporting) -> Iterator[Report]:
        """The reports of the beats that fire now: every one is looked at."""
        if not isinstance(version, Aggregating):
            yield from super().due(query_id, version)
            return
        if BEGINNING in (self.clock, version.end):  # there was no post yet, or none when it ended
            return
        stop = int(min(self.clock - self.lateness, version.end))
        posts = [post for post in self.counted if version.covers(post)]
        before: list[Post] | None = None
        for moment in range(version.upcoming, stop, version.beat):
            inside = [post for post in posts if moment - version.reach < post["ts"] <= moment]
            if inside != before:
                before, rows = inside, rows_of(inside, version.asked, TOKENIZER)
            if inside and rows:
                yield from self.how_many_were_skipped(query_id, version)
                version.empty = 0
            if not (inside and rows) and version.empty == SILENCE:
                version.skipped += 1
            else:
                version.empty += not (inside and rows)
                yield Report(self.batches, moment, version.number, query_id, rows)
            version.upcoming = moment + version.beat
        if version.upcoming >= version.end:
            yield from self.how_many_were_skipped(query_id, version)
