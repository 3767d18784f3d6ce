"""The most frequent terms, asked once (SSTD's STQ): most frequent first, ties by term."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from nearcast.kinds.terms.query import TermsQuery
from nearcast.reader.answer import Answer, Effort
from nearcast.reader.reader import Reader
from nearcast.reader.roles import Options, PlanPart, SearchRole
from nearcast.reader.select_text import SelectPart
from nearcast.reader.stop_words import stop_terms
from nearcast.storage.dictionary import spelled
from nearcast.storage.posts.frequent_terms import most_frequent
from nearcast.storage.subscriptions.rows import Rows


@dataclass(frozen=True)
class TermRows(Answer):
    """Terms and in how many posts each occurs."""

    terms: tuple[str, ...]
    counts: tuple[int, ...]
    posts_counted: int
    effort: Effort = field(default_factory=Effort)

    @property
    def column_names(self) -> tuple[str, ...]:
        return ("term", "count")

    def __len__(self) -> int:
        return len(self.terms)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return ({"term": term, "count": n} for term, n in zip(self.terms, self.counts, strict=True))

    def to_arrow(self) -> pa.Table:
        return pa.table({"term": pa.array(self.terms, pa.string()), "count": pa.array(self.counts, pa.int64())})


class TermsSearch(SearchRole):
    options: ClassVar = {"stop_words": ""}

    def answer(self, reader: Reader, query: TermsQuery, options: Options) -> TermRows:
        stop = stop_terms(options.get("stop_words"), reader.tokenizer)
        question = reader.question(query)
        frequent = most_frequent(*reader.segment_group(question, ()), question, query.k, stop)
        words = spelled(reader.dictionary, frequent.terms) if len(frequent.terms) else []
        pairs = sorted(zip(words, frequent.counts.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0]))
        pairs = pairs[: query.k]
        effort = reader.group_effort(question, [frequent])
        return TermRows(tuple(word for word, _ in pairs), tuple(n for _, n in pairs), frequent.posts, effort)

    def explain(self, reader: Reader, query: TermsQuery, answer: TermRows) -> PlanPart:
        return PlanPart(f"most frequent first, ties by term, the first {query.k:,}")

    def select(self, rows: Rows, row: int, word: Callable[[int], str]) -> SelectPart:
        window, beat, k, _ = rows.ticks[row].tolist()
        slides = f"time AFTER '{window / 1e6:.15g} seconds ago'"
        return SelectPart(f"TopK(text, {k})", (slides,), f" SYNC {beat / 1e6:.15g} SECONDS")


ROLE = TermsSearch()
