"""A budget for posts: the oldest slots leave, what is kept is answered exactly, and what left within bounds."""

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from nearcast.cli import main
from nearcast.common.queries import Query
from nearcast.engine.settings import Settings
from nearcast.engine.size_budget import kept
from nearcast.kinds.aggregates.query import AggregateQuery
from nearcast.kinds.aggregates.search import GroupRows
from nearcast.kinds.nearest.query import NearestQuery
from nearcast.kinds.range.query import RangeQuery
from nearcast.kinds.terms.query import TermsQuery
from nearcast.language import parse
from nearcast.reader.explain import explain
from nearcast.reader.reader import Reader
from nearcast.reader.results import read_results
from nearcast.reader.row_format import iso
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import ARCHIVE, COARSE, POSTS, Manifest
from nearcast.storage.sweep import sweep
from tests.engine.harness import outbox, start, step
from tests.engine.oracle import Batch
from tests.engine.test_crashes import Crash, crashing_at
from tests.oracles import aggregates, searches
from tests.oracles.searches import meets

MINUTE = 60_000_000
HOUR = 60 * MINUTE
NOON = 1_700_000_000_000_000 // HOUR * HOUR
A_BATCH = 30
WORDS = ("flood", "fire", "storm", "bus", "rain", "tram", "sun")
BUDGET = 100_000  # some five batches of them

SEARCHES = (
    "SELECT id FROM stream",
    "SELECT id FROM stream WHERE loc INSIDE RECT(-20, -20, 3, 20) AND text CONTAINS 'flood OR sun' LIMIT 7",
    "SELECT id FROM stream WHERE time AFTER '{early}'",
    "SELECT id FROM stream ORDER BY DISTANCE(loc, POINT(2, 3)) LIMIT 9",
    "SELECT TopK(text, 3) FROM stream WHERE loc INSIDE CIRCLE(0, 0, 2000 km)",
    "SELECT Count(id), Max(n), TopK(text, 2), word FROM stream GROUP BY word",
)
COARSE_SEARCHES = (
    "SELECT APPROXIMATE Count(id), TopK(text, 3) FROM stream",
    "SELECT APPROXIMATE Count(*) AS n, TopK(text, 2) AS top FROM stream WHERE loc INSIDE RECT(-20, -20, 3.3, 20)",
    "SELECT APPROXIMATE TopK(text, 9), Count(id) FROM stream WHERE time BETWEEN '{early}' AND '{later}'",
    "SELECT APPROXIMATE Count(id) FROM stream WHERE loc INSIDE CIRCLE(0, 0, 900 km) AND time AFTER '{early}'",
)


def stream(seed: int, count: int, beat: int = 4 * MINUTE) -> list[Batch]:
    """Batches of posts in order of time, fifteen an hour: a batch is two slots."""
    random = Random(seed)
    found = []
    for number in range(count):
        posts = []
        for n in range(number * A_BATCH, (number + 1) * A_BATCH):
            text = " ".join(random.choice(WORDS[: random.randrange(1, 8)]) for _ in range(random.randrange(6)))
            where = {"lon": random.uniform(-15, 15), "lat": random.uniform(-15, 15)}
            posts.append({"id": n, "ts": NOON + n * beat, **where, "text": text, "n": n, "word": random.choice(WORDS)})
        found.append(Batch(posts=posts))
    return found


def settings_of(**more: Any) -> Settings:
    return Settings(**{"workers": 2, "slot": HOUR, "keep_size": BUDGET, **more})


def began(root: Path, settings: Settings, batches: list[Batch]) -> StateDirectory:
    state = StateDirectory(root)
    start(state, settings, batches[0].posts[:5])
    return state


def run(root: Path, settings: Settings, batches: list[Batch]) -> StateDirectory:
    state = began(root, settings, batches)
    for batch in batches:
        step(state, settings, batch)
    return state


def size(manifest: Manifest) -> int:
    return sum(ref.size for ref in kept(manifest))


def posts_of(batches: list[Batch], since: int | None = None) -> list[dict[str, Any]]:
    everything = [post for batch in batches for post in batch.posts]
    return [post for post in everything if since is None or post["ts"] >= since]


def asked(reader: Reader, sql: str) -> Any:
    return parse(sql, reader.tokenizer, reader.regions).query


