"""Keyword lists that grow with the stream: kept in the state, known to the next batch, and no answer changes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine.batch import BatchPlan
from nearcast.engine.keyword_lists import FILES
from nearcast.engine.rebalancing import adjust
from nearcast.engine.settings import Settings
from nearcast.partitioning.moves import Loads, Move
from nearcast.partitioning.partition import BY_POST, Partition
from nearcast.partitioning.router_sample import RouterSample
from nearcast.partitioning.routers.registry import Router, routers
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import KEYWORDS
from tests.engine.harness import NOON, check, check_nearest, ops_table, run, start, step
from tests.engine.oracle import Batch, Oracle
from tests.engine.test_batches import post, subscribe
from tests.engine.test_every_router import random_batches
from tests.partitioning.routers.made import partition
from tests.partitioning.routers.twin import keywords_of

FIRST = {"id": 0, "ts": NOON, "lon": 0.0, "lat": 0.0, "text": "the first post"}


def term(word: str) -> int:
    return int(Tokenizer().terms(pa.array([word]))[0][0])


def two_leaves(sample: RouterSample, workers: int) -> Partition:
    """All of space, by posts' words: flood here, fire there."""
    return partition([0], [(BY_POST, [[term("flood")], [term("fire")]])], workers, name="two")


@pytest.fixture(autouse=True)
def two() -> Iterator[None]:
    routers()["two"] = Router("two", two_leaves)
    yield
    del routers()["two"]


def plan_of(state: StateDirectory, settings: Settings) -> BatchPlan:
    return BatchPlan(str(state.root), state.newest(), settings, state.newest().batch)


def lists(state: StateDirectory, settings: Settings) -> list[set[int]]:
    made = plan_of(state, settings).router.partition
    return [set(keywords_of(made, leaf)) for leaf in range(made.leaves)]


def search(number: int, words: str) -> dict[str, object]:
    return {"op": "search", "id": f"s{number}", "sql": f"SELECT * FROM stream WHERE text CONTAINS '{words}'"}


def test_a_leaf_learns_words_that_are_asked_for_and_the_next_batch_goes_by_them(tmp_path: Path) -> None:
    state, settings = StateDirectory(tmp_path), Settings(workers=2, router="two")
    start(state, settings, [FIRST])
    flood, fire, smoke = term("flood"), term("fire"), term("smoke")
    step(state, settings, Batch([], [post(1, 1, "fire smoke in the street"), post(2, 1, "flood fire flood")]))
    assert lists(state, settings) == [{flood, fire}, {fire}], "nobody has asked for smoke yet"
    step(state, settings, Batch([search(1, "smoke")], []))
    step(state, settings, Batch([], [post(3, 2, "fire smoke"), post(4, 2, "fire")]))
    known = lists(state, settings)
    assert smoke in set().union(*known)
    where = next(leaf for leaf in (0, 1) if smoke in known[leaf])
    terms = np.array([smoke], np.uint64)
    router = plan_of(state, settings).router
    assert router.store(np.zeros(1), np.zeros(1), terms, np.arange(2)).tolist() == [where]
    assert StateDirectory(tmp_path).newest().of(KEYWORDS), "it is part of the state"


def test_an_adjustment_keeps_what_was_learned_and_words_asked_for(tmp_path: Path) -> None:
    state, settings = StateDirectory(tmp_path), Settings(workers=2, router="two", balance="off")
    start(state, settings, [FIRST])
    step(state, settings, Batch([search(1, "smoke OR ash")], []))
    step(state, settings, Batch([], [post(1, 1, "fire smoke")]))
    before = lists(state, settings)
    plan = plan_of(state, settings)
    old = plan.router.partition
    nothing = np.zeros(len(old.node))
    new = replace(old, owner=old.owner[::-1].copy())
    adjust(plan, Move("forced", "a test", new, Loads(nothing, nothing, old.load), 0, 0, np.ones(2), np.ones(2)))
    assert lists(state, settings) == before
    step(state, settings, Batch([], [post(2, 2, "fire ash")]))
    assert [len(each) for each in lists(state, settings)] != [len(each) for each in before], "ash can still be learned"


