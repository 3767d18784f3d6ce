"""The subscription indexes of relevance by name; the brute-force one among them is the definition."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from nearcast.kinds.relevance import index as igpt_batch
from nearcast.kinds.relevance.kernels.score import APART, cosine, nearness, score_of
from nearcast.kinds.relevance.matcher import Matcher, Pairs, StandingSubscribers
from nearcast.kinds.relevance.vectors import Profiles, Vectors
from nearcast_papers.baselines import covering as ciq
from nearcast_papers.baselines import igpt


@dataclass(frozen=True)
class AllPairs:
    """Looks at every pair."""

    rows: np.ndarray

    def match(self, posts: Vectors, standing: StandingSubscribers, number: int) -> Pairs:
        s, found = standing.profiles, []
        for row in self.rows[standing.home[self.rows] == number].tolist():
            for post in range(len(posts)):
                alike = cosine(
                    s.words, s.weights, s.offsets[row], s.offsets[row + 1],
                    posts.terms, posts.weights, posts.offsets[post], posts.offsets[post + 1],
                )  # fmt: skip
                near = nearness(s.lon[row], s.lat[row], posts.lon[post], posts.lat[post], s.reach[row])
                score = score_of(s.alpha[row], near, alike)
                if alike != APART and score >= standing.theta[row]:
                    found.append((row, post, score))
        columns = list(zip(*found, strict=True)) or [(), (), ()]
        rows, which, scores = (np.array(c, t) for c, t in zip(columns, (np.int32, np.int32, float), strict=True))
        return Pairs(rows, which, scores, len(self.rows) * len(posts))

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes


def brute(profiles: Profiles, theta: np.ndarray) -> Matcher:
    return Matcher(profiles, theta, lambda profiles, theta, rows: AllPairs(rows))


MATCHERS: dict[str, Callable[[Profiles, np.ndarray], Matcher]] = {
    "batch": igpt_batch.build,
    "igpt": igpt.build,
    "ipt": partial(igpt.build, rules=igpt.INDIVIDUAL),
    "ciq": ciq.build,
    "brute": brute,
}
