"""Compiling the kernels before they are needed, once per machine, on two cores.

Numba keeps what it compiled in the user's cache directory. Without this every Python worker of Spark would compile
the same functions at the same time, at its first batch. Each part runs the real code on a handful of posts, so that
the kernels are compiled for just the arrays they will meet. What the first batches of range subscriptions call is
compiled first, in two processes, and then what other kinds of subscriptions need that the run is known to meet
(`forecast`); everything else follows when the stream has had its first posts (`compiling`).
"""

import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from nearcast.common.kernels.grid import may_match
from nearcast.common.kinds import Kind, kind_named, kinds
from nearcast.common.op_schema import CODE_LAST, OPS
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine.balance_strategies import decide
from nearcast.engine.batch import BatchPlan, placed_summary
from nearcast.engine.begin import begin
from nearcast.engine.empty_columns import NOTHING
from nearcast.engine.local import run_locally
from nearcast.engine.measured_load import Measured
from nearcast.engine.op_encoding import encode_ops, file_ops
from nearcast.engine.op_packets import pack_ops
from nearcast.engine.packets import POSTS as POSTS_PACKET
from nearcast.engine.packets import pack
from nearcast.engine.post_copies import MARKS
from nearcast.engine.rebalancing import adjust
from nearcast.engine.roles import WarmUp
from nearcast.engine.settings import Settings
from nearcast.engine.work import work
from nearcast.partitioning.partition import BY_POST, BY_QUERY, Partition
from nearcast.partitioning.routing_table import RoutingTable
from nearcast.reader.reader import Reader
from nearcast.sources.formats import whole_file
from nearcast.sources.op_records import read_ops
from nearcast.sources.records import normalise
from nearcast.sources.world import World
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import POSTS, commit
from nearcast.storage.posts.post_layout import LISTED_ROWS
from nearcast.storage.posts.post_segment import PostSegment, write_posts
from nearcast.storage.term_table import frequencies

CACHE = Path(os.environ["NUMBA_CACHE_DIR"])  # the directory is one of these kernels' own
STREAMING, SEARCHING, WORDS = CACHE / "warm-stream", CACHE / "warm-search", CACHE / "warm-words"


def a_range() -> str:
    """A subscription to a range, which every first batch is compiled for."""
    return questions(kind_named("range")).standing[0]


def questions(kind: Kind) -> WarmUp:
    return kind.warmup or WarmUp()


def posts_and_words(folder: Path) -> None:
    """Tokenising posts, routing and storing them, reading ops."""
    write_posts(folder / "fresh", tokenised(LISTED_ROWS))
    posts, _ = normalise(World().posts(0, 300))
    state, settings = StateDirectory(folder / "unread"), Settings(workers=1)
    begin(state, settings, posts.slice(0, 100))
    run_locally(state, settings, posts=[posts])
    tokenizer = Tokenizer()
    texts = pa.array(["coffee rain"])
    tokenizer.words_of(texts, tokenizer.terms(texts)[0])
    (folder / "ops.jsonl").write_text(json.dumps({"op": "subscribe", "id": "u", "sql": a_range()}) + "\n")
    raw, _ = read_ops(whole_file(str(folder / "ops.jsonl")))
    file_ops(encode_ops(raw, tokenizer)[0], frequencies([]))


def bulk(folder: Path) -> None:
    """Subscriptions in columns, and posts read again from a segment."""
    tokenizer = Tokenizer()
    write_posts(folder / "stored", tokenised(200))
    stored = PostSegment(folder / "stored")
    stored.columns(np.arange(10)), stored.all()
    columns = pa.table({
        "op": ["subscribe"], "id": [1], "id_text": pa.nulls(1, pa.string()), "ts": pa.nulls(1, pa.int64()),
        "sql": pa.nulls(1, pa.string()), "min_lon": [0.0], "min_lat": [0.0], "max_lon": [1.0], "max_lat": [1.0],
        "text": ["coffee rain"],
    })  # fmt: skip
    file_ops(encode_ops(columns, tokenizer)[0], frequencies([]))


def tokenised(count: int) -> pa.Table:
    """Posts as they are stored."""
    posts, _ = normalise(World().posts(0, count))
    terms, offsets = Tokenizer().terms(posts["text"])
    posts = posts.append_column("leaf", pa.array(np.zeros(len(posts), np.int32)))
    lists = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(terms))
    return posts.append_column("terms", lists).combine_chunks()


