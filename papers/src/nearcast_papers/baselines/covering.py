"""CIQ (Chen et al., ICDE 2015, as Skype §2.2 tells): the baseline of the paper's experiments.

Each subscriber is in 3 * levels + 1 cells that together are the world, with the similarity of words that it asks for in
each. A post is in one cell of each level, whose inverted files are merged by subscriber. More levels ask for more words
in far cells and take more memory: 12 bytes for each word and cell.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.kinds.relevance.matcher import Matcher, Out, Pairs, StandingSubscribers, collected
from nearcast.kinds.relevance.term_ranks import Terms
from nearcast.kinds.relevance.vectors import Profiles, Vectors
from nearcast.storage.subscriptions.rows import is_first
from nearcast_papers.baselines.kernels.covered_cells import cover_words, match_covered

LEVELS = 3


@dataclass(frozen=True)
class CoveringIndex:
    """Postings by cell, term and subscriber: see `nearcast_papers.baselines.kernels.covered_cells`."""

    rows: np.ndarray
    terms: Terms
    runs: np.ndarray
    run_starts: np.ndarray
    owners: np.ndarray
    own: np.ndarray
    need: np.ndarray
    levels: int

    def match(self, posts: Vectors, standing: StandingSubscribers, number: int) -> Pairs:
        numbers = self.terms.numbers_of(posts.terms)
        profiles = standing.profiles
        most = len(self.rows)

        def go(done: int, out: Out, tally: np.ndarray) -> tuple[int, int]:
            found: tuple[int, int] = match_covered(
                done, self.levels, self.terms.count, self.runs, self.run_starts, self.owners, self.own, self.need,
                numbers, number, standing.home, standing.theta,
                profiles.lon, profiles.lat, profiles.alpha, profiles.reach, profiles.words, profiles.offsets,
                profiles.weights, posts.lon, posts.lat, posts.terms, posts.offsets, posts.weights, *out, most, tally,
            )  # fmt: skip
            return found

        return collected(len(posts), most, go)

    @property
    def nbytes(self) -> int:
        own = (self.rows, self.runs, self.run_starts, self.owners, self.own, self.need)
        return self.terms.nbytes + sum(array.nbytes for array in own)


def build_part(profiles: Profiles, theta: np.ndarray, rows: np.ndarray, levels: int = LEVELS) -> CoveringIndex:
    terms, numbers = Terms.of(profiles, rows)
    sizes = profiles.offsets[rows + 1] - profiles.offsets[rows]
    cover = 3 * levels + 1
    count = len(numbers) * cover
    keys, own, need = np.empty(count, np.int64), np.empty(count, np.float32), np.empty(count, np.float32)
    cover_words(
        rows, numbers, frozen(np.cumsum(sizes) - sizes), profiles.offsets, profiles.weights, profiles.lon, profiles.lat,
        profiles.alpha, profiles.reach, theta, levels, terms.count, keys, own, need,
    )  # fmt: skip
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(is_first(keys)) if count else np.empty(0, np.int64)
    return CoveringIndex(
        rows=rows,
        terms=terms,
        runs=frozen(keys[starts]),
        run_starts=frozen(np.append(starts, count)),
        owners=frozen(np.repeat(rows.astype(np.int32), sizes * cover)[order]),
        own=frozen(own[order]),
        need=frozen(need[order]),
        levels=levels,
    )


def build(profiles: Profiles, theta: np.ndarray, levels: int = LEVELS) -> Matcher:
    return Matcher(profiles, theta, partial(build_part, levels=levels))
