"""A stream over standing subscribers in one process: arrivals and expiries timed apart (Skype §8.1).

The window is full before the clock starts. Then posts come a batch at a time: they are matched, the pairs go to the
buffers (together the paper's AMP), then as many posts expire as the window says, and buffers that have become short
are filled from the window (its EMP). Times are those of the core, not of the wall.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from time import process_time
from typing import Any

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.kinds.relevance.matcher import Matcher
from nearcast.kinds.relevance.skyband import BufferArrivals, Buffers, Refills, advance, refill
from nearcast.kinds.relevance.skyband_policy import CostBased, Policy
from nearcast.kinds.relevance.threshold_cost import Rates
from nearcast.kinds.relevance.vectors import Idf, Profiles, Vectors
from nearcast.kinds.relevance.window_index import WindowPosts
from nearcast_papers.baselines.matchers import MATCHERS
from nearcast_papers.benchmarks.figures import rounded
from nearcast_papers.benchmarks.topk_data import PostTexts, TopkWorld, statistics, subscribers, vectors

CHECKED = 100  # subscribers whose answers are looked up at the end
AT_ONCE = 50_000  # buffers filled together
NONE = np.empty(0, np.int64)
MINUTE = 60_000_000
RHYTHM = 0.5  # of the mean, by which the rate of posts goes up and down


@dataclass(frozen=True)
class SlidingWindow:
    """The last so many posts; or, where `timed`, the time that so many take on average."""

    posts: int
    timed: bool = False

    @property
    def length(self) -> int:
        return self.posts * MINUTE

    def times(self, count: int) -> np.ndarray:
        """Times of posts: a minute each, or with ups and downs, one and a half of them in a window."""
        steady = np.arange(1, count + 1, dtype=np.float64)
        if not self.timed:
            return (steady * MINUTE).astype(np.int64)
        wave = 2 * np.pi * 1.5 / self.posts
        return ((steady + RHYTHM / wave * np.sin(wave * steady)) * MINUTE).astype(np.int64)

    def bound(self, ts: np.ndarray, count: int) -> int:
        """The first post inside, of `count` that have come."""
        if not self.timed or not count:
            return max(0, count - self.posts)
        return int(np.searchsorted(ts[:count], ts[count - 1] - self.length, side="right"))

    def policy(self, policy: Policy, ts: np.ndarray, count: int) -> Policy:
        """With the shares of arrivals and expiries of late, where the window is one of time (§6.3)."""
        if not self.timed or not isinstance(policy, CostBased):
            return policy
        rates = Rates.of(ts[:count], int(ts[count - 1]), np.array([self.length]), self.length // 10)
        return CostBased(policy.cost_of_a_search, rates.arrivals, rates.expiries, policy.most, policy.fill)


@dataclass(frozen=True)
class PlainLedger:
    """Posts that come in order of their times."""

    base: int
    ts: np.ndarray
    order: np.ndarray

    @property
    def by_order(self) -> np.ndarray:
        return self.order

    @classmethod
    def of(cls, ts: np.ndarray) -> "PlainLedger":
        return cls(0, frozen(ts), frozen(np.arange(len(ts))))


@dataclass(frozen=True)
class TopkSetting:
    """Subscribers, and the posts of a full window and of those that follow."""

    idf: Idf
    profiles: Profiles
    posts: Vectors
    window: SlidingWindow

    @property
    def first(self) -> int:
        """Posts in the window when the clock starts; one of time is somewhat more than full."""
        return self.window.posts * 3 // 2 if self.window.timed else self.window.posts

    @classmethod
    def make(
        cls, count: int, window: SlidingWindow, posts: int, words: tuple[int, int] = (1, 5), k: int = 20,
        zipf: bool = False, seed: int = 1, post_words: int = 9,
    ) -> "TopkSetting":  # fmt: skip
        """Subscribers as §8.1.1 has them: from a post each, its place and some of its words, any alpha. With `zipf`,
        their words are drawn from all words instead, the r-th most frequent as 1 / r (Figure 19).
        """
        world = TopkWorld(seed, words=post_words)
        first = window.posts * 3 // 2 if window.timed else window.posts
        texts = world.texts(first + posts, 1)
        idf = statistics(texts)
        asking = world.texts(count, 2)
        asking = drawn(asking, idf, words, seed) if zipf else asking
        return cls(idf, subscribers(asking, idf, seed, words, k), vectors(texts, idf), window)


def drawn(texts: PostTexts, idf: Idf, words: tuple[int, int], seed: int) -> PostTexts:
    """The places of posts, with words of Zipf's law."""
    rng = np.random.default_rng((seed, 4))
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(rng.integers(words[0], words[1] + 1, len(texts)), out=offsets[1:])
    share = np.cumsum(1.0 / np.arange(1, len(idf.term) + 1))
    ranks = np.searchsorted(share, rng.random(offsets[-1]) * share[-1])
    return PostTexts(texts.lon, texts.lat, idf.term[np.argsort(-idf.count, kind="stable")][ranks], offsets)


