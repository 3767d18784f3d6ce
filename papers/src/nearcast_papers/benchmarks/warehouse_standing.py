"""Standing aggregates (STAR §8.3, §8.4, §8.6): posts a second of one core, index by index, and what they keep.

Every index finds the same pairs of a post and a query; what they add is counted, kept by interval and, at every beat,
added up over the windows of the queries that report. CH-tree+MT keeps layers of intervals (§5.2), all others the
shortest intervals only. Stages are timed one by one on the same batches, and a throughput is of the sum of its stages.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.common.op_schema import BEGINNING
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine.op_encoding import encode_ops, file_ops
from nearcast.engine.op_resolution import resolve
from nearcast.kinds.aggregates.condition_index import Seen, StandingIndex
from nearcast.kinds.aggregates.counting import SeriesCounting
from nearcast.kinds.aggregates.index import ChTrees
from nearcast.kinds.aggregates.interval_counts import Partials, class_of
from nearcast.kinds.aggregates.series import Aggregates, Series
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.posts.derived import with_derived
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_set import EndLog, SubscriptionSet
from nearcast_papers.baselines.mt_index import MtIndex
from nearcast_papers.baselines.op_index import OpIndex
from nearcast_papers.baselines.range_aggregates import RangeAggregates
from nearcast_papers.baselines.rp_trees import RpTrees
from nearcast_papers.benchmarks.figures import Progress, figure, rounded
from nearcast_papers.benchmarks.warehouse_data import stream
from nearcast_papers.benchmarks.warehouse_queries import PlacesAndWords, WarehouseQueries, WarehouseQuery

SETS = {
    "c1_count": ("count", False),
    "c2_count": ("count", True),
    "c1_topk": ("topk", False),
    "c2_topk": ("topk", True),
}
INDEXES: dict[str, type[StandingIndex]] = {
    "ch_tree": ChTrees, "op_index": OpIndex, "rp_trees": RpTrees, "pyramid": RangeAggregates,
}  # fmt: skip
MINUTE = 60_000_000
SAMPLED = 20_000  # posts that queries are made of
SEEN = 20_000  # posts that cost models know
MB = 1 << 20


@dataclass(frozen=True)
class StandingOptions:
    posts: int
    minutes: int
    queries: int
    vocabulary: int
    batch_posts: int
    sets: tuple[str, ...]
    seed: int

    @property
    def rate(self) -> float:
        """Posts in a second of stream time."""
        return self.posts / (60 * self.minutes)


def measure(progress: Progress, options: StandingOptions) -> dict[str, Any]:
    progress("standing: making posts")
    tables = stream(options.posts, options.vocabulary, options.seed, options.rate)
    batches = [StandingBatch.of(table) for table in cut(tables, options.batch_posts)]
    sample = sampled(tables, options.seed)
    figures = {}
    for name in options.sets:
        function, pivots = SETS[name]
        queries = WarehouseQueries(sample, function, pivots, options.seed, standing=True).take(options.queries)
        figures[name] = measure_set(progress, name, queries, batches)
    return figures


@dataclass(frozen=True)
class StandingBatch:
    posts: pa.Table
    columns: PostColumns

    @classmethod
    def of(cls, posts: pa.Table) -> "StandingBatch":
        terms, offsets = Tokenizer().terms(posts["text"])
        lon, lat, ts = (posts[name].to_numpy() for name in ("lon", "lat", "ts"))
        return cls(posts, PostColumns(lon, lat, ts, terms, offsets))


def cut(tables: Sequence[pa.Table], rows: int) -> list[pa.Table]:
    whole = pa.concat_tables(tables)
    return [whole.slice(begin, rows).combine_chunks() for begin in range(0, len(whole), rows)]


def sampled(tables: Sequence[pa.Table], seed: int) -> PlacesAndWords:
    """Places and words of some posts."""
    whole = pa.concat_tables(tables)
    rows = np.sort(np.random.default_rng((seed, 0x5A)).integers(len(whole), size=SAMPLED))
    some = whole.select(["lon", "lat", "text"]).take(pa.array(rows)).to_pydict()
    return [(lon, lat, text.split()) for lon, lat, text in zip(*some.values(), strict=True)]


def subscriptions(queries: Sequence[WarehouseQuery]) -> pa.Table:
    """As raw ops."""
    n = len(queries)
    return pa.table({
        "op": pa.array(["subscribe"] * n), "id": pa.array(np.arange(n)), "id_text": pa.nulls(n, pa.string()),
        "ts": pa.nulls(n, pa.int64()), "sql": pa.array([each.sql for each in queries]),
    })  # fmt: skip


def rows_of(queries: Sequence[WarehouseQuery], seen: Seen) -> Rows:
    """As they stand, each with its series."""
    ops, rejects = encode_ops(subscriptions(queries), Tokenizer())
    if len(rejects):
        raise AssertionError(rejects["reason"][0].as_py())
    counts = seen.terms, seen.counts.astype(np.uint64)
    rows = resolve(file_ops(ops, counts), SubscriptionSet({}, EndLog.empty()), None, 0).rows
    return Aggregates(rows).numbered([], BEGINNING)


# -- one set -----------------------------------------------------------------------------------------------------------


def measure_set(
    progress: Progress, name: str, queries: Sequence[WarehouseQuery], batches: Sequence[StandingBatch]
) -> dict[str, Any]:
    progress(f"{name}: {len(queries):,} queries")
    first = batches[0]
    some = first.columns if len(first.columns) <= SEEN else head(first.columns, SEEN)
    seen = Seen.of(some, with_derived(first.posts.slice(0, len(some)), ("length",)))
    rows = rows_of(queries, seen)
    counting = {each: SeriesCounting(rows, kind) for each, kind in INDEXES.items()}
    building = {each: took(partial(one.prepare, seen)) for each, one in counting.items()}
    ours = counting["ch_tree"]
    kept = {each: SeriesCounts(ours.series, rows, each == "mt") for each in ("plain", "mt")}
    spent = {each: 0.0 for each in (*INDEXES, "count", *kept)}
    pairs, reports, posts = 0, 0, 0
    for number, batch in enumerate(batches):
        attributes = with_derived(batch.posts, ours.names)
        right: tuple[np.ndarray, np.ndarray] | None = None
        for each, one in counting.items():
            if number == 0:
                one.met(head(batch.columns, 100), attributes.slice(0, 100))  # compiles
            began = time.process_time()
            found = one.met(batch.columns, attributes)
            spent[each] += time.process_time() - began
            if right is not None and not np.array_equal(in_order(*right), in_order(*found)):
                raise AssertionError(f"{each} finds other pairs")
            right = right or found
        assert right is not None
        pairs, posts = pairs + len(right[0]), posts + len(batch.columns)
        began = time.process_time()
        partials = ours.counted(batch.columns, attributes, *right)
        spent["count"] += time.process_time() - began
        ends = batch.columns.ts[[0, -1]] // MINUTE
        for each, one_kept in kept.items():
            began = time.process_time()
            one_kept.add(partials)
            sums = [one_kept.beat(int(minute) * MINUTE) for minute in range(int(ends[0]) + 1, int(ends[1]) + 1)]
            spent[each] += time.process_time() - began
        reports += sum(sums)
    return told(spent, building, kept, ours, len(queries), posts, pairs, reports)


def head(posts: PostColumns, count: int) -> PostColumns:
    end = posts.offsets[count]
    return PostColumns(
        posts.lon[:count], posts.lat[:count], posts.ts[:count], posts.terms[:end], posts.offsets[: count + 1]
    )


def in_order(post: np.ndarray, series: np.ndarray) -> np.ndarray:
    return np.sort(post << 32 | series)


def took(action: Callable[[], Any]) -> float:
    began = time.process_time()
    action()
    return time.process_time() - began


def told(
    spent: dict[str, float],
    building: dict[str, float],
    kept: dict[str, "SeriesCounts"],
    ours: SeriesCounting,
    queries: int,
    posts: int,
    pairs: int,
    reports: int,
) -> dict[str, Any]:
    micros = {each: seconds / posts * 1e6 for each, seconds in spent.items()}
    whole = {each: micros[each] + micros["count"] + micros["plain"] for each in INDEXES}
    whole = {"ch_tree_mt": micros["ch_tree"] + micros["count"] + micros["mt"], **whole}
    tree = size_of(ours.index)
    plain, layered = (tree + each.nbytes for each in kept.values())
    return {
        "posts_per_s": {each: rounded(1e6 / us) for each, us in whole.items()},
        "ch_tree_mt_to_rp_trees": figure(whole["rp_trees"] / whole["ch_tree_mt"], at_least=1.5),
        "ch_tree_mt_to_op_index": figure(whole["op_index"] / whole["ch_tree_mt"], at_least=2.0),
        "ch_tree_mt_to_pyramid": figure(whole["pyramid"] / whole["ch_tree_mt"]),
        "match_to_ch_tree": {each: rounded(micros[each] / micros["ch_tree"]) for each in INDEXES},
        "us_a_post": {each: rounded(us) for each, us in micros.items()},
        "building_s": {each: rounded(seconds) for each, seconds in building.items()},
        "memory_mb": {
            "ch_tree_index": rounded(tree / MB), "ch_tree": rounded(plain / MB), "ch_tree_mt": rounded(layered / MB),
            "ch_tree_mt_to_ch_tree": rounded(layered / plain),
        },
        "queries": queries, "series": len(ours.series), "conditions": len(ours.conditions), "posts": posts,
        "pairs_a_post": rounded(pairs / posts), "reports": reports,
    }  # fmt: skip


# -- what is kept ------------------------------------------------------------------------------------------------------


class SeriesCounts:
    """What series have counted: by interval where they have windows, else all in all."""

    def __init__(self, series: Sequence[Series], rows: Rows, layered: bool) -> None:
        self.indexes: dict[Any, MtIndex] = {}
        self.members: dict[Any, np.ndarray] = {}
        by_index: dict[Any, list[int]] = {}
        for each in series:
            if each.reach:
                by_index.setdefault((class_of(each.shape), each.interval, each.reach), []).append(each.number)
        for key, numbers in by_index.items():
            shape, length, reach = key
            self.indexes[key] = MtIndex(shape, length, -(-reach // length) * length, layered)
            self.members[key] = np.array(sorted(numbers), np.int64)
        self.endless = np.array(sorted(each.number for each in series if not each.reach), np.int64)
        self.totals = Partials({})
        beats = rows.ticks[rows.ticks[:, 0] > 0]
        windows = np.unique(beats[:, [3, 0, 1]], axis=0)  # series, window, beat: what is the same is added up once
        self.asked = {key: windows[np.isin(windows[:, 0], numbers)] for key, numbers in self.members.items()}

    def add(self, partials: Partials) -> None:
        for key, numbers in self.members.items():
            for some in partials.of_class(key[0]).of(numbers).parts.values():
                self.indexes[key].add(some)
        endless = partials.of(self.endless).relabelled(lambda values: np.zeros(len(values), np.int64))
        self.totals = Partials.merged([self.totals, endless])

    def beat(self, now: int) -> int:
        """Add up the windows that end now; how many they are."""
        count = 0
        for key, index in self.indexes.items():
            index.advance(now)
            series, window, beat = self.asked[key].T
            due = now % beat == 0
            index.combine(series[due], now - window[due], np.full(int(due.sum()), now))
            count += int(due.sum())
        return count

    @property
    def nbytes(self) -> int:
        return sum(index.nbytes for index in self.indexes.values()) + size_of(self.totals)


def size_of(thing: Any, known: set[int] | None = None) -> int:
    """Bytes of the arrays in it, each once."""
    known = set() if known is None else known
    if id(thing) in known:
        return 0
    known.add(id(thing))
    if isinstance(thing, np.ndarray | pa.Array | pa.ChunkedArray):
        return int(thing.nbytes)
    if isinstance(thing, dict):
        return sum(size_of(each, known) for each in thing.values())
    if isinstance(thing, list | tuple):
        return sum(size_of(each, known) for each in thing)
    if is_dataclass(thing):
        return sum(size_of(getattr(thing, each.name), known) for each in fields(thing))
    return 0