def subscriptions(folder: Path | str) -> None:
    """Resolving, filing and matching, with packets made by hand so that no text is read."""
    state, settings = StateDirectory(Path(folder) / "state"), Settings(workers=1, keep="none", merge=False)
    begin(state, settings, None)
    plan = BatchPlan(str(state.root), replace(state.newest(), first_post=0), settings)
    may_match(np.zeros(1, np.int32), np.ones(1, np.uint64), np.arange(2), placed_summary(plan))
    query = {**NOTHING, "code": [1 | CODE_LAST, 12345]}
    ops = pa.Table.from_pylist(
        [{"op": 0, "id": 1, "id_text": None, "ts": None, "sql": None, "digest": 1, **query}], schema=OPS
    )
    posts = pa.table({
        "id": [1, 2], "id_text": pa.nulls(2, pa.string()), "ts": [1, 2], "lon": [0.0, 1.0], "lat": [0.0, 1.0],
        "text": ["a", "b"], "leaf": pa.array([0, 0], pa.int32()), MARKS: pa.array([1, 1], pa.uint8()),
        "terms": pa.array([[12345], [7]], pa.list_(pa.uint64())),
    })  # fmt: skip
    packets = [packet for _, packet in pack_ops(plan, ops, 0)]
    work(plan, 0, [*packets, *pack(POSTS_PACKET, posts, 1)])


def more_ops(folder: Path) -> None:
    """Ops that meet subscriptions of an earlier batch. What those needed, the other half has compiled by now."""
    state, settings = StateDirectory(folder / "rest"), Settings(workers=1)
    begin(state, settings, normalise(World().posts(0, 100))[0])
    for names in ("u", "uv"):
        nulls = {"ts": pa.nulls(len(names), pa.int64())}
        ops = {"op": ["subscribe"] * len(names), "id": range(len(names)), "id_text": list(names), **nulls}
        run_locally(state, settings, ops=pa.table({**ops, "sql": [a_range()] * len(names)}))


def rest(folder: Path) -> None:
    """What the two halves may have left out: posts through what is subscribed to."""
    run_locally(StateDirectory(folder / "rest"), Settings(workers=1), posts=[normalise(World().posts(0, 300))[0]])


def standing(folder: Path, kind: Kind) -> None:
    """Subscriptions of a kind: to posts that were there, known when they come again, moved on by posts and ticks."""
    posts, _ = normalise(World(rate=50.0).posts(0, 900))
    state, settings, texts = StateDirectory(folder / kind.name), Settings(workers=2), questions(kind).standing
    begin(state, settings, posts.slice(0, 100))
    run_locally(state, settings, posts=[posts.slice(0, 300)])
    names = [f"q{n}" for n in range(len(texts))]
    ops = {"op": ["subscribe"] * len(texts), "id": range(len(texts)), "id_text": names, "sql": texts}
    for _ in range(2):
        run_locally(state, settings, ops=pa.table({**ops, "ts": pa.nulls(len(texts), pa.int64())}))
    for begins in (300, 600, 200):
        run_locally(state, settings, posts=[posts.slice(begins, 300)])


def searches(folder: Path) -> None:
    """Sealing and searching."""
    state, settings = StateDirectory(folder / "searched"), Settings(workers=1)
    posts, _ = normalise(World().posts(0, 6000))
    begin(state, settings, posts.slice(0, 100))
    run_locally(state, settings, posts=[posts])
    ref = state.newest().of(POSTS)[0]
    write_posts(state.path(ref.name), PostSegment(state.path(ref.name)).all(), sealed=True)
    reader = Reader(state)
    for sql in (sql for kind in kinds() for sql in questions(kind).searches):
        len(list(reader.search(sql)))


def words(folder: Path) -> None:
    """Routing by words: a partition with nodes of both kinds, subscriptions and posts that meet there."""
    posts, _ = normalise(World().posts(0, 100))
    state, settings = StateDirectory(folder / "words"), Settings(workers=2)
    begin(state, settings)
    one = np.array([1], np.uint64)
    cut = Partition(
        "words", (-180.0, -90.0, 360.0, 180.0), 2, np.array([0, 1, 0, 1], np.int32),
        np.array([BY_QUERY, BY_POST], np.uint8), np.array([0, 2, 4], np.int32), np.ones(4), np.array([0, 1, 0, 1]), 2,
        np.repeat(one, 4), np.arange(5),
    )  # fmt: skip
    RoutingTable(cut).save(state.root / "router" / "words.arrow")
    commit(state.manifests, state.newest(), replace(state.newest(), router="router/words.arrow"))
    ops = {"op": ["subscribe"], "id": [1], "id_text": ["q"], "ts": pa.nulls(1, pa.int64()), "sql": [a_range()]}
    for number in range(2):
        run_locally(state, settings, ops=pa.table({**ops, "id_text": [f"q{number}"]}))
        run_locally(state, settings, posts=[posts.slice(50 * number, 50)])


