"""Many subscribers over real posts (Skype §8.1.1): made from notes, with columns, and compared by all pairs."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from nearcast.engine.batch import BatchPlan
from nearcast.engine.begin import begin
from nearcast.engine.local import run_locally
from nearcast.engine.settings import Settings
from nearcast.kinds.relevance.buffer_share import BufferShare, _shares
from nearcast.kinds.relevance.idf import IdfSet
from nearcast.kinds.relevance.ledger import Ledger
from nearcast.kinds.relevance.subscribers import open_subscribers
from nearcast.kinds.relevance.vectors import Vectors
from nearcast.sources.op_records import normalise_ops
from nearcast.sources.raw import Raw
from nearcast.sources.records import normalise
from nearcast.storage.directory import StateDirectory
from nearcast_papers.baselines.matchers import brute as all_pairs
from tests.marks import slow

WINDOW = 4000
YEAR = 365 * 86_400_000_000


def subscribers_of(notes: pa.Table, count: int, seed: int) -> pa.Table:
    """One of a note each: its place and one to five of its words, any alpha, windows by number and by time."""
    rng = np.random.default_rng(seed)
    table = notes.filter(pc.greater(pc.utf8_length(pc.utf8_trim_whitespace(notes["text"])), 0))
    rows = rng.integers(0, len(table), count)
    some = table.take(pa.array(rows))
    words = [
        " ".join(str(word) for word in rng.permutation(text.split())[: rng.integers(1, 6)])
        for text in some["text"].to_pylist()
    ]
    counted = rng.random(count) < 0.7
    return pa.table(
        {
            "op": pa.array(["subscribe"] * count), "id": np.arange(count), "lon": some["lon"], "lat": some["lat"],
            "words": words, "alpha": rng.random(count), "k": rng.choice([5, 20], count),
            "window_posts": pa.array(np.where(counted, WINDOW, 0), mask=~counted),
            "window_seconds": pa.array(np.full(count, YEAR / 4e6), mask=counted),
        }
    )  # fmt: skip


def check(state: StateDirectory, settings: Settings, compared: int, seed: int) -> int:
    """The answers of some subscribers, from a process that knows nothing, are those of all pairs."""
    _shares.clear()
    manifest = state.newest()
    plan = BatchPlan(str(state.root), manifest, settings, manifest.batch + 1)
    everyone, ledger, versions = open_subscribers(plan, manifest), Ledger.open(state, manifest), IdfSet(state, manifest)
    at = np.sort(np.random.default_rng(seed).choice(len(everyone), compared, replace=False))
    posts, length = everyone.windows
    bounds = ledger.bounds(posts[at], length[at])
    assert manifest.clock is not None
    used = versions.used(everyone.keys[at], manifest.clock, settings.idf_period)
    members = 0
    for version in np.unique(used).tolist():
        some = np.flatnonzero(used == version)
        idf = versions.at(version)
        profiles = everyone.profiles(at[some], idf)
        vectors = Vectors.join([ledger.vectors(ref, idf) for ref in ledger.refs])
        numbers = np.concatenate([first + np.arange(ref.rows) for ref, first in ledger.firsts()])
        pairs = all_pairs(profiles, np.zeros(len(profiles))).match(vectors)
        for row, place in enumerate(some.tolist()):
            mine = pairs.rows == row
            number, score = numbers[pairs.posts[mine]], pairs.scores[mine]
            order = ledger.order[number - ledger.base]
            inside = order >= bounds[place]
            number, score, order = number[inside], score[inside], order[inside]
            best = np.lexsort((order, -ledger.ts[number - ledger.base], -score))[: profiles.k[row]]
            seq = everyone.seq[at[place]]
            share = BufferShare.open(plan, int(seq % settings.workers), everyone)
            _, found, scores = share.buffers.answers(share.rows(np.array([seq])))
            share.remember(plan)
            assert found.astype(np.int64).tolist() == number[best].tolist()
            assert scores.tolist() == score[best].tolist()
            members += len(best)
    return members


@pytest.mark.parametrize(("count", "posts"), [(400, 2_000), *slow((1_000, 4_000), (100_000, 30_000))])
def test_the_answers_of_many_are_those_of_all_pairs(count: int, posts: int, shared_data: Path, tmp_path: Path) -> None:
    notes = pq.read_table(shared_data / "osm_notes.parquet").slice(0, posts)
    notes = notes.set_column(notes.schema.get_field_index("text"), "text", pc.fill_null(notes["text"], ""))
    stream = normalise(notes.select(["id", "ts", "lon", "lat", "text"]))[0].sort_by([("ts", "ascending")])
    state, settings = StateDirectory(tmp_path / "state"), Settings(workers=3, idf_period=YEAR // 12)
    begin(state, settings, stream.slice(0, 500))
    raw = subscribers_of(notes, count, 1)
    ops, bad = normalise_ops(Raw(raw, pa.table({"reason": [], "raw": []}), lambda rows: [""] * len(rows)))
    assert not len(bad)
    run_locally(state, settings, ops=ops.slice(0, count // 2))
    step = posts // 9
    for at in range(0, posts, step):
        if at == 4 * step:
            run_locally(state, settings, ops=ops.slice(count // 2))
        run_locally(state, settings, posts=[stream.slice(at, step)])
        if at > posts // 2:
            assert check(state, settings, 150, at) > 300
    counts = state.newest().counts
    assert counts["refilled"] > count and counts["relevance_candidates"] > 0
    assert counts["subscribed"] + counts.get("rejects", 0) == count > 50 * counts.get("rejects", 0)  # "?" is no word