def expected(reader: Reader, query: Query, posts: list[dict[str, Any]]) -> list[Any]:
    clock, tokenizer = reader.manifest.clock, reader.tokenizer
    assert clock is not None
    match query:
        case RangeQuery():
            return searches.range_rows(posts, query, clock, tokenizer)
        case NearestQuery():
            return [
                {"id": row["id"], "distance_km": row["distance_km"]}
                for row in searches.nearest_rows(posts, query, clock, tokenizer)
            ]
        case TermsQuery():
            return [{"term": term, "count": n} for term, n in searches.term_counts(posts, query, clock, tokenizer)]
        case AggregateQuery():
            return aggregates.aggregate(posts, query, clock, tokenizer)
    raise AssertionError(query)


def check(state: StateDirectory, posts: list[dict[str, Any]]) -> None:
    """Answers are those of the posts kept, and say so; coarse ones lie within their bounds. `posts` are all."""
    reader = Reader(state)
    since = reader.manifest.kept_since
    assert since is not None
    there = [post for post in posts if post["ts"] >= since]
    assert sum(ref.rows for ref in kept(reader.manifest)) == len(there)
    assert sum(ref.facts["posts"] for ref in reader.manifest.of(COARSE)) == len(posts) - len(there)
    times = {"early": iso(NOON + 10 * MINUTE), "later": iso(since + 3 * HOUR)}
    for text in SEARCHES:
        sql = text.format(**times)
        found = reader.search(sql)
        assert list(found) == expected(reader, asked(reader, sql), there), sql
        assert found.exact_since == (None if "LIMIT 7" in sql else since), sql
    recent = reader.search(f"SELECT id FROM stream WHERE time AFTER '{iso(since)}'")
    assert recent.exact_since is None and recent.notice is None
    for text in COARSE_SEARCHES:
        check_bounds(reader, text.format(**times), posts)


def check_bounds(reader: Reader, sql: str, posts: list[dict[str, Any]]) -> None:
    query, found = asked(reader, sql), reader.search(sql)
    assert isinstance(found, GroupRows) and found.coarse is not None and reader.manifest.clock is not None
    assert found.exact_since == reader.manifest.kept_since
    right = [post for post in posts if meets(post, query, reader.manifest.clock, reader.tokenizer)]
    truth: Counter[str] = Counter(word for post in right for word in set(post["text"].split()))
    (row,) = found
    for output in query.outputs:
        if output.value.function == "count":
            low, high = row[f"{output.name}_at_least"], row[f"{output.name}_at_most"]
            assert low <= len(right) <= high and low <= row[output.name] <= high, sql
        else:
            assert len(row[output.name]) == min(output.value.k, len(WORDS)), sql
            for each in row[output.name]:
                assert each["at_least"] <= truth[each["term"]] <= each["at_most"], sql
                assert each["at_least"] <= each["count"] <= each["at_most"], sql
    if " WHERE " not in sql:
        assert row["count(id)"] == row["count(id)_at_least"] == row["count(id)_at_most"] == len(posts)


@pytest.mark.parametrize(("workers", "retention"), [(1, None), (2, None), (2, 3 * HOUR)])
def test_the_oldest_slots_leave_and_answers_are_of_what_is_kept(
    workers: int, retention: int | None, tmp_path: Path
) -> None:
    batches = stream(3, 14)
    settings = settings_of(workers=workers, retention=retention)
    state = began(tmp_path / "state", settings, batches)
    sinces, archived = [], False
    for number, batch in enumerate(batches, 1):
        manifest = step(state, settings, batch)
        assert size(manifest) <= BUDGET
        archived |= bool(manifest.of(ARCHIVE))
        since = manifest.kept_since
        sinces.append(since or 0)
        if since is not None and number % 4 == 0:
            check(state, posts_of(batches[:number]))
    assert sinces == sorted(sinces) and sinces[1] == 0 and sinces[-1] % HOUR == 0
    check(state, posts_of(batches))
    assert archived == (retention is not None)
    assert manifest.counts["coarse"] == len(posts_of(batches)) - len(posts_of(batches, sinces[-1]))


def test_one_batch_of_everything_is_cut_to_size_at_once(tmp_path: Path) -> None:
    whole = [Batch(posts=posts_of(stream(3, 14)))]
    state = run(tmp_path / "state", settings_of(keep_size=30_000), whole)
    assert 15_000 < size(state.newest()) <= 30_000
    check(state, posts_of(whole))


def test_without_a_budget_nothing_leaves_and_a_later_run_may_set_one(tmp_path: Path) -> None:
    batches = stream(4, 12)
    state = run(tmp_path / "state", settings_of(keep_size=None), batches[:10])
    assert not state.newest().of(COARSE) and "keep_size" not in state.newest().settings
    assert Reader(state).search("SELECT id FROM stream").exact_since is None
    (row,) = Reader(state).search("SELECT APPROXIMATE Count(id) FROM stream")
    assert row == {"count(id)": 10 * A_BATCH}
    manifest = step(state, settings_of(), batches[10])
    assert size(manifest) <= BUDGET and manifest.settings["keep_size"] == BUDGET
    check(state, posts_of(batches[:11]))
    since = manifest.kept_since
    manifest = step(state, settings_of(keep_size=None, workers=3), batches[11])  # and another run may lift it
    assert manifest.kept_since == since and "keep_size" not in manifest.settings
    check(state, posts_of(batches))