@dataclass
class CoreClock:
    """Seconds of the core by name."""

    seconds: dict[str, float] = field(default_factory=dict)

    def of(self, name: str, work: Callable[[], Any]) -> Any:
        began = process_time()
        done = work()
        self.seconds[name] = self.seconds.get(name, 0.0) + process_time() - began
        return done


class BufferedStream:
    """Buffers of one policy over one setting, kept fresh with the batched index."""

    def __init__(self, setting: TopkSetting, policy: Policy) -> None:
        self.setting, self.policy = setting, policy
        self.ts = setting.window.times(len(setting.posts))
        self.window = WindowPosts()
        self.buffers = Buffers.new(setting.profiles.k, np.zeros(len(setting.profiles), np.int32))
        self.clock = CoreClock()
        self.count = setting.first
        self.refilled = self.pairs = 0
        self._add(0, self.count)
        self._fill(self.buffers.stale(), self._policy())
        self.filling = self.clock.seconds.pop("refill")
        self.matcher: Matcher = MATCHERS["batch"](setting.profiles, self.buffers.theta)
        self.sizes = [float(self.buffers.size.mean())]
        self.clock.seconds.clear()
        self.refilled = 0

    def batch(self, posts: int) -> None:
        """So many posts come, and what is too old goes."""
        setting, buffers, clock = self.setting, self.buffers, self.clock
        before, self.count = self.count, self.count + posts
        policy = self._policy()
        came = setting.posts.take(np.arange(before, self.count))
        self._add(before, self.count)
        ledger, was = self._ledger(), setting.window.bound(self.ts, before)
        found = clock.of("match", lambda: self.matcher.match(came))

        def arrive() -> np.ndarray:
            order = np.argsort(found.rows, kind="stable")
            numbers = (before + found.posts[order]).astype(np.uint32)
            arrivals = BufferArrivals(found.rows[order].astype(np.int64), numbers, found.scores[order])
            moved: np.ndarray = advance(buffers, ledger, np.array([was]), arrivals, policy).moved
            return moved

        moved = clock.of("arrive", arrive)
        step = clock.of("expire", lambda: advance(buffers, ledger, self._bounds(), BufferArrivals.none(), policy))
        self._fill(step.short, policy)
        rows = np.unique(np.concatenate([moved, step.moved, step.short]))
        clock.of("thresholds", lambda: self.matcher.set_theta(rows, buffers.theta[rows]))
        self.pairs += len(found)
        self.sizes.append(float(buffers.size.mean()))

    def _policy(self) -> Policy:
        return self.setting.window.policy(self.policy, self.ts, self.count)

    def _ledger(self) -> PlainLedger:
        return PlainLedger.of(self.ts[: self.count])

    def _bounds(self) -> np.ndarray:
        return np.array([self.setting.window.bound(self.ts, self.count)])

    def _add(self, first: int, end: int) -> None:
        some = self.setting.posts.take(np.arange(first, end))
        self.clock.of("window", lambda: self.window.add(some, first))
        self.clock.of("window", lambda: self.window.drop(int(self._bounds()[0])))

    def _fill(self, rows: np.ndarray, policy: Policy) -> None:
        """Fill buffers from the posts of the window (Algorithm 2)."""
        k = self.setting.profiles.k[rows]
        wanted = np.asarray(policy.wanted(k, np.zeros(len(rows), np.int64)), np.int64)
        for first in range(0, len(rows), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            self.clock.of("refill", partial(self._refill, rows[some], wanted[some], policy))
        self.refilled += len(rows)

    def _refill(self, rows: np.ndarray, wanted: np.ndarray, policy: Policy) -> None:
        profiles, ledger, bounds = self.setting.profiles, self._ledger(), self._bounds()
        while len(rows):
            found = self.window.best(profiles, rows, wanted, np.full(len(rows), bounds[0]), ledger, NONE)
            theta = policy.thetas(profiles.k[rows], found.starts, found.scores, wanted)
            enough = ~np.isnan(theta)
            sizes = np.diff(found.starts)
            kept = found.scores >= np.repeat(theta, sizes)  # of those that are not enough, none
            starts = np.concatenate(([0], np.cumsum(kept)))[found.starts]
            starts = np.append(starts[:-1][enough], starts[-1])
            numbers, version = found.numbers[kept].astype(np.uint32), np.ones(int(enough.sum()), np.int32)
            given = Refills(rows[enough], theta[enough], version, starts, numbers, found.scores[kept])
            refill(self.buffers, ledger, bounds, given, policy)
            rows, wanted = rows[~enough], 2 * wanted[~enough]

    def check(self) -> int:
        """How many subscribers were looked up in the window; an error if an answer differs."""
        profiles, rows = (
            self.setting.profiles,
            np.unique(np.linspace(0, len(self.buffers) - 1, CHECKED).astype(np.int64)),
        )
        since = np.full(len(rows), self._bounds()[0])
        found = self.window.best(profiles, rows, profiles.k[rows], since, self._ledger(), NONE)
        starts, numbers, scores = self.buffers.answers(rows)
        for i, row in enumerate(rows):
            end = found.starts[i] + min(profiles.k[row], found.starts[i + 1] - found.starts[i])
            right = slice(found.starts[i], end)
            mine = slice(starts[i], starts[i + 1])
            if not np.array_equal(found.numbers[right], numbers[mine]) or not np.array_equal(
                found.scores[right], scores[mine]
            ):
                raise AssertionError(f"the answer of subscriber {row} is not that of the window")
        return len(rows)


def measure(setting: TopkSetting, policy: Policy, batch: int) -> tuple[dict[str, Any], BufferedStream]:
    """Figures a post, in core-microseconds, and the stream as it was left."""
    stream = BufferedStream(setting, policy)
    posts = len(setting.posts) - setting.first
    for first in range(0, posts, batch):
        stream.batch(min(batch, posts - first))
    micros = {name: seconds / posts * 1e6 for name, seconds in stream.clock.seconds.items()}
    arrival = micros["match"] + micros["arrive"]
    expiry = micros["expire"] + micros.get("refill", 0.0) + micros["thresholds"]
    figures = {
        "us_a_post": arrival + expiry,
        "arrival_us": arrival,
        "expiry_us": expiry,
        **{f"{name}_us": micros.get(name, 0.0) for name in ("match", "arrive", "expire", "refill", "window")},
        "refills_a_post": stream.refilled / posts,
        "pairs_a_post": stream.pairs / posts,
        "buffer": float(np.mean(stream.sizes)),
        "buffer_bytes": stream.buffers.nbytes / len(stream.buffers),
        "filling_us_a_subscriber": stream.filling / len(stream.buffers) * 1e6,
        "answers_checked": stream.check(),
    }
    return {name: value if isinstance(value, int) else rounded(value) for name, value in figures.items()}, stream
