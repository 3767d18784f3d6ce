"""Balancing under the papers' disturbances: batches in one process, each worker's processor time taken.

- *posts* and *queries* (seed 000 §7): from some batch on most posts, or many new queries, are of one region; on the
  QT-tree, for the six plans none, PM, FM, PM+FM, FG and PM+FM+FG.
- *scale* (seed 002 §6): places draw together about one point by a factor of 0.4 to 0.7; on the A-Grid.
- *q3* (seed 001 §VI-D): queries of Q3 whose regions change sides one tenth at a time, old ones leaving; on the
  kdt-tree.

A cluster whose workers run side by side is as fast as its busiest worker, so posts a second are the posts of a batch
over the time of that one. *uneven* is the busiest worker's work over the mean, by the work that was counted (posts,
candidates, matches), which no other load of the machine disturbs. *fresh* is a plan made from the disturbed stream
itself: what adjusting can hope for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.bench.balance_plot import draw
from nearcast.bench.figures import Progress, rounded
from nearcast.bench.machine import machine
from nearcast.bench.queries import as_ops
from nearcast.index import subscriptions as standing
from nearcast.pipeline.batch import begin, run_batch
from nearcast.pipeline.observe import CANDIDATE, MATCH
from nearcast.pipeline.settings import Settings
from nearcast.reader.reader import Reader
from nearcast.routing.load import MEASURED
from nearcast.sources.records import normalise
from nearcast.sources.world import World
from nearcast.sources.world.query_sets import q1, q3, sstd
from nearcast.state.directory import StateDirectory
from nearcast.state.manifest import Manifest

SUMMARY = "posts a second before and after the papers' disturbances, for each balancing strategy"
PLANS = ("off", "pm", "fm", "pm+fm", "fg", "pm+fm+fg")
CASES = {
    "posts": ("qt", PLANS),
    "queries": ("qt", PLANS),
    "scale": ("agrid", ("off", "shift")),
    "q3": ("kdt", ("off", "local", "global")),
}
SEARCH = "SELECT * FROM stream WHERE loc INSIDE CIRCLE({}, {}, 50 km) AND text CONTAINS 'coffee'"
CALM = 3  # batches before the disturbance
HOT = 0.02  # of the posts are of the one region, and
CROWD = 0.8  # so many of the later ones come to it


@dataclass
class Stream:
    """Posts by batch and the queries that come before each, disturbed from batch CALM on."""

    case: str
    batch_posts: int
    count: int
    seed: int
    factor: float
    world: World = field(init=False)

    def __post_init__(self) -> None:
        self.world = World(seed=self.seed)
        self.early = normalise(self.world.posts(0, 20_000))[0]
        lon, lat = (self.early[name].to_numpy() for name in ("lon", "lat"))
        self.middle = (float(lon[0]), float(lat[0]))
        away = np.hypot(lon - lon[0], lat - lat[0])
        self.hot = self.early.take(pa.array(np.argsort(away, kind="stable")[: int(HOT * len(lon))]))

    def posts(self, number: int) -> pa.Table:
        posts = normalise(self.world.posts(20_000 + number * self.batch_posts, self.batch_posts))[0]
        if number < CALM or self.case not in ("posts", "scale"):
            return posts
        rng = np.random.default_rng((self.seed, number))
        places = {name: posts[name].to_numpy().copy() for name in ("lon", "lat")}
        moved = rng.random(len(posts)) < CROWD
        at = rng.integers(0, len(self.hot), int(moved.sum()))
        for (name, values), middle, bound in zip(places.items(), self.middle, (180.0, 90.0), strict=True):
            if self.case == "scale":
                values[:] = middle + (values - middle) * self.factor
            else:
                values[moved] = self.hot[name].to_numpy()[at] + rng.normal(0, 0.02, len(at))
            column = posts.schema.get_field_index(name)
            posts = posts.set_column(column, name, pa.array(np.clip(values, -bound, bound)))
        return posts

    def ops(self, number: int) -> pa.Table | None:
        if number == 0:
            made = q3 if self.case == "q3" else q1
            return as_ops(made(self.early, self.count, self.seed))
        if number == CALM and self.case == "queries":
            return as_ops(sstd(self.hot, self.count, self.seed, first=self.count, area_share=1e-6))
        if number >= CALM and self.case == "q3":
            step = self.count // 10
            first = self.count + (number - CALM) * step
            new = as_ops(q3(self.early, step, self.seed, first=first, switch_every=step))
            gone = new.slice(0, step)
            op = pa.array(["unsubscribe"] * step, pa.string())
            old = pa.array(np.arange(first - self.count, first - self.count + step))
            gone = gone.set_column(0, "op", op).set_column(1, "id", old)
            return pa.concat_tables([gone, new])
        return None


def run(
    progress: Progress,
    *,
    cases: tuple[str, ...] = tuple(CASES),
    subscriptions: int = 50_000,
    batch_posts: int = 40_000,
    batches: int = 24,
    workers: int = 8,
    ratio: float = 2.0,
    factor: float = 0.5,
    seed: int = 1,
    folder: str | None = None,
    png: str | None = None,
) -> dict[str, Any]:
    """`ratio` is λ, and σ of PS2Stream; `factor` is the scale of Tornado's disturbance; `--png` draws the loads."""
    cases = (cases,) if isinstance(cases, str) else cases
    standing.KEPT = workers  # one process works for all of them in turn
    figures: dict[str, Any] = {}
    for case in cases:
        router, strategies = CASES[case]
        stream = Stream(case, batch_posts, subscriptions, seed, factor)
        with TemporaryDirectory(prefix="nearcast-bench-", dir=folder) as scratch:
            fresh = Run(Path(scratch) / "fresh", stream, Settings(workers=workers, router=router, balance="off"))
            figures[case] = {"router": router, "fresh": fresh.disturbed_from_the_start()}
            for name in strategies:
                settings = Settings(workers=workers, router=router, balance=name, ratio=ratio, merge=False)
                each = Run(Path(scratch) / name, stream, settings).through(batches)
                each["of_fresh"] = rounded(each["posts_per_s_after"] / figures[case]["fresh"]["posts_per_s"])
                figures[case][name] = each
                progress(line(case, name, each))
    if png:
        draw(Path(png), figures, CALM)
    parameters = {
        "subscriptions": subscriptions, "batch_posts": batch_posts, "batches": batches, "workers": workers,
        "ratio": ratio, "factor": factor, "seed": seed,
    }  # fmt: skip
    return {"bench": "balance", "machine": machine(), "parameters": parameters, "figures": figures}


