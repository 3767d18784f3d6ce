"""A stream of posts with given scores, in plain Python: what its subscribers' buffers must be after every batch."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from nearcast.kinds.relevance.skyband import BufferArrivals, Buffers, Refills, Step, advance, refill, restore, whole
from nearcast.kinds.relevance.skyband_policy import Policy
from tests.oracles.relevance import Post, Taste, dominates, window

FIRST = 2**32 - 20  # so that the low 32 bits of the numbers begin again in most runs
Scored = tuple[float, Post]


@dataclass(frozen=True)
class Shape:
    """What a random run is like."""

    seed: int
    batches: int = 12
    most_posts: int = 6
    levels: int = 0  # different scores; 0: any
    late: float = 0.2  # share of posts before the clock
    still: float = 0.3  # share of posts at the very time of the clock
    deletes: float = 0.1  # of batches
    renewals: float = 0.1  # of batches
    wordless: float = 0.3  # share of pairs without a common word
    ks: tuple[int, ...] = (1, 2, 3, 7)
    windows: tuple[tuple[int | None, int | None], ...] = ((8, None), (1, None), (20, None), (None, 6), (None, 15))


class World:
    def __init__(self, shape: Shape, policy: Policy) -> None:
        self.shape, self.policy = shape, policy
        self.rng = np.random.default_rng(shape.seed)
        self.posts: list[Post] = []
        self.deleted: set[int] = set()  # numbers
        self.clock = 0
        self.dropped: set[int] = set()
        self.profiles: list[Taste | None] = []
        self.scores: list[dict[int, float]] = []
        self.buffers = Buffers.new(np.empty(0, np.int32), np.empty(0, np.int32))
        self.version = 0
        self.answers: list[list[int]] = []
        self.place: dict[int, int] = {}  # id of a post → its number
        self.came: list[dict[int, float]] = []  # what came to each row since it was filled, or since it was saved
        self.filled: set[int] = set()
        self.saved = (self.buffers.arrays(), 0)
        self.add(int(self.rng.integers(1, 6)))

    def add(self, count: int) -> None:
        k = self.rng.choice(self.shape.ks, count).astype(np.int32)
        kinds = self.rng.integers(0, len(self.shape.windows), count).astype(np.int32)
        self.buffers.add(k, kinds)
        for each, kind in zip(k, kinds, strict=True):
            posts, length = self.shape.windows[kind]
            self.profiles.append(Taste(0, 0, frozenset(), 0.5, 1.0, int(each), posts, length))
            self.scores.append(self.draw(range(FIRST, FIRST + len(self.posts))))
            self.answers.append([])
            self.came.append({})

    def end(self, row: int) -> None:
        self.profiles[row], self.answers[row] = None, []
        self.buffers.end(np.array([row]))

    def draw(self, numbers: range) -> dict[int, float]:
        values = self.rng.random(len(numbers))
        if self.shape.levels:
            values = np.floor(values * self.shape.levels) / self.shape.levels
        common = self.rng.random(len(numbers)) >= self.shape.wordless
        return {number: float(v) for number, v, has in zip(numbers, values, common, strict=True) if has}

    def arrive(self) -> range:
        """New posts: their numbers."""
        begin = len(self.posts)
        for _ in range(int(self.rng.integers(0, self.shape.most_posts + 1))):
            kind, now = self.rng.random(), self.clock
            if kind < self.shape.late:
                now -= int(self.rng.integers(1, 12))
            elif kind > self.shape.late + self.shape.still:
                now += int(self.rng.integers(1, 5))
            # ids are as good as random, none twice
            self.place[len(self.posts) * 7919 % 10007] = FIRST + len(self.posts)
            self.posts.append(Post(len(self.posts) * 7919 % 10007, now, 0, 0, ()))
            self.clock = max(self.clock, now)
        numbers = range(FIRST + begin, FIRST + len(self.posts))
        for scores in self.scores:
            scores |= self.draw(numbers)
        return numbers

    def inside(self, profile: Taste) -> set[int]:
        """Numbers of the window, those of deleted posts included."""
        return {self.place[post.id] for post in window(self.posts, profile, self.clock)}

    def ledger(self) -> SimpleNamespace:
        there = [n for n in range(FIRST, FIRST + len(self.posts)) if n not in self.dropped]
        base = there[0] if there else FIRST + len(self.posts)
        span = FIRST + len(self.posts) - base
        ts, order = np.zeros(span, np.int64), np.full(span, -1, np.int64)
        by_order = sorted(there, key=lambda n: (self.posts[n - FIRST].ts, self.posts[n - FIRST].id))
        for number in there:
            ts[number - base] = self.posts[number - FIRST].ts
        for rank, number in enumerate(by_order):
            order[number - base] = rank
        return SimpleNamespace(base=base, ts=ts, order=order, by_order=np.array(by_order, np.int64))

    def bounds(self, ledger: SimpleNamespace) -> np.ndarray:
        out = []
        for posts, length in self.shape.windows:
            in_order = [self.posts[n - FIRST].ts for n in ledger.by_order]
            since = 0 if length is None else sum(ts <= self.clock - length for ts in in_order)
            out.append(since if posts is None else max(len(in_order) - posts, 0))
        return np.array(out, np.int64)

    def scored(self, row: int) -> list[Scored]:
        """What a search may find, in answer order."""
        profile = self.profiles[row]
        assert profile is not None
        numbers = (self.inside(profile) - self.deleted) & self.scores[row].keys()
        found = [(self.scores[row][n], self.posts[n - FIRST]) for n in numbers]
        return sorted(found, key=lambda each: (-each[0], -each[1].ts, each[1].id))

    def numbers(self, found: list[Scored]) -> list[int]:
        return [self.place[post.id] for _, post in found]

    def search(self, rows: np.ndarray) -> Refills:
        """Refills, as the policy wants them."""
        thetas, starts, numbers, scores = [], [0], [], []
        for row in rows:
            k, found = self.buffers.k[[row]], self.scored(row)
            asked = self.policy.wanted(k, self.buffers.window[[row]])
            while True:
                best = found[: asked[0]]
                best += [each for each in found[asked[0] :] if each[0] == best[-1][0]]
                each = self.policy.thetas(k, np.array([0, len(best)]), np.array([s for s, _ in best]), asked)
                if not np.isnan(each[0]):
                    break
                asked = asked * 2
            kept = [pair for pair in best if pair[0] >= each[0]]
            thetas.append(float(each[0]))
            starts.append(starts[-1] + len(kept))
            numbers += self.numbers(kept)
            scores += [score for score, _ in kept]
        low = (np.array(numbers, np.int64) & 0xFFFFFFFF).astype(np.uint32)
        version = np.full(len(rows), self.version, np.int32)
        return Refills(rows, np.array(thetas), version, np.array(starts, np.int64), low, np.array(scores))

    def step(self) -> None:
        """A batch, and everything that must be true after it."""
        shape, buffers = self.shape, self.buffers
        if self.rng.random() < 0.15:
            self.add(1)
        if self.rng.random() < 0.05:
            self.end(int(self.rng.integers(len(self.profiles))))
        standing = [row for row, profile in enumerate(self.profiles) if profile is not None]
        came = self.arrive()
        deleted: set[int] = set()
        if self.rng.random() < shape.deletes and self.posts:
            deleted = {FIRST + int(i) for i in self.rng.integers(0, len(self.posts), 2)} - self.dropped - self.deleted
        renew = np.empty(0, np.int64)
        if self.rng.random() < shape.renewals and standing:
            renew = np.unique(self.rng.choice(standing, 2)).astype(np.int64)
            self.version += 1
        pairs = [
            (row, number, self.scores[row][number])
            for row in standing
            for number in self.rng.permutation(came)
            if self.scores[row].get(number, -1.0) >= buffers.theta[row]
        ]
        pairs += [pair for pair in pairs if self.rng.random() < 0.1]  # found by two workers
        pairs.sort(key=lambda pair: pair[0])
        arrivals = BufferArrivals(
            np.array([row for row, _, _ in pairs], np.int64),
            (np.array([n for _, n, _ in pairs], np.int64) & 0xFFFFFFFF).astype(np.uint32),
            np.array([score for _, _, score in pairs], np.float64),
        )
        ledger = self.ledger()
        bounds = self.bounds(ledger)
        unfilled = set(buffers.stale().tolist()) | set(renew.tolist())
        gone = np.array(sorted(deleted), np.int64)
        inside = [self.inside(profile) if profile else set() for profile in self.profiles]
        live = [len(set(self.members(row, ledger)) & inside[row]) for row in range(len(buffers))]
        before = [(buffers.theta[row], live[row] < buffers.k[row]) for row in range(len(buffers))]
        held = {row for row in standing if set(self.members(row, ledger)) & deleted & inside[row]}
        self.deleted |= deleted
        step = advance(buffers, ledger, bounds, arrivals, self.policy, deleted=gone, renew=renew)
        self.check_short(step, standing, before, held, unfilled)
        for row in renew:
            self.scores[row] = self.draw(range(FIRST, FIRST + len(self.posts)))
        refills = self.search(step.short)
        anew = refill(buffers, ledger, bounds, refills, self.policy)
        assert not len(anew.short)
        for row, number, score in pairs:
            self.came[row][number] = score
        for i, row in enumerate(refills.rows):
            some = slice(refills.starts[i], refills.starts[i + 1])
            numbers = whole(refills.numbers[some], ledger).tolist()
            self.came[row] = dict(zip(numbers, refills.scores[some].tolist(), strict=True))
            self.filled.add(int(row))
        for row in standing:
            self.check(row, ledger, [step, anew])
        if self.rng.random() < 0.3:
            kept = [self.inside(Taste(0, 0, frozenset(), 0, 1, 1, *kind)) for kind in shape.windows]
            self.dropped = set(range(FIRST, FIRST + len(self.posts))) - set().union(*kept)

    def save(self) -> None:
        """Write the buffers down, and begin a new log."""
        self.saved = ({name: array.copy() for name, array in self.buffers.arrays().items()}, len(self.buffers))
        self.came, self.filled = [{} for _ in self.came], set()

    def restored(self) -> Buffers:
        """The buffers that were written down, brought up to now by the log."""
        arrays, rows = self.saved
        again = Buffers.from_arrays(arrays)
        again.add(self.buffers.k[rows:], self.buffers.window[rows:])
        ended = [row for row, profile in enumerate(self.profiles) if profile is None]
        again.end(np.array(ended, np.int64))
        ledger = self.ledger()
        standing = set(range(len(again))) - set(ended)
        for some, anew in ((standing & self.filled, True), (standing - self.filled, False)):
            of = np.array(sorted(some), np.int64)
            numbers = np.array([n for row in of for n in self.came[row]], np.int64)
            scores = np.array([score for row in of for score in self.came[row].values()])
            starts = np.concatenate(([0], np.cumsum([len(self.came[row]) for row in of]))).astype(np.int64)
            low = (numbers & 0xFFFFFFFF).astype(np.uint32)
            given = Refills(of, self.buffers.theta[of], self.buffers.version[of], starts, low, scores)
            gone = np.array(sorted(self.deleted), np.int64)
            dominance = self.policy.dominance
            restore(again, ledger, self.bounds(ledger), given, anew=anew, deleted=gone, dominance=dominance)
        return again

    def members(self, row: int, ledger: SimpleNamespace) -> list[int]:
        _, numbers, _ = self.buffers.members(np.array([row]))
        return [int(n) for n in whole(numbers, ledger)]

    def check_short(
        self, step: Step, standing: list[int], before: list[tuple[float, bool]], held: set[int], unfilled: set[int]
    ) -> None:
        """Theorem 6: a row falls short just when fewer than k posts of its window are at or above theta."""
        expected = set(unfilled)
        for row in set(standing) - unfilled:
            theta, fewer = before[row]
            above = [each for each in self.scored(row) if each[0] >= theta]
            profile = self.profiles[row]
            assert profile is not None
            if (theta > 0 and len(above) < profile.k) or (row in held and not (theta == 0 and fewer)):
                expected.add(row)
        assert set(step.short.tolist()) == expected

    def check(self, row: int, ledger: SimpleNamespace, steps: list[Step]) -> None:
        profile, theta = self.profiles[row], self.buffers.theta[row]
        assert profile is not None
        found = self.scored(row)
        above = [each for each in found if each[0] >= theta]
        if self.policy.dominance:
            above = [each for each in above if sum(dominates(other, each) for other in above) < profile.k]
        _, low, scores = self.buffers.members(np.array([row]))
        assert list(zip(whole(low, ledger), scores, strict=True)) == list(
            zip(self.numbers(above), [score for score, _ in above], strict=True)
        )
        best = self.numbers(found[: profile.k])
        _, numbers, _ = self.buffers.answers(np.array([row]))
        assert whole(numbers, ledger).tolist() == best
        assert theta <= (found[profile.k - 1][0] if len(found) >= profile.k else 0.0)
        most, stay = (int(each[0]) for each in self.policy.room(np.array([profile.k]), self.buffers.window[[row]]))
        assert len(above) <= most or above[stay - 1][0] == above[-1][0]
        self.check_changes(row, best, ledger, steps)

    def check_changes(self, row: int, best: list[int], ledger: SimpleNamespace, steps: list[Step]) -> None:
        """What entered and left is the difference of the answers, and told by one step."""
        was = self.answers[row]
        entered, left = [], []
        for step in steps:
            for changes, told in ((step.entered, entered), (step.left, left)):
                mine = changes.rows == row
                told += list(zip(whole(changes.numbers[mine], ledger).tolist(), changes.ranks[mine], strict=True))
                if changes is step.entered:
                    known = [self.scores[row][int(n)] for n in whole(changes.numbers[mine], ledger)]
                    assert changes.scores[mine].tolist() == known
        assert sorted(entered) == sorted((n, rank) for rank, n in enumerate(best) if n not in was)
        assert sorted(left) == sorted((n, rank) for rank, n in enumerate(was) if n not in best)
        self.answers[row] = best