def balancing(folder: Path) -> None:
    """Deciding on an adjustment and carrying it out: a worker that has subscriptions gets others."""
    posts, _ = normalise(World().posts(0, 300))
    state, settings = StateDirectory(folder / "balanced"), Settings(workers=2, router="qt", ratio=1.0)
    begin(state, settings, posts)
    places = zip(*(posts[name].slice(0, 100).to_pylist() for name in ("lon", "lat")), strict=True)
    texts = [f"SELECT * FROM stream WHERE loc INSIDE CIRCLE({x}, {y}, 100 km)" for x, y in places]
    nulls = {"ts": pa.nulls(len(texts), pa.int64()), "id_text": pa.nulls(len(texts), pa.string())}
    ops = {"op": ["subscribe"] * len(texts), "id": range(len(texts)), **nulls, "sql": texts}
    run_locally(state, settings, ops=pa.table(ops))
    for strategy in ("fg", "local"):
        manifest = run_locally(state, settings, posts=[posts])
        plan = BatchPlan(str(state.root), manifest, settings, manifest.batch)
        move = decide(strategy, Measured(plan), 1.0)
        if move is not None:
            adjust(plan, move)


def is_warm() -> bool:
    """Whether this machine has compiled what a stream needs."""
    return STREAMING.exists()


def warm_up() -> None:
    """Compile what a stream needs and is not compiled yet: half a minute once, nothing from then on."""
    if not is_warm():
        with tempfile.TemporaryDirectory(prefix="nearcast-warmup-") as name, uncollected():
            finish(Path(name), other_half(Path(name)))


@contextmanager
def uncollected() -> Iterator[None]:
    """Without Python's garbage collector, which takes a tenth of the time of compiling and finds little. Only for what
    someone waits for: to compile all of it would take twice the memory, 2 GB.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def other_half(folder: Path) -> "subprocess.Popen[bytes]":
    """Compile what subscriptions need in another process."""
    return in_background("gc.disable(); warmup.subscriptions", str(folder))


def finish(folder: Path, other: "subprocess.Popen[bytes]", stopped: Callable[[], bool] = lambda: False) -> None:
    """Compile what posts need, wait for the other half, and see that nothing was left out."""
    posts_and_words(folder)
    more_ops(folder)
    other.wait()
    if not stopped():
        rest(folder)
        mark(STREAMING)


def warm_up_words() -> None:
    """Compile what a router needs that cuts by words."""
    if not WORDS.exists():
        with tempfile.TemporaryDirectory(prefix="nearcast-warmup-") as name:
            words(Path(name))
        mark(WORDS)


def is_warm_for(kind: Kind) -> bool:
    """Whether this machine has compiled what subscriptions of a kind need."""
    return SEARCHING.exists() or (CACHE / f"warm-{kind.name}").exists()


def warm_up_for(name: str) -> None:
    """Compile what subscriptions of a kind need, beside what every stream does."""
    kind = kind_named(name)
    if not is_warm_for(kind):
        with tempfile.TemporaryDirectory(prefix="nearcast-warmup-") as folder:
            standing(Path(folder), kind)
        mark(CACHE / f"warm-{kind.name}")


def warm_up_searches() -> None:
    """Compile what bulk subscriptions, sealing, searching, balancing and the subscriptions of all kinds need."""
    if not SEARCHING.exists():
        with tempfile.TemporaryDirectory(prefix="nearcast-warmup-") as name:
            bulk(Path(name))
            searches(Path(name))
            for kind in kinds():
                standing(Path(name), kind)
            balancing(Path(name))
        mark(SEARCHING)


def warm_up_later() -> "subprocess.Popen[bytes] | None":
    """Compile what sealing and searching need while a stream runs, when it leaves time for it."""
    return None if SEARCHING.exists() else in_background("os.nice(19); warmup.warm_up_searches")


def in_background(call: str, *given: str) -> "subprocess.Popen[bytes]":
    """Compile in another process, which does not tidy up what it leaves: that would take a second."""
    arguments = ", ".join(map(repr, given))
    code = f"import gc, os; from nearcast.engine import warmup; {call}({arguments}); os._exit(0)"
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def mark(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


if __name__ == "__main__":
    warm_up()
    warm_up_words()
    warm_up_searches()