def line(case: str, name: str, each: dict[str, Any]) -> str:
    return (
        f"{case:8} {name:9} {each['posts_per_s_before']:>10,.0f} {each['posts_per_s_disturbed']:>10,.0f} "
        f"{each['posts_per_s_after']:>10,.0f} posts/s before, disturbed, after ({each['of_fresh']:.2f} of fresh) · "
        f"uneven {each['uneven_before']:.2f}, {each['uneven_disturbed']:.2f}, {each['uneven_after']:.2f} · "
        f"{each['adjustments']} adjustments, {each['queries_moved']:,} queries moved"
    )


def uneven(manifest: Manifest) -> float:
    """The busiest worker's work of a batch over the mean."""
    work = [
        MEASURED.c2 * each["stored"] + CANDIDATE * each["candidates"] + MATCH * each["matches"]
        for each in manifest.load
    ]
    return max(work) / (sum(work) / len(work))


class Run:
    """One state under one strategy."""

    def __init__(self, root: Path, stream: Stream, settings: Settings) -> None:
        self.state, self.stream, self.settings = StateDirectory(root), stream, settings

    def disturbed_from_the_start(self) -> dict[str, float]:
        """A plan that was made from the disturbed stream."""
        stream, batches = self.stream, range(CALM, CALM + 4)
        asked = [each for each in map(stream.ops, range(CALM + 1)) if each is not None]
        ops = pa.concat_tables(asked)
        begin(self.state, self.settings, stream.posts(CALM), ops)
        for each in asked:
            run_batch(self.state, self.settings, ops=each)
        done = [run_batch(self.state, self.settings, [stream.posts(n)]) for n in batches][1:]
        return {"posts_per_s": rounded(median(map(self.rate, done))), "uneven": rounded(median(map(uneven, done)))}

    def through(self, batches: int) -> dict[str, Any]:
        stream, settings = self.stream, self.settings
        begin(self.state, settings, stream.early, stream.ops(0))
        rates, skew, seconds, told = [], [], [], 0
        for number in range(batches):
            ops = stream.ops(number)
            if ops is not None:
                run_batch(self.state, settings, ops=ops)
            posts = stream.posts(number)
            began = perf_counter()
            manifest = run_batch(self.state, settings, [posts])
            seconds.append((len(manifest.adjustments) > told, perf_counter() - began))
            told = len(manifest.adjustments)
            rates.append(self.rate(manifest))
            skew.append(uneven(manifest))
        made = manifest.adjustments
        with_, without = ([each for adjusted, each in seconds[1:] if adjusted is which] for which in (True, False))
        return {
            "posts_per_s_before": rounded(median(rates[1:CALM])),
            "posts_per_s_disturbed": rounded(median(rates[CALM : CALM + 2])),
            "posts_per_s_after": rounded(median(rates[-4:])),
            "uneven_before": rounded(median(skew[1:CALM])),
            "uneven_disturbed": rounded(median(skew[CALM : CALM + 2])),
            "uneven_after": rounded(median(skew[-4:])),
            "uneven": [rounded(each) for each in skew],
            "adjusted": [number for number, (adjusted, _) in enumerate(seconds) if adjusted],
            "adjustments": len(made),
            "queries_moved": sum(each["queries"] for each in made),
            "decided_ms": max((each["decided_ms"] for each in made), default=0.0),
            "adjusted_ms": max((each["adjusted_ms"] for each in made), default=0.0),
            "batch_longer_s": rounded(max(with_, default=0.0) - median(without)) if with_ else 0.0,
            "search_ms": rounded(median(self.searched())),
        }

    def rate(self, manifest: Manifest) -> float:
        """Posts a second, by the busiest worker."""
        return self.stream.batch_posts / max(float(each["seconds"]) for each in manifest.load)

    def searched(self) -> Iterator[float]:
        reader = Reader(self.state)
        for lon, lat in zip(
            *(self.stream.early[name].slice(0, 21).to_pylist() for name in ("lon", "lat")), strict=True
        ):
            began = perf_counter()
            len(list(reader.search(SEARCH.format(lon, lat))))
            yield (perf_counter() - began) * 1000
