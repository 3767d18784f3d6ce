"""The brute-force twin of every subscription index: it tries each subscription on each post, and says what is right."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nearcast.common.expressions import Conjunction
from nearcast.common.geo import containment as regions
from nearcast.common.geo.shapes import Region
from nearcast.common.op_schema import BEGINNING, NEVER
from nearcast.language.encode import decode_code
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Ends, Matches


@dataclass(frozen=True)
class Wish:
    """What one subscription wants, as it would be written down: place, words, and times in [start, end)."""

    region: Region | None
    alternatives: tuple[Conjunction, ...]
    start: int
    end: int
    life: int

    def takes(self, lon: float, lat: float, ts: int, terms: Sequence[int], first_post: int, ended: int) -> bool:
        return (
            self.start <= ts < min(ended, self.stop(first_post))
            and regions.contains(self.region, lon, lat)
            and any(holds(conjunction, terms) for conjunction in self.alternatives)
        )

    def stop(self, first_post: int) -> int:
        """FOR counts from the start, or from the first post where the subscription began with the stream."""
        base = first_post if self.start == BEGINNING else self.start
        return self.end if NEVER in (self.life, base) else min(self.end, base + self.life)


def holds(conjunction: Conjunction, terms: Sequence[int]) -> bool:
    """Whether every literal's phrase is there, or is not where it must not be."""
    return all(occurs(literal.terms, terms) != literal.negative for literal in conjunction)


def occurs(phrase: Sequence[int], terms: Sequence[int]) -> bool:
    """Whether the terms of a phrase follow each other somewhere."""
    places = range(len(terms) - len(phrase) + 1)
    return any(all(terms[place + i] == term for i, term in enumerate(phrase)) for place in places)


@dataclass(frozen=True)
class BruteForce:
    """O(posts x subscriptions), one by one."""

    rows: Rows

    @cached_property
    def wishes(self) -> list[Wish]:
        rows = self.rows
        return [
            Wish(
                regions.decode(
                    int(rows.kinds[row]),
                    rows.boxes[row].tolist(),
                    rows.shape[rows.shape_offsets[row] : rows.shape_offsets[row + 1]].tolist(),
                ),
                decode_code(rows.code[rows.code_offsets[row] : rows.code_offsets[row + 1]].tolist()),
                int(rows.start[row]),
                int(rows.end[row]),
                int(rows.life[row]),
            )
            for row in range(len(rows))
        ]

    def match(self, posts: PostColumns, ends: Ends | None = None, first_post: int = NEVER) -> Matches:
        ended = dict(zip(ends.rows.tolist(), ends.ends.tolist(), strict=True)) if ends else {}
        pairs = []
        for post in range(len(posts)):
            terms = posts.terms[posts.offsets[post] : posts.offsets[post + 1]].tolist()
            lon, lat, ts = float(posts.lon[post]), float(posts.lat[post]), int(posts.ts[post])
            for row, wish in enumerate(self.wishes):
                if wish.takes(lon, lat, ts, terms, first_post, ended.get(row, NEVER)):
                    pairs.append((post, row))
        found = np.array(pairs, np.int64).reshape(-1, 2)
        return Matches(found[:, 0], found[:, 1], len(posts) * len(self.rows))