def test_files_of_words_are_few_and_repeat_nothing(tmp_path: Path) -> None:
    state, settings = StateDirectory(tmp_path), Settings(workers=2, router="two")
    start(state, settings, [FIRST])
    words = [f"word{number}" for number in range(30)]
    step(state, settings, Batch([search(1, " OR ".join(words))], []))
    for number, word in enumerate(words):
        step(state, settings, Batch([], [post(number + 1, number + 1, f"fire {word} {word}")]))
        assert len(state.newest().of(KEYWORDS)) <= FILES + settings.workers
    assert {term(word) for word in words} <= set().union(*lists(state, settings))
    rows = sum(ref.rows for ref in state.newest().of(KEYWORDS))
    step(state, settings, Batch([], [post(99, 99, "fire word3 word7")]))
    assert sum(ref.rows for ref in state.newest().of(KEYWORDS)) <= rows + 2


@pytest.mark.parametrize("keep", ["posts", "none"])
def test_no_answer_changes_while_lists_grow(keep: str, tmp_path: Path) -> None:
    batches, oracle = random_batches(77, 10, keep)
    ask = {"op": "search", "id": "all", "sql": "SELECT * FROM stream WHERE text CONTAINS 'fire OR rue OR zebra OR a'"}
    state = run(tmp_path, Settings(workers=3, router="two", keep=keep), [], sample=[FIRST])
    settings = Settings(workers=3, router="two", keep=keep)
    step(state, settings, Batch([ask], []))
    for batch in batches:
        step(state, settings, batch)
    assert len(set().union(*lists(state, settings))) >= 4
    check(state, oracle)
    if keep == "posts":
        check_nearest(state, oracle)


def test_a_duplicate_that_a_longer_list_sends_elsewhere_is_still_one(tmp_path: Path) -> None:
    """Its first copy was stored by the first leaf, which knows none of its words; then the second learns one."""
    asked = [subscribe("q", "SELECT * FROM stream WHERE text CONTAINS 'smoke'")]
    batches = [
        Batch(asked), Batch([], [post(1, 1, "smoke")]), Batch([search(1, "smoke")]),
        Batch([], [post(2, 2, "fire smoke")]), Batch([], [post(1, 1, "smoke"), post(3, 3, "smoke")]),
    ]  # fmt: skip
    oracle = Oracle(NOON).run(
        [Batch(each.ops if number != 2 else [], each.posts) for number, each in enumerate(batches)]
    )
    state = run(tmp_path, Settings(workers=2, router="two"), batches, sample=[FIRST])
    check(state, oracle)
    assert state.newest().counts["duplicates"] == 1


def test_what_a_search_asks_is_encoded_for_statistics() -> None:
    from nearcast.common.op_schema import NEAREST, NEVER, RANGE, TERMS
    from nearcast.engine.op_encoding import encode_ops

    hour = 3600 * 10**6
    cases = [
        ("SELECT * FROM stream WHERE loc INSIDE RECT(1, 2, 3, 4) AND text CONTAINS 'a b'", RANGE, NEVER, 0),
        ("SELECT * FROM stream WHERE time AFTER '2 hours ago'", RANGE, 2 * hour, 0),
        ("SELECT * FROM stream WHERE time BETWEEN 3600000 AND 7200000", RANGE, hour, 0),
        ("SELECT * FROM stream ORDER BY DISTANCE(loc, POINT(5, 6)) LIMIT 4", NEAREST, NEVER, 4),
        ("SELECT TopK(text, 3) FROM stream WHERE time AFTER '1 hour ago'", TERMS, hour, 3),
    ]
    ops, rejects = encode_ops(ops_table([{"op": "search", "id": 1, "sql": sql} for sql, *_ in cases]), Tokenizer())
    assert not len(rejects)
    found = zip(*(ops[name].to_pylist() for name in ("asks", "window", "k")), strict=True)
    assert list(found) == [(asks, window, k) for _, asks, window, k in cases]
    assert [ops[name][0].as_py() for name in ("min_lon", "min_lat", "max_lon", "max_lat")] == [1, 2, 3, 4]
    assert term("a") in ops["code"][0].as_py() and ops["at_lat"][3].as_py() == 6
