"""Compiling the kernels before they are needed, once per machine, on two cores.

Numba keeps what it compiled in the user's cache directory. Without this every Python worker of Spark would compile
the same functions at the same time, at its first batch. Each half runs the real code on a handful of posts, so that
the kernels are compiled for just the arrays they will meet.
"""

import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from nearcast.index.posts import PostSegment, write_posts
from nearcast.kernels.grid import may_match
from nearcast.kernels.scan import scan_posts
from nearcast.model.ops import CODE_LAST, OPS
from nearcast.pipeline.batch import begin, run_batch
from nearcast.pipeline.encode_ops import NOTHING, encode_ops
from nearcast.pipeline.packets import OPS as OPS_PACKET
from nearcast.pipeline.packets import POSTS as POSTS_PACKET
from nearcast.pipeline.packets import pack
from nearcast.pipeline.plan import Plan, open_summary
from nearcast.pipeline.settings import Settings
from nearcast.pipeline.work import work
from nearcast.reader.reader import Reader, scan_arguments
from nearcast.sources.records import normalise
from nearcast.sources.world import World
from nearcast.state.directory import StateDirectory
from nearcast.text.tokenizer import Tokenizer

MARK = Path(os.environ["NUMBA_CACHE_DIR"]) / "warm"  # the directory is one of these kernels' own
SQL = "SELECT * FROM stream WHERE loc INSIDE RECT(-180, -90, 180, 90) AND text CONTAINS 'coffee'"


def posts_and_words(folder: Path) -> None:
    """Normalising, tokenising, storing, scanning."""
    posts, _ = normalise(World().posts(0, 200))
    tokenizer = Tokenizer()
    terms, offsets = tokenizer.terms(posts["text"])
    tokenizer.words_of(posts["text"], terms[:50])
    posts = posts.append_column("leaf", pa.array(np.zeros(len(posts), np.int32)))
    lists = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(terms))
    write_posts(folder / "posts", posts.append_column("terms", lists).combine_chunks())
    segment = PostSegment(folder / "posts")
    segment.columns(np.arange(10))
    scan_posts(
        segment.lon, segment.lat, segment.ts, segment.codes, segment.offsets, segment.vocabulary.terms, 0, len(segment),
        *scan_arguments(NOTHING),
    )  # fmt: skip
    bulk = pa.table({"op": ["subscribe"], "id": [1], "id_text": pa.nulls(1, pa.string()), "ts": pa.nulls(1, pa.int64()),
                     "sql": pa.nulls(1, pa.string()), "min_lon": [0.0], "min_lat": [0.0], "max_lon": [1.0],
                     "max_lat": [1.0], "text": ["coffee rain"]})  # fmt: skip
    encode_ops(bulk, tokenizer)


def subscriptions(folder: Path) -> None:
    """Resolving, filing and matching, with packets made by hand so that no text is read."""
    state, settings = StateDirectory(folder / "state"), Settings(workers=1, keep="none", merge=False)
    begin(state, settings, None)
    plan = Plan(str(state.root), replace(state.newest(), first_post=0), settings)
    may_match(np.zeros(1, np.int32), np.ones(1, np.uint64), np.arange(2), open_summary(plan))
    query = {**NOTHING, "code": [1 | CODE_LAST, 12345]}
    ops = pa.Table.from_pylist(
        [{"op": 0, "id": 1, "id_text": None, "ts": None, "sql": None, "digest": 1, **query}], schema=OPS
    )
    posts = pa.table({
        "id": [1, 2], "id_text": pa.nulls(2, pa.string()), "ts": [1, 2], "lon": [0.0, 1.0], "lat": [0.0, 1.0],
        "text": ["a", "b"], "leaf": pa.array([0, 0], pa.int32()), "wanted": [True, True],
        "terms": pa.array([[12345], [7]], pa.list_(pa.uint64())),
    })  # fmt: skip
    work(plan, 0, [*pack(OPS_PACKET, ops, 0), *pack(POSTS_PACKET, posts, 1)])


def rest(folder: Path) -> None:
    """What the two halves may have left out: a small state, subscribed to, streamed through and searched."""
    posts, _ = normalise(World().posts(0, 300))
    state, settings = StateDirectory(folder / "rest"), Settings(workers=1)
    begin(state, settings, posts.slice(0, 100))
    ops = {"op": ["subscribe"], "id": [1], "id_text": pa.array(["w"]), "ts": pa.nulls(1, pa.int64()), "sql": [SQL]}
    run_batch(state, settings, ops=pa.table(ops))
    run_batch(state, settings, posts=[posts.slice(0, 200)])
    run_batch(state, settings, ops=pa.table({**ops, "id_text": pa.array(["x"])}))
    len(Reader(state).search(SQL))


def is_warm() -> bool:
    """Whether this machine has compiled these kernels before."""
    return MARK.exists()


def warm_up() -> None:
    """Compile what is not compiled yet: half a minute once, nothing from then on."""
    if is_warm():
        return
    with tempfile.TemporaryDirectory(prefix="nearcast-warmup-") as name:
        code = f"from pathlib import Path; from nearcast.pipeline import warmup; warmup.posts_and_words(Path({name!r}))"
        other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subscriptions(Path(name))
        other.wait()
        rest(Path(name))
    MARK.parent.mkdir(parents=True, exist_ok=True)
    MARK.touch()


if __name__ == "__main__":
    warm_up()
