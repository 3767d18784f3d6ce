"""The experiments of Skype §8.1: indexes of subscribers, buffer policies, and what both depend on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from time import process_time
from typing import Any

import numpy as np

from nearcast.kinds.relevance import index as igpt_batch
from nearcast.kinds.relevance.matcher import Matcher
from nearcast.kinds.relevance.skyband_policy import CostBased, Policy
from nearcast.kinds.relevance.vectors import Profiles
from nearcast_papers.baselines import igpt
from nearcast_papers.baselines.buffer_policies import Kmax, PlainSkyband
from nearcast_papers.baselines.matchers import MATCHERS
from nearcast_papers.benchmarks.figures import Progress, figure, rounded
from nearcast_papers.benchmarks.topk_distribution import distribution_figures
from nearcast_papers.benchmarks.topk_stream import BufferedStream, SlidingWindow, TopkSetting, measure

Figures = dict[str, Any]
Build = Callable[[Profiles, np.ndarray], Matcher]
POLICIES: dict[str, Policy] = {"cskyband": CostBased(), "kmax": Kmax(), "skyband": PlainSkyband()}
LONGEST = 1.8  # times k, of a buffer on average


@dataclass(frozen=True)
class TopkSizes:
    """What every experiment takes; `small` is the number of subscribers where something is varied."""

    subscribers: int
    small: int
    window: int
    posts: int
    batch: int
    single: int  # posts for indexes that take them one at a time
    k: int
    seed: int

    def setting(self, count: int, **changes: Any) -> TopkSetting:
        window = changes.pop("window", SlidingWindow(self.window))
        return TopkSetting.make(count, window, self.posts, **{"k": self.k, "seed": self.seed, **changes})


@lru_cache(maxsize=1)
def skype(options: TopkSizes) -> tuple[Figures, BufferedStream]:
    """cSkyband with all subscribers, measured once for all that begin from it: filling buffers takes the longest."""
    return measure(options.setting(options.subscribers), CostBased(), options.batch)


def match_time(build: Build, stream: BufferedStream, posts: int, at_once: int) -> Figures:
    """Of an index over the subscribers and thresholds that a stream was left with, for its last posts."""
    profiles, theta = stream.setting.profiles, stream.buffers.theta
    began = process_time()
    matcher = build(profiles, theta)
    built = process_time() - began
    count = len(stream.setting.posts)
    some = stream.setting.posts.take(np.arange(count - min(posts, count), count))
    matcher.match(some.take(np.arange(1)))
    seconds, pairs, looked = 0.0, 0, 0
    for first in range(0, len(some), at_once):
        part = some.take(np.arange(first, min(first + at_once, len(some))))
        began = process_time()
        found = matcher.match(part)
        seconds += process_time() - began
        pairs += len(found)
        looked += found.looked
    return {
        "us_a_post": rounded(seconds / len(some) * 1e6),
        "pairs_a_post": rounded(pairs / len(some)),
        "looked_a_post": rounded(looked / len(some)),
        "bytes_a_subscriber": rounded(matcher.nbytes / max(1, len(profiles))),
        "build_s": rounded(built),
        "posts": len(some),
    }


def dissemination(progress: Progress, options: TopkSizes) -> Figures:
    """IGPT in batches and post by post, IPT and CIQ (Figures 12 and 13), over thresholds of full buffers."""
    progress(f"dissemination: {options.subscribers:,} subscribers, window {options.window:,}")
    _, stream = skype(options)
    out: Figures = {}
    for name in ("batch", "igpt", "ipt", "ciq"):
        posts, at_once = (4 * options.batch, options.batch) if name == "batch" else (options.single, 1)
        out[name] = match_time(MATCHERS[name], stream, posts, at_once)
        progress(f"dissemination: {name} {out[name]['us_a_post']:,} core-µs a post")
    batch, one = out["batch"]["us_a_post"], out["igpt"]["us_a_post"]
    out["batch_times_igpt"] = figure(one / batch, at_least=10)
    out["igpt_times_ipt"] = figure(out["ipt"]["us_a_post"] / one)
    out["igpt_times_ciq"] = figure(out["ciq"]["us_a_post"] / one)
    return out


def reevaluation(progress: Progress, options: TopkSizes) -> Figures:
    """cSkyband, kmax and Skyband (Figure 14, Table 4), and Skype against CIQ-kmax, all in all."""
    out: Figures = {}
    for name, policy in POLICIES.items():
        progress(f"re-evaluation: {name}")
        out[name], stream = (
            skype(options) if name == "cskyband" else measure(skype(options)[1].setting, policy, options.batch)
        )
        if name == "kmax":
            ciq = match_time(MATCHERS["ciq"], stream, options.single, 1)
            out["ciq_kmax"] = {
                "arrival_us": rounded(ciq["us_a_post"] + out[name]["arrive_us"]), "expiry_us": out[name]["expiry_us"],
                "us_a_post": rounded(ciq["us_a_post"] + out[name]["arrive_us"] + out[name]["expiry_us"]),
            }  # fmt: skip
        if name == "cskyband":
            out["bytes_a_subscriber"] = figure(
                (stream.matcher.nbytes + stream.buffers.nbytes) / options.subscribers, at_most=1024
            )
    out["skype_times_ciq_kmax"] = figure(out["ciq_kmax"]["us_a_post"] / out["cskyband"]["us_a_post"], at_least=10)
    out["expiry_times_kmax"] = figure(out["kmax"]["expiry_us"] / max(out["cskyband"]["expiry_us"], 1e-3))
    out["expiry_times_skyband"] = figure(out["skyband"]["expiry_us"] / max(out["cskyband"]["expiry_us"], 1e-3))
    out["buffer"] = figure(out["cskyband"]["buffer"], at_most=rounded(LONGEST * options.k))
    return out


def skype_and_ciq(options: TopkSizes, setting: TopkSetting) -> Figures:
    """Arrival and expiry of Skype and of CIQ-kmax, as Figures 15 to 20 have them."""
    skype, _ = measure(setting, CostBased(), options.batch)
    kmax, stream = measure(setting, POLICIES["kmax"], options.batch)
    ciq = match_time(MATCHERS["ciq"], stream, options.single, 1)
    arrival = ciq["us_a_post"] + kmax["arrive_us"]
    return {
        "skype": skype,
        "ciq_kmax": {
            "us_a_post": rounded(arrival + kmax["expiry_us"]), "arrival_us": rounded(arrival),
            "expiry_us": kmax["expiry_us"], "buffer": kmax["buffer"], "refills_a_post": kmax["refills_a_post"],
        },
    }  # fmt: skip


def sweep(
    progress: Progress, options: TopkSizes, name: str, values: Sequence[Any], setting: Callable[[Any], TopkSetting]
) -> Figures:
    out = {}
    for value in values:
        progress(f"{name} {value}")
        out[str(value)] = skype_and_ciq(options, setting(value))
    return out


def words(progress: Progress, options: TopkSizes) -> Figures:
    """One to five words (Figure 15), and words of Zipf's law (Figure 19)."""
    out = sweep(progress, options, "words", range(1, 6), lambda n: options.setting(options.small, words=(n, n)))
    return out | sweep(progress, options, "words", ["zipf"], lambda _: options.setting(options.small, zipf=True))


