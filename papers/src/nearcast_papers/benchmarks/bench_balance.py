"""Balancing under the papers' disturbances: batches in one process, each worker's processor time taken.

- *posts* and *queries* (SSTD §7): from some batch on most posts, or many new queries, are of one region; on the
  QT-tree, for the six plans none, PM, FM, PM+FM, FG and PM+FM+FG.
- *scale* (Tornado §6): places draw together about one point by a factor of 0.4 to 0.7; on the A-Grid.
- *q3* (PS2Stream §VI-D): queries of Q3 whose regions change sides one tenth at a time, old ones leaving; on the
  kdt-tree.

A cluster whose workers run side by side is as fast as its busiest worker, so posts a second are the posts of a batch
over the time of that one. *uneven* is the busiest worker's work over the mean, by the work that was counted (posts,
candidates, matches), which no other load of the machine disturbs; *by_work* are the posts over the busiest worker's, so
counted. *fresh* is a plan made from the disturbed stream itself, as it is in the last batches: what adjusting can hope
for. *within_5* is the best that a plan came to between its first five adjustments and those after them, as a share of
fresh, and *needed* how many it had made when it first had AIM of that.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.errors import BadInput
from nearcast.engine.balance_rehearsal import rehearse
from nearcast.engine.begin import begin
from nearcast.engine.local import run_locally
from nearcast.engine.settings import Settings
from nearcast.partitioning.worker_load import CANDIDATE, MATCH, MEASURED
from nearcast.reader.reader import Reader
from nearcast.sources.records import normalise
from nearcast.sources.world import World
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import Manifest
from nearcast.storage.subscriptions import subscription_set as standing
from nearcast_papers.benchmarks.balance_plot import draw
from nearcast_papers.benchmarks.bench_routing import words
from nearcast_papers.benchmarks.bulk_queries import as_ops
from nearcast_papers.benchmarks.figures import Progress, figure, rounded
from nearcast_papers.benchmarks.machine import machine
from nearcast_papers.query_sets import q1, q3, sstd

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
LAST = 4  # batches, that tell what came of it
AIM, SOON = 0.85, 5  # of fresh, within so many adjustments
COLUMNS = {  # of the table, and their titles
    "posts_per_s_before": "before/s", "posts_per_s_disturbed": "disturbed/s", "posts_per_s_after": "after/s",
    "of_fresh": "of fresh", "of_fresh_by_work": "by work", "worth": "to off", "uneven_disturbed": "uneven",
    "uneven_after": "uneven after", "adjustments": "adjusted", "needed": "needed", "queries_moved": "moved",
    "decided_ms": "decide ms", "adjusted_ms": "move ms", "batch_longer_s": "longer s", "search_ms": "search ms",
}  # fmt: skip


@dataclass
class DisturbedStream:
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
        self.posts = lru_cache(maxsize=None)(self._posts)  # every plan gets the same

    def _posts(self, number: int) -> pa.Table:
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

    def asked(self, until: int) -> tuple[list[pa.Table], pa.Table]:
        """The ops before batch `until`, and of the subscriptions those that still stand then."""
        some = [each for each in map(self.ops, range(until)) if each is not None]
        whole = pa.concat_tables(some)
        comes = pc.equal(whole["op"], "subscribe")
        gone = whole["id"].filter(pc.invert(comes)).combine_chunks()
        return some, whole.filter(pc.and_(comes, pc.invert(pc.is_in(whole["id"], gone))))


def run(
    progress: Progress,
    *,
    cases: str = ",".join(CASES),
    subscriptions: int = 50_000,
    batch_posts: int = 40_000,
    batches: int = 24,
    workers: int = 8,
    ratio: float = 2.0,
    factors: str | float = "0.4,0.5,0.6,0.7",
    seed: int = 1,
    folder: str | None = None,
    png: str | None = None,
) -> dict[str, Any]:
    """`--cases posts,scale` picks some; `ratio` is λ, and σ of PS2Stream; `factors` are the scales of Tornado's
    disturbance, a case each; `--png` draws the loads.
    """
    least = CALM + LAST + 2
    if batches < least:
        raise BadInput(f"--batches must be at least {least}: {CALM} before the disturbance, and some to follow it")
    standing.KEPT = workers  # one process works for all of them in turn
    figures: dict[str, Any] = {}
    for title, case, factor in chosen(words("cases", cases, CASES), factors):
        router, strategies = CASES[case]
        stream = DisturbedStream(case, batch_posts, subscriptions, seed, factor)
        progress(row(f"{title} ({router})", COLUMNS.values()))
        with TemporaryDirectory(prefix="nearcast-bench-", dir=folder) as scratch:
            settings = Settings(workers=workers, router=router, balance="off", merge=False)
            fresh = BalanceRun(Path(scratch) / "fresh", stream, settings).made_afresh(batches)
            figures[title] = {"router": router, "fresh": fresh}
            for name in strategies:
                each = replace(settings, balance=name, ratio=ratio)
                figures[title][name] = found = BalanceRun(Path(scratch) / name, stream, each).through(batches, fresh)
                found["worth"] = worth(case, found, figures[title]["off"])
                progress(row(name, [found[column] for column in COLUMNS]))
    if png:
        draw(Path(png), figures, CALM)
    parameters = {
        "subscriptions": subscriptions, "batch_posts": batch_posts, "batches": batches, "workers": workers,
        "ratio": ratio, "factors": factors, "seed": seed,
    }  # fmt: skip
    return {"bench": "balance", "machine": machine(), "parameters": parameters, "figures": figures}


def chosen(cases: Sequence[str], factors: str | float) -> Iterator[tuple[str, str, float]]:
    """(title, case, factor) of each case, that of the scales once for each factor."""
    try:
        scales = [float(part) for part in str(factors).split(",")]
    except ValueError:
        raise BadInput(f"--factors takes numbers with commas between them, not {factors!r}") from None
    for case in cases:
        if case == "scale":
            yield from ((f"scale {factor:g}", case, factor) for factor in scales)
        else:
            yield case, case, 1.0


def row(name: str, values: Iterable[Any]) -> str:
    """One line of the table."""
    return f"{name:16}" + "".join(f"{shown(value):>13}" for value in values)


def shown(value: Any) -> str:
    value = value["value"] if isinstance(value, dict) else value
    if value is None or isinstance(value, str):
        return value or "-"
    return f"{value:,.3g}" if isinstance(value, float) and value < 1000 else f"{value:,.0f}"


def counted(manifest: Manifest) -> list[float]:
    """The work of each worker in a batch, in microseconds, by what it was seen to do."""
    return [
        MEASURED.c2 * each["stored"] + CANDIDATE * each["candidates"] + MATCH * each["matches"]
        for each in manifest.load
    ]


def uneven(manifest: Manifest) -> float:
    """The busiest worker's work of a batch over the mean."""
    work = counted(manifest)
    return max(work) / (sum(work) / len(work))


