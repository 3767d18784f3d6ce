"""The suite that every subscription index inherits: on any subscriptions and posts it gives the brute-force pairs,
each once.

An index meets its subscriptions in many ways: in one segment or several, overlaid, merged, written and mapped again,
with ends from later ops. Each way has to give the same pairs.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nearcast.common.expressions import And, Not, Or
from nearcast.common.geo.shapes import Circle, Polygon, Rect
from nearcast.common.op_schema import NEVER
from nearcast.storage.bundle import bundle_table, open_bundle
from nearcast.storage.files import write_table
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.subscriptions.brute_force import BruteForce
from nearcast.storage.subscriptions.filing import Filing
from nearcast.storage.subscriptions.kernels.register import file_codes
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Ends, Segment
from nearcast.storage.subscriptions.subscription_set import EndLog, SubscriptionSet
from tests.storage import cases
from tests.storage.cases import TAGS, TERMS, Post, Subscription, columns_of, phrase, rows_of, word

Pairs = Counter[tuple[int, int]]  # (post, seq of the subscription)

inherited = [HealthCheck.differing_executors, HealthCheck.too_slow]  # one test, run by several classes: that is meant
first_posts = st.one_of(st.just(NEVER), cases.times)
some_posts = st.lists(cases.posts, max_size=14)
some_subscriptions = st.lists(cases.subscriptions, max_size=12)


def pairs(found: Iterable[tuple[Rows, "np.ndarray", "np.ndarray"]]) -> Pairs:
    return Counter(
        (int(post), int(rows.seq[row]))
        for rows, posts, numbers in found
        for post, row in zip(posts, numbers, strict=True)
    )


def right_answer(parts: list[Rows], log: EndLog, first_post: int, posts: PostColumns) -> Pairs:
    """By brute force, the ends looked up one by one."""
    found = []
    for rows in parts:
        given = list(zip(log.key.tolist(), log.seq.tolist(), log.end.tolist(), strict=True))
        ends: dict[int, int] = {}
        for row, (key, seq) in enumerate(zip(rows.keys().tolist(), rows.seq.tolist(), strict=True)):
            for end in (e for k, s, e in given if k == key and s >= seq):
                ends[row] = min(end, ends.get(row, NEVER))
        moved = Ends.of(
            len(rows), np.array(sorted(ends), np.int64), np.array([ends[row] for row in sorted(ends)], np.int64)
        )
        matches = BruteForce(rows).match(posts, moved, first_post)
        found.append((rows, matches.posts, matches.rows))
    return pairs(found)


class SubscriptionIndexSuite:
    """Inherit it and say how the subscriptions are filed."""

    filing: Filing

    # -- the ways ------------------------------------------------------------------------------------------------------

    def one_by_one(self, parts: list[Rows], log: EndLog, first_post: int, posts: PostColumns) -> Pairs:
        found = []
        for segment in (Segment.build(rows, self.filing) for rows in parts):
            matches = segment.match(posts, log.of(segment), first_post)
            found.append((segment.rows, matches.posts, matches.rows))
        return pairs(found)

    def overlaid(self, parts: list[Rows], log: EndLog, first_post: int, posts: PostColumns) -> Pairs:
        segments = {uuid4().hex: Segment.build(rows, self.filing) for rows in parts}
        found = SubscriptionSet(segments, log, first_post).match(posts)
        return pairs((rows, matches.posts, matches.rows) for rows, matches in found)

    def overlaid_by_and_by(self, parts: list[Rows], log: EndLog, first_post: int, posts: PostColumns) -> Pairs:
        """As the pipeline meets them: each batch adds a segment to the overlay of the last."""
        segments = {uuid4().hex: Segment.build(rows, self.filing) for rows in parts}
        for some in range(2, len(segments)):
            SubscriptionSet(dict(list(segments.items())[:some]), log, first_post)
        found = SubscriptionSet(segments, log, first_post).match(posts)
        return pairs((rows, matches.posts, matches.rows) for rows, matches in found)

    def merged(self, parts: list[Rows], log: EndLog, first_post: int, posts: PostColumns) -> Pairs:
        return self.one_by_one([Rows.concat(parts)], log, first_post, posts)

    def folded(self, parts: list[Rows], log: EndLog, first_post: int, posts: PostColumns) -> Pairs:
        """Merged as the chores do it: the ends that ops gave, and those of FOR, become the rows' own."""
        ended = []
        for segment in (Segment.build(rows, self.filing) for rows in parts):
            stop = log.of(segment).applied(segment.rows, np.arange(len(segment)), first_post)
            life = segment.rows.life if first_post == NEVER else np.full(len(segment), NEVER)
            ended.append(Rows(**{**segment.rows.__dict__, "end": stop, "life": life}))
        return self.one_by_one([Rows.concat(ended)], EndLog.empty(), first_post, posts)

    def ways(self) -> list[Callable[[list[Rows], EndLog, int, PostColumns], Pairs]]:
        return [self.one_by_one, self.overlaid, self.overlaid_by_and_by, self.merged, self.folded]

    def check(self, subscriptions: list[Subscription], posts: list[Post]) -> Pairs:
        """That all subscriptions in one segment give the right pairs, which are returned."""
        rows, columns = rows_of(subscriptions), columns_of(posts)
        right = right_answer([rows], EndLog.empty(), NEVER, columns)
        assert self.one_by_one([rows], EndLog.empty(), NEVER, columns) == right
        return right

    # -- random subscriptions and posts --------------------------------------------------------------------------------

    @settings(suppress_health_check=inherited)
    @given(some_subscriptions, some_posts, first_posts)
    def test_any_subscriptions_give_the_brute_force_pairs(
        self, subscriptions: list[Subscription], posts: list[Post], first_post: int
    ) -> None:
        rows, columns = rows_of(subscriptions), columns_of(posts)
        right = right_answer([rows], EndLog.empty(), first_post, columns)
        assert self.one_by_one([rows], EndLog.empty(), first_post, columns) == right

    @settings(max_examples=40, suppress_health_check=inherited)
    @given(
        st.lists(st.lists(cases.subscriptions, min_size=1, max_size=5), min_size=1, max_size=4),
        st.lists(st.tuples(st.integers(0, 20), cases.times), max_size=6),
        some_posts,
        first_posts,
    )
    def test_segments_ended_overlaid_and_merged_give_the_same_pairs(
        self, groups: list[list[Subscription]], ended: list[tuple[int, int]], posts: list[Post], first_post: int
    ) -> None:
        parts, seq = [], 0
        for group in groups:
            parts.append(rows_of(group, seq))
            seq += len(group)
        everyone = Rows.join(parts)
        which = np.array([number % len(everyone) for number, _ in ended], np.int64)
        log = EndLog(everyone.keys()[which], everyone.seq[which], np.array([end for _, end in ended], np.int64))
        columns = columns_of(posts)
        right = right_answer(parts, log, first_post, columns)
        for way in self.ways():
            assert way(parts, log, first_post, columns) == right, way.__name__

    @settings(max_examples=30, suppress_health_check=inherited)
    @given(some_subscriptions, some_posts, st.lists(st.integers(0, 9), min_size=len(TERMS), max_size=len(TERMS)))
    def test_the_frequency_of_words_changes_no_answer(
        self, subscriptions: list[Subscription], posts: list[Post], counts: list[int]
    ) -> None:
        rows, columns = rows_of(subscriptions), columns_of(posts)
        known = np.array([count > 0 for count in counts])  # a count of 0: a term that no table has
        order = np.argsort(np.array(TERMS, np.uint64)[known])
        terms = np.array(TERMS, np.uint64)[known][order]
        code = file_codes(rows.code, rows.code_offsets, terms, np.array(counts, np.uint64)[known][order])
        refiled = Rows(**{**rows.__dict__, "code": code})
        right = right_answer([rows], EndLog.empty(), NEVER, columns)
        assert right_answer([refiled], EndLog.empty(), NEVER, columns) == right
        assert self.one_by_one([refiled], EndLog.empty(), NEVER, columns) == right

    @pytest.mark.parametrize("seed", [1, 2])
    def test_a_crowd_of_subscriptions_gives_the_brute_force_pairs(self, seed: int) -> None:
        subscriptions, posts = cases.crowd(seed, 300, 200)
        columns = columns_of(posts)
        parts = [rows_of(subscriptions[i : i + 60], i) for i in range(0, 300, 60)]
        log = EndLog(parts[1].keys()[::3], parts[1].seq[::3], np.full(20, 6))
        right = right_answer(parts, log, NEVER, columns)
        assert len(right) > 1000
        for way in self.ways():
            assert way(parts, log, NEVER, columns) == right, way.__name__

    def test_a_segment_written_and_mapped_again_gives_the_same_pairs(self, tmp_path: Path) -> None:
        subscriptions, posts = cases.crowd(3, 80, 60)
        subscriptions[0] = Subscription("a string", None, None)
        segment = Segment.build(rows_of(subscriptions), self.filing)
        write_table(tmp_path / "it.arrow", bundle_table(segment.arrays()))
        again = Segment.from_arrays(open_bundle(tmp_path / "it.arrow"))
        right = right_answer([rows_of(subscriptions)], EndLog.empty(), NEVER, columns_of(posts))
        matches = again.match(columns_of(posts))
        assert pairs([(again.rows, matches.posts, matches.rows)]) == right
        assert again.rows.id_text.to_pylist() == segment.rows.id_text.to_pylist()
        together = SubscriptionSet({uuid4().hex: again, uuid4().hex: again}, EndLog.empty())
        assert [len(part) for part, _ in together.parts] == [160]

    # -- edges ---------------------------------------------------------------------------------------------------------

    def test_no_posts_and_no_subscriptions_give_no_pairs(self) -> None:
        everything = [Subscription(1)]
        assert not self.check(everything, [])
        assert not self.check([], [Post(0.0, 0.0)])
        assert not self.check([], [])
        assert self.check(everything, [Post(0.0, 0.0)]) == Counter({(0, 0): 1})

    def test_places_on_the_edges_of_the_world_are_places_like_others(self) -> None:
        lons = (-180.0, np.nextafter(-180.0, 0.0), -0.0, 0.0, np.nextafter(180.0, 0.0), 180.0)
        lats = (-90.0, np.nextafter(-90.0, 0.0), 0.0, np.nextafter(90.0, 0.0), 90.0)
        posts = [Post(float(lon), float(lat)) for lon in lons for lat in lats]
        regions = [
            None, Rect(-180, -90, 180, 90), Rect(180, -90, -180, 90), Rect(179, -1, -179, 1), Rect(180, 0, 180, 0),
            Rect(-180, 0, -180, 0), Rect(-180, 90, 180, 90), Rect(0, -90, 0, -90), Rect(170, 80, -170, 90), Rect(0.1,
            0, 0, 1), Circle(180, 0, 1), Circle(-180, 0, 1), Circle(0, 90, 1), Circle(0, -90, 500), Circle(10, 5,
            20015.2), Polygon((((-180.0, -90.0), (180.0, -90.0), (180.0, 90.0), (-180.0, 90.0)),)), Polygon((((179.0,
            -1.0), (180.0, -1.0), (180.0, 1.0), (179.0, 1.0)),)),
        ]  # fmt: skip
        found = self.check([Subscription(i, region) for i, region in enumerate(regions)], posts)
        assert {seq for _, seq in found} == set(range(len(regions)))

    def test_a_place_on_the_border_of_cells_is_in_the_regions_on_both_sides(self) -> None:
        west, south, width, height = self.filing.extent
        posts, regions = [], []
        for level in (1, 3, 6, 12, 18):
            lon, lat = west + width * 3 / 2**level % width, south + height * 1 / 2**level
            d = width / 2**level / 3
            posts.append(Post(lon, lat))
            regions += [Rect(lon - d, lat - d, lon, lat), Rect(lon, lat, lon + d, lat + d), Rect(lon, lat, lon, lat)]
        legal = [r for r in regions if r.min_lon >= -180 and r.max_lon <= 180 and r.min_lat >= -90 and r.max_lat <= 90]
        found = self.check([Subscription(i, region) for i, region in enumerate(legal)], posts)
        assert {seq for _, seq in found} == set(range(len(legal)))

    def test_many_posts_at_one_place_each_find_all_its_subscriptions(self) -> None:
        posts = [Post(2.35, 48.86, terms=(TERMS[0],))] * 500
        subscriptions = [Subscription(i, Rect(2, 48, 3, 49), word(TERMS[0])) for i in range(40)]
        assert len(self.check(subscriptions[:4], posts[:30])) == 120
        segment = Segment.build(rows_of(subscriptions), self.filing)
        assert len(segment.match(columns_of(posts)).posts) == 500 * 40  # more than there is room for at first

    def test_one_post_may_satisfy_more_subscriptions_than_there_is_room_for(self) -> None:
        subscriptions = [Subscription(i, Circle(0, 0, 100)) for i in range(3000)]
        matches = Segment.build(rows_of(subscriptions), self.filing).match(
            columns_of([Post(50, 50), Post(0, 0), Post(0, 0)])
        )
        assert sorted(zip(matches.posts.tolist(), matches.rows.tolist(), strict=True)) == [
            (post, row) for post in (1, 2) for row in range(3000)
        ]

    def test_words_of_a_long_text_are_found_wherever_they_stand(self) -> None:
        filler = tuple(int(x) for x in np.random.default_rng(1).integers(1 << 20, 1 << 63, 5000))
        for length in (38, 39, 40, 41, 42, 5000):
            terms = (TERMS[0], *filler[: length - 3], TERMS[1], TERMS[2])
            found = self.check(
                [
                    Subscription(0, None, And((word(TERMS[0]), word(TERMS[2])))),
                    Subscription(1, None, phrase(TERMS[1], TERMS[2])),
                    Subscription(2, None, phrase(TERMS[2], TERMS[1])),
                    Subscription(3, None, And((word(filler[7]), Not(word(TERMS[3]))))),
                    Subscription(4, None, And((word(filler[8]), Not(word(TERMS[1]))))),
                    Subscription(5, None, phrase(*filler[:30])),
                ],
                [Post(1, 1, terms=terms)],
            )
            assert {seq for _, seq in found} == {0, 1, 3, 5}, length

    def test_no_phrase_runs_into_a_tag(self) -> None:
        post = Post(1, 1, terms=(TERMS[0], TERMS[1], 0, TAGS[0], TAGS[1]))
        found = self.check(
            [
                Subscription(0, None, phrase(TERMS[1], TAGS[0])),
                Subscription(1, None, phrase(TERMS[0], TERMS[1])),
                Subscription(2, None, word(TAGS[1])),
                Subscription(3, None, Not(word(TAGS[1]))),
            ],
            [post],
        )
        assert {seq for _, seq in found} == {1, 2}

    def test_alternatives_that_an_index_takes_for_one_another_give_one_pair(self) -> None:
        """Terms that begin with the same bits, or with those that stand for no word at all."""
        alike = [
            Or((word(TERMS[0]), word(TERMS[1]))),
            Or((word(TERMS[4]), Not(word(TERMS[5])))),
            Or(tuple(map(word, TERMS))),
        ]
        posts = [
            Post(1, 1, terms=terms) for terms in ((TERMS[1], TERMS[0]), TERMS, (TERMS[4],), (TERMS[5], TERMS[4]), ())
        ]
        found = self.check([Subscription(i, None, text) for i, text in enumerate(alike)], posts)
        assert set(found.values()) == {1}

    def test_a_replaced_subscription_gives_way_to_the_next_at_the_same_moment(self) -> None:
        old, new = rows_of([Subscription("q", None, word(TERMS[0]))], 0), rows_of([Subscription("q", start=6)], 1)
        log = EndLog(old.keys(), old.seq, np.array([6]))
        columns = columns_of([Post(1, 1, ts, (TERMS[0],)) for ts in (5, 6, 7)])
        for way in self.ways():
            assert way([old, new], log, NEVER, columns) == Counter({(0, 0): 1, (1, 1): 1, (2, 1): 1}), way.__name__

    def test_for_counts_from_the_start_or_else_from_the_first_post(self) -> None:
        rows = rows_of(
            [Subscription(0, life=3), Subscription(1, start=2, life=3), Subscription(2, start=2, end=4, life=9)]
        )
        columns = columns_of([Post(1, 1, ts) for ts in range(10)])
        for first_post, last in ((0, 2), (4, 6), (NEVER, 9)):
            right = Counter([*((ts, 0) for ts in range(last + 1)), (2, 1), (3, 1), (4, 1), (2, 2), (3, 2)])
            for way in self.ways():
                assert way([rows], EndLog.empty(), first_post, columns) == right, (way.__name__, first_post)