def k(progress: Progress, options: TopkSizes, values: Sequence[int]) -> Figures:
    """Figure 16."""
    return sweep(progress, options, "k", values, lambda k: options.setting(options.small, k=k))


def subscribers(progress: Progress, options: TopkSizes, times: Sequence[int]) -> Figures:
    """Figure 17."""
    counts = [n * options.small for n in times]
    return sweep(progress, options, "subscribers", counts, options.setting)


def windows(progress: Progress, options: TopkSizes, times: Sequence[int]) -> Figures:
    """Figure 18."""
    sizes = [n * options.window for n in times]
    return sweep(
        progress, options, "window", sizes, lambda posts: options.setting(options.small, window=SlidingWindow(posts))
    )


def time(progress: Progress, options: TopkSizes, values: Sequence[int]) -> Figures:
    """A window of time, in which the rate of posts goes up and down, by k (Figure 20)."""
    timed = SlidingWindow(options.window, timed=True)
    return sweep(progress, options, "k, time", values, lambda k: options.setting(options.small, k=k, window=timed))


def groups(progress: Progress, options: TopkSizes, values: Sequence[int]) -> Figures:
    """Groups of like alpha in IGPT (Figure 11)."""
    _, stream = measure(options.setting(options.small), CostBased(), options.batch)
    out = {}
    for count in values:
        progress(f"groups {count}")
        out[str(count)] = match_time(partial(igpt.build, groups=count), stream, options.single, 1)
    return out


def policies(progress: Progress, options: TopkSizes, tried: dict[str, Policy]) -> Figures:
    """Policies compared with cSkyband (Figure 10)."""
    setting, out = options.setting(options.small), {}
    for name, policy in {"cskyband": POLICIES["cskyband"], **tried}.items():
        progress(f"buffers of {name}")
        out[name], _ = measure(setting, policy, options.batch)
    return out


def distribution(progress: Progress, options: TopkSizes, workers: Sequence[int]) -> list[Figures]:
    """Ways to spread subscribers over workers (Figures 21, 22, 25, 26; Table 5)."""
    _, stream = measure(options.setting(options.small), CostBased(), options.batch)
    setting = stream.setting
    last = setting.posts.take(np.arange(len(setting.posts) - options.batch, len(setting.posts)))
    known = setting.posts.take(np.arange(min(50_000, setting.first)))
    idf = setting.idf
    return distribution_figures(
        setting.profiles, stream.buffers.theta, last, known, (idf.term, idf.count), workers=workers,
        matcher=igpt_batch.build, progress=progress,
    )  # fmt: skip
