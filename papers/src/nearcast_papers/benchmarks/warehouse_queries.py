"""STAR's queries (STAR §8.1, Table 1): Count or TopK of the posts that meet 1 to 4 constraints, by group.

A range is a square whose upper left corner is a post; words are some of a post; a time is the last 10, 20 or 30
minutes; a topic is one of 50. Groups are by any of the 31 sets of derived attributes: at random (Q_S1, Q_C1), or, with
chance P, those of the cell that the query comes from, one of 10 × 10 of the space (Q_S2, Q_C2). Standing ones report
every 1, 5 or 10 minutes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from nearcast_papers.benchmarks.warehouse_data import TOPICS

DERIVED = ("topic", "area", "date", "hour", "weekday")
GROUPINGS = tuple(some for size in range(1, len(DERIVED) + 1) for some in combinations(DERIVED, size))
PLACE, WORDS, TIME, TOPIC = range(4)
SIDES = (0.0005, 0.001, 0.002)  # of the sides of the space
MINUTES = (10, 20, 30)
BEATS = (1, 5, 10)
MOST_WORDS = 3
CELLS = 10
P = 0.7
K = 10
DAY = 86_400_000_000

PlacesAndWords = Sequence[tuple[float, float, list[str]]]


@dataclass(frozen=True)
class WarehouseQuery:
    """One query, not yet in anyone's SQL."""

    function: str  # count or topk
    by: tuple[str, ...]
    box: tuple[float, float, float, float] | None = None
    words: tuple[str, ...] = ()
    minutes: int = 0
    topic: str = ""
    beat: int = 0
    approximate: bool = False

    @property
    def constraints(self) -> tuple[str, ...]:
        there = {"place": self.box is not None, "words": self.words, "time": self.minutes, "topic": self.topic}
        return tuple(name for name, is_there in there.items() if is_there)

    @property
    def sql(self) -> str:
        measure = "Count(id)" if self.function == "count" else f"TopK(text, {K})"
        where = []
        if self.box is not None:
            where.append(f"loc INSIDE RECT({', '.join(f'{value:.7f}' for value in self.box)})")
        if self.words:
            where.append(f"text CONTAINS '{' '.join(self.words)}'")
        if self.minutes:
            where.append(f"time AFTER '{self.minutes} mins ago'")
        if self.topic:
            where.append(f"topic = '{self.topic}'")
        by = ", ".join(self.by)
        how = "APPROXIMATE " if self.approximate else ""
        text = f"SELECT {how}{by}, {measure} FROM stream WHERE {' AND '.join(where)} GROUP BY {by}"
        return f"{text} SYNC {self.beat} minutes" if self.beat else text


class WarehouseQueries:
    """Queries of one set, the same for the same seed: `pivots` for Q_S2 and Q_C2."""

    def __init__(self, sample: PlacesAndWords, function: str, pivots: bool, seed: int, standing: bool = False) -> None:
        self.sample, self.function, self.pivots, self.standing = sample, function, pivots, standing
        self.rng = np.random.default_rng((seed, 0x57A2, pivots, function == "topk", standing))
        self.of_cell = np.random.default_rng((seed, 0xB1)).integers(len(GROUPINGS), size=CELLS * CELLS).tolist()

    def take(self, count: int, constraints: int | None = None) -> list[WarehouseQuery]:
        """The next queries, of so many constraints, or of 1 to 4."""
        return [self._one(constraints or int(self.rng.integers(1, 5))) for _ in range(count)]

    def _one(self, constraints: int) -> WarehouseQuery:
        rng = self.rng
        kinds = set(rng.permutation(4)[:constraints].tolist())
        lon, lat, _ = self.sample[int(rng.integers(len(self.sample)))]
        side = float(rng.choice(SIDES))
        words = self.sample[int(rng.integers(len(self.sample)))][2]
        some = list(dict.fromkeys(rng.permutation(np.array(words))[: int(rng.integers(1, MOST_WORDS + 1))].tolist()))
        minutes, beat = int(rng.choice(MINUTES)), int(rng.choice(BEATS))
        return WarehouseQuery(
            self.function,
            self._grouping(lon, lat),
            square(lon, lat, side) if PLACE in kinds else None,
            tuple(some) if WORDS in kinds else (),
            minutes if TIME in kinds else 0,
            f"topic{rng.integers(TOPICS)}" if TOPIC in kinds else "",
            beat if self.standing else 0,
        )

    def _grouping(self, lon: float, lat: float) -> tuple[str, ...]:
        number = int(self.rng.integers(len(GROUPINGS)))
        if self.pivots and self.rng.random() < P:
            across, up = min(CELLS - 1, int((lon + 180) / 360 * CELLS)), min(CELLS - 1, int((lat + 90) / 180 * CELLS))
            number = self.of_cell[up * CELLS + across]
        return GROUPINGS[number]


def square(lon: float, lat: float, side: float) -> tuple[float, float, float, float]:
    """The range with its upper left corner there: that part of the sides of the space, within it."""
    return lon, max(-90.0, lat - 180 * side), min(180.0, lon + 360 * side), lat
