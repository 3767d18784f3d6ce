"""Whatever the router, the outbox and the answers are what the stream means; also when another takes over."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nearcast.engine.align import align
from nearcast.engine.begin import begin
from nearcast.engine.settings import Settings
from nearcast.partitioning.routers.registry import Router, routers
from nearcast.reader.reader import Reader
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import SUBSCRIPTIONS
from tests.engine import harness
from tests.engine.harness import NOON, Streams, check, check_nearest, run, start, step
from tests.engine.oracle import Batch, Oracle
from tests.engine.test_batches import MEANINGS, post, subscribe
from tests.marks import slow
from tests.partitioning.routers.made import MADE

SPATIAL = ("grid", "everyone", "agrid", "quad", "kd", "rtree", "str", "aqwa")
FIRST_HAND = ("agrid", "quad", "qt", "kdt", *MADE)  # the papers' own; the baselines are built of the same nodes


def marked(names: Iterable[str]) -> list[Any]:
    """Names as parameters, the baselines among them as slow ones."""
    return [each for name in names for each in ([name] if name in FIRST_HAND else slow(name))]


ALL = (*routers(), *MADE)
NAMES, TEXTUAL = marked(ALL), marked(name for name in ALL if name not in SPATIAL)


@pytest.fixture(autouse=True)
def made_by_hand() -> Iterator[None]:
    """Partitions with nodes of every kind can be asked for like any router."""
    routers().update({name: Router(name, builder) for name, builder in MADE.items()})
    yield
    for name in MADE:
        del routers()[name]


def random_batches(seed: int, count: int, keep: str = "posts") -> tuple[list[Batch], Oracle]:
    return harness.random_batches(Streams(seed, nearest=0.2), count, keep)


def sample(batches: list[Batch]) -> list[dict[str, Any]]:
    """The first post first, which is when the oracle's stream begins; then some that show what words there are."""
    first = {"id": 1, "ts": NOON, "lon": 0.0, "lat": 0.0, "text": "the first post"}
    return [first, *(each for batch in batches for each in batch.posts[:20])]


@pytest.mark.parametrize("name", NAMES)
def test_any_stream_gives_what_it_means(name: str, tmp_path: Path) -> None:
    batches, oracle = random_batches(311, 9)
    assert len(oracle.results) > 100
    state = run(tmp_path, Settings(workers=3, router=name), batches, sample=sample(batches))
    check(state, oracle)
    check_nearest(state, oracle)
    found = sorted((str(row["id"]), row["ts"]) for row in Reader(state).search("SELECT * FROM stream"))
    assert found == sorted((str(each["id"]), each["ts"]) for each in oracle.posts)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_any_stream_gives_what_it_means_where_no_posts_are_kept(name: str, tmp_path: Path) -> None:
    batches, oracle = random_batches(43, 8, keep="none")
    assert len(oracle.results) > 50
    check(run(tmp_path, Settings(workers=3, keep="none", router=name), batches, sample=sample(batches)), oracle)


@pytest.mark.parametrize("meaning", list(MEANINGS))
@pytest.mark.parametrize("name", ["by_query", "by_post"])
def test_meaning(name: str, meaning: str, tmp_path: Path) -> None:
    batches, _ = MEANINGS[meaning]
    oracle = Oracle(NOON).run(batches)
    check(run(tmp_path, Settings(workers=3, router=name), batches, sample=sample(batches)), oracle)


WORDS = [f"word{number}" for number in range(12)]


@pytest.mark.parametrize("keep", ["posts", "none"])
@pytest.mark.parametrize("name", TEXTUAL)
def test_a_duplicate_with_other_words_is_one(name: str, keep: str, tmp_path: Path) -> None:
    """It may go to other workers than the first copy, in its batch or later; each word has a subscription."""
    ops = [subscribe(word, f"SELECT * FROM stream WHERE text CONTAINS '{word}'") for word in WORDS]
    copies = [post(1, 1, word) for word in WORDS]
    batches = [Batch(ops), Batch([], copies[:6]), Batch([], copies[6:]), Batch([], [post(2, 2, " ".join(WORDS))])]
    oracle = Oracle(NOON, keep).run(batches)
    assert {result[:2] for result in oracle.results} == {("word0", 1), *((word, 2) for word in WORDS)}
    state = run(tmp_path, Settings(workers=5, router=name, keep=keep), batches, sample=[*sample(batches), *copies])
    check(state, oracle)
    assert state.newest().counts["duplicates"] == 11


@pytest.mark.parametrize("name", TEXTUAL)
def test_two_versions_of_one_subscription_give_a_post_once(name: str, tmp_path: Path) -> None:
    """The later began in the past, and their words lead to different workers."""
    both = " ".join(WORDS)
    batches = [Batch([subscribe("q", f"SELECT * FROM stream WHERE text CONTAINS '{WORDS[0]}' FOR 9 MINUTES", 0)])]
    batches.append(Batch([], [post(1, 20, both)]))
    for number, word in enumerate(WORDS[1:]):
        sql = f"SELECT * FROM stream WHERE text CONTAINS '{word}' FOR 9 MINUTES"
        batches.append(Batch([subscribe("q", sql, 0)], [post(10 + number, 5, both)]))
    oracle = Oracle(NOON).run(batches)
    assert len(oracle.results) == 11
    check(
        run(tmp_path, Settings(workers=5, router=name), batches, sample=[*sample(batches), *batches[1].posts]), oracle
    )


@pytest.mark.parametrize("keep", [*slow("posts"), "none"])
def test_another_router_may_take_over_between_batches(keep: str, tmp_path: Path) -> None:
    batches, oracle = random_batches(51, 2 * len(FIRST_HAND), keep)
    state, settings = StateDirectory(tmp_path), Settings(workers=3, keep=keep)
    start(state, settings, sample(batches))
    for number, batch in enumerate(batches):
        settings = replace(settings, router=FIRST_HAND[number // 2], workers=2 + number % 3)
        begin(state, settings)
        align(state, settings)
        step(state, settings, batch)
    check(state, oracle)
    if keep == "posts":
        check_nearest(state, oracle)


@pytest.mark.parametrize("name", TEXTUAL)
def test_subscriptions_are_found_after_merging_though_other_words_are_rare_now(name: str, tmp_path: Path) -> None:
    """Each is for two words, of which the one that was rare when it came is the frequent one in the end."""
    rare, frequent = WORDS[:6], WORDS[6:]
    pairs = [(a, b) for a in rare for b in frequent]
    flood = [post(number, 1, " ".join(frequent)) for number in range(20)]
    batches = [Batch([], flood)]
    for number in range(12):
        some = pairs[3 * number : 3 * number + 3]
        ops = [subscribe(f"{a} {b}", f"SELECT * FROM stream WHERE text CONTAINS '{a} {b}'") for a, b in some]
        posts = [post(1000 * number + n, 2, " ".join(rare)) for n in range(100, 110)]
        batches += [Batch(ops), Batch([], posts)]
    batches.append(Batch([], [post(99999, 60, " ".join(WORDS))]))
    oracle = Oracle(NOON).run(batches)
    state = run(tmp_path, Settings(workers=2, router=name), batches, sample=[*sample([]), *batches[-1].posts])
    merged = [ref for ref in state.newest().of(SUBSCRIPTIONS) if "folded" in ref.facts]
    assert merged
    check(state, oracle)