def test_the_length_of_slots_may_change(tmp_path: Path) -> None:
    batches = stream(9, 12)
    state = run(tmp_path / "state", settings_of(retention=3 * HOUR), batches[:8])
    for number, slot in ((8, HOUR // 3), (9, 2 * HOUR), (10, HOUR), (11, HOUR)):
        manifest = step(state, replace(settings_of(retention=3 * HOUR), slot=slot), batches[number])
        assert size(manifest) <= BUDGET
        check(state, posts_of(batches[: number + 1]))


def test_a_post_from_before_what_is_kept_is_late(tmp_path: Path) -> None:
    batches = stream(5, 8)
    settings = settings_of()
    state = began(tmp_path / "state", settings, batches)
    step(state, settings, Batch([{"op": "subscribe", "id": "all", "sql": "SELECT * FROM stream"}]))
    for batch in batches:
        manifest = step(state, settings, batch)
    since = manifest.kept_since
    assert since is not None
    old = {**batches[0].posts[0], "id": 9001, "ts": since - 1}
    new = {**batches[0].posts[0], "id": 9002, "ts": since}
    manifest = step(state, settings, Batch(posts=[old, new, dict(batches[0].posts[3])]))
    assert manifest.counts["late"] == 2
    late = [row["post_id"] for row in read_results(state) if row["kind"] == "late"]
    assert sorted(late) == [batches[0].posts[3]["id"], 9001]
    assert max(outbox(state).values()) == 1  # also of a duplicate of what has left
    check(state, [*posts_of(batches), new])


def test_deleted_posts_are_not_counted_though_they_leave_in_the_same_batch(tmp_path: Path) -> None:
    batches = stream(6, 9)
    settings = settings_of()
    state = run(tmp_path / "state", settings, batches[:3])
    assert state.newest().kept_since is None
    gone = {3, 17, 50}
    ops = [{"op": "delete", "id": number} for number in sorted(gone)]
    for number, batch in enumerate(batches[3:]):
        step(state, settings, Batch(ops if number == 0 else [], batch.posts))
    check(state, [post for post in posts_of(batches) if post["id"] not in gone])


def test_windows_of_standing_queries_and_the_newest_slot_stay(tmp_path: Path) -> None:
    """Even where there is room for nothing: a window of five hours, and then no window."""
    top = "SELECT TopK(text, 3) FROM stream WHERE time AFTER '5 hours ago' SYNC 30 minutes"
    count = "SELECT Count(id), word FROM stream WHERE time AFTER '4 hours ago' GROUP BY word SYNC 1 hour"
    ever = "SELECT Count(id), Max(n) FROM stream SYNC 1 hour"
    ops = [{"op": "subscribe", "id": name, "sql": sql} for name, sql in zip("abc", (top, count, ever), strict=True)]
    batches = stream(7, 9)
    found = {}
    for name, budget in (("free", None), ("tight", 1)):
        settings = settings_of(keep_size=budget)
        state = began(tmp_path / name, settings, batches)
        step(state, settings, Batch(ops))
        for number, batch in enumerate(batches):
            deleted = [{"op": "delete", "id": number * A_BATCH - 3}] if number in (4, 7) else []
            manifest = step(state, settings, Batch(deleted, batch.posts))
            if budget and number > 4:
                assert manifest.clock is not None and manifest.kept_since is not None
                assert manifest.clock - 8 * HOUR < manifest.kept_since <= manifest.clock - 5 * HOUR
        found[name] = [row for row in read_results(state) if row["kind"] == "report"]

    def told(name: str, ids: str) -> list[Any]:
        return [(row["query_id"], row["window_end"], row["rows"]) for row in found[name] if row["query_id"] in ids]

    assert told("tight", "ab") == told("free", "ab") and len(told("free", "ab")) > 40
    #  What has no window goes on with what it has counted: it does not see the deletion of a post that it has counted.
    assert [each[:2] for each in told("tight", "c")] == [each[:2] for each in told("free", "c")]
    (free,), (tight,) = (told(name, "c")[-1][2] for name in ("free", "tight"))
    assert free["max(n)"] == tight["max(n)"] and 0 <= tight["count(id)"] - free["count(id)"] <= 2
    settings = settings_of(keep_size=1)
    step(state, settings, Batch([{"op": "unsubscribe", "id": name} for name in "abc"]))
    step(state, settings, Batch(posts=[{**batches[0].posts[0], "id": -1, "ts": manifest.clock}]))
    clock = manifest.clock
    assert clock is not None and state.newest().kept_since == clock // HOUR * HOUR
    assert 0 < sum(ref.rows for ref in state.newest().of(POSTS)) <= 16


@pytest.mark.slow
def test_a_crash_at_any_step_leaves_the_same_posts_and_slots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches, settings = stream(8, 7), settings_of(retention=4 * HOUR)

    def go_on(state: StateDirectory) -> None:
        start(state, settings, batches[0].posts[:5])
        while (number := state.newest().batch + 1) < len(batches):
            step(state, settings, batches[number])
            sweep(state, grace=0.0)

    def holds(state: StateDirectory) -> Any:
        manifest, reader = state.newest(), Reader(state)
        found = [
            list(reader.search(sql.format(early=iso(NOON + 90 * MINUTE), later=iso(NOON + 5 * HOUR))))
            for sql in COARSE_SEARCHES
        ]
        return manifest.kept_since, list(reader.search("SELECT * FROM stream")), found, manifest.counts

    undisturbed = StateDirectory(tmp_path / "undisturbed")
    with crashing_at(0, monkeypatch) as steps:
        go_on(undisturbed)
    right = holds(undisturbed)
    assert right[0] is not None and right[3]["expired"] > 0
    check(undisturbed, posts_of(batches))
    every = 1 if os.environ.get("NEARCAST_THOROUGH") else 23
    for at in range(steps[0] // 3, steps[0] + 1, every):
        state = StateDirectory(tmp_path / f"step{at}")
        with crashing_at(at, monkeypatch), pytest.raises(Crash):
            go_on(state)
        go_on(state)
        assert holds(state) == right, f"crash at step {at}"
        sweep(state, grace=0.0)
        named = {ref.name for ref in state.newest().segments}
        on_disk = {p.relative_to(state.root).as_posix().partition(".")[0] for p in state.segments.rglob("*.arrow")}
        assert on_disk == {name for name in named if name.startswith("segments")}


# -- what a user sees --------------------------------------------------------------------------------------------------


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[str, str]:
    with pytest.raises(SystemExit) as leaving:
        main([str(argument) for argument in arguments])
    assert not leaving.value.code
    told = capsys.readouterr()
    return told.out, told.err


def test_the_command_line_says_what_is_left_out_and_what_is_coarse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    batches = stream(10, 8)
    state = run(tmp_path / "state", settings_of(), batches)
    since = iso(state.newest().kept_since or 0)
    ask: Callable[..., tuple[str, str]] = lambda sql: said(  # noqa: E731
        capsys, "search", "--state", state.root, sql, "--format", "json"
    )
    left_out = (
        f"nearcast: posts from before {since} are no longer kept (--keep-size); "
        "what is older was left out (APPROXIMATE counts it coarsely)\n"
    )
    out, err = ask("SELECT Count(id) FROM stream")
    assert err == left_out and json.loads(out)["count(id)"] == len(posts_of(batches, state.newest().kept_since))
    assert ask("SELECT id FROM stream LIMIT 2")[1] == ""
    out, err = ask("SELECT APPROXIMATE Count(id) FROM stream")
    assert json.loads(out)["count(id)"] == len(posts_of(batches)) and "was counted coarsely: " in err
    assert ask("SELECT APPROXIMATE Count(id) FROM stream WHERE text CONTAINS 'sun'")[1] == left_out
    plan = {row["step"]: row["detail"] for row in map(json.loads, ask("EXPLAIN SELECT id FROM stream")[0].splitlines())}
    assert f"nearcast: {plan['kept']}\n" == left_out
    reader = Reader(state)
    steps = dict(explain(reader, parse("EXPLAIN SELECT id FROM stream LIMIT 1", reader.tokenizer)).steps)
    assert "kept" not in steps
    out, _ = said(capsys, "status", "--state", state.root)
    assert "of 100.0 KB (--keep-size); from before " in out and "never dropped" not in out
    facts = json.loads(said(capsys, "status", "--state", state.root, "--format", "json")[0])
    assert facts["kept_since"] == since and facts["settings"]["keep_size"] == BUDGET
    step(state, settings_of(keep_size=10), Batch(posts=[{**batches[-1].posts[-1], "id": -5}]))
    assert "never dropped" in said(capsys, "status", "--state", state.root)[0]