def worth(case: str, found: dict[str, Any], off: dict[str, Any]) -> dict[str, Any]:
    """Posts a second in the end over those without adjusting, by the work that was counted (PS2Stream §VI-D: 1.26)."""
    return figure(found["of_fresh_by_work"] / off["of_fresh_by_work"], at_least=1.26 if case == "q3" else None)


def came_to(rates: Sequence[float], adjusted: Sequence[int], fresh: float) -> tuple[float, int | None]:
    """(the best share of `fresh` that the first SOON adjustments led to; after how many there was AIM of it, if ever).

    What an adjustment led to is the median of the batches from then to the next.
    """
    later = [number for number in adjusted if number >= CALM]
    bounds = [*later, len(rates) - 1]
    shares = [median(rates[begin + 1 : end + 1]) / fresh for begin, end in pairwise(bounds[: SOON + 1]) if end > begin]
    enough = (number for number, share in enumerate(shares, 1) if share >= AIM)
    return max(shares, default=median(rates[-LAST:]) / fresh), next(enough, None)


class BalanceRun:
    """One state under one strategy."""

    def __init__(self, root: Path, stream: DisturbedStream, settings: Settings) -> None:
        self.state, self.stream, self.settings = StateDirectory(root), stream, settings

    def made_afresh(self, batches: int) -> dict[str, float]:
        """A plan that was made from the disturbed stream."""
        stream, first = self.stream, batches - LAST
        asked, live = stream.asked(batches)
        begin(self.state, self.settings, stream.posts(first), live)
        for each in asked:
            run_locally(self.state, self.settings, ops=each)
        done = [run_locally(self.state, self.settings, [stream.posts(n)]) for n in range(first, batches)][1:]
        return {
            "posts_per_s": rounded(median(map(self.rate, done))),
            "by_work": rounded(median(map(self.by_work, done))),
            "uneven": rounded(median(map(uneven, done))),
        }

    def through(self, batches: int, fresh: dict[str, float]) -> dict[str, Any]:
        stream, settings = self.stream, self.settings
        begin(self.state, settings, stream.early, stream.ops(0))
        rates, by_work, skew, seconds, told = [], [], [], [], 0
        for number in range(batches):
            ops = stream.ops(number)
            if ops is not None:
                run_locally(self.state, settings, ops=ops)
            posts = stream.posts(number)
            began = perf_counter()
            manifest = run_locally(self.state, settings, [posts])
            seconds.append((len(manifest.adjustments) > told, perf_counter() - began))
            told = len(manifest.adjustments)
            if number == 0 and (first := rehearse(self.state, settings, manifest)):  # as a stream does
                first.join()
            rates.append(self.rate(manifest))
            by_work.append(self.by_work(manifest))
            skew.append(uneven(manifest))
        made = manifest.adjustments
        with_, without = ([each for changed, each in seconds[1:] if changed is which] for which in (True, False))
        adjusted = [number for number, (changed, _) in enumerate(seconds) if changed]
        best, _ = came_to(rates, adjusted, fresh["posts_per_s"])
        steady, needed = came_to(by_work, adjusted, fresh["by_work"])
        return {
            "posts_per_s_before": rounded(median(rates[1:CALM])),
            "posts_per_s_disturbed": rounded(median(rates[CALM : CALM + 2])),
            "posts_per_s_after": rounded(median(rates[-LAST:])),
            "of_fresh": rounded(median(rates[-LAST:]) / fresh["posts_per_s"]),
            "of_fresh_by_work": rounded(median(by_work[-LAST:]) / fresh["by_work"]),
            "within_5": figure(best, at_least=AIM),
            "within_5_by_work": figure(steady, at_least=AIM),
            "needed": needed,
            "uneven_before": rounded(median(skew[1:CALM])),
            "uneven_disturbed": rounded(median(skew[CALM : CALM + 2])),
            "uneven_after": rounded(median(skew[-LAST:])),
            "uneven": [rounded(each) for each in skew],
            "adjusted": adjusted,
            "adjustments": len(made),
            "queries_moved": sum(each["queries"] for each in made),
            "decided_ms": max((each["decided_ms"] for each in made), default=0.0),
            "decided": figure([each["decided_ms"] for each in made], at_most=100) if made else None,
            "adjusted_ms": max((each["adjusted_ms"] for each in made), default=0.0),
            "batch_longer_s": rounded(max(with_, default=0.0) - median(without)) if with_ else 0.0,
            "longer": figure([each - median(without) for each in with_], at_most=1.0) if with_ else None,
            "search_ms": rounded(median(self.searched())),
        }

    def rate(self, manifest: Manifest) -> float:
        """Posts a second, by the busiest worker."""
        return self.stream.batch_posts / max(float(each["seconds"]) for each in manifest.load)

    def by_work(self, manifest: Manifest) -> float:
        """The same by the work that was counted."""
        return self.stream.batch_posts / max(max(counted(manifest)), 1e-9) * 1e6

    def searched(self) -> Iterator[float]:
        reader = Reader(self.state)
        for lon, lat in zip(
            *(self.stream.early[name].slice(0, 21).to_pylist() for name in ("lon", "lat")), strict=True
        ):
            began = perf_counter()
            len(list(reader.search(SEARCH.format(lon, lat))))
            yield (perf_counter() - began) * 1000
