"""Distributions of subscribers of relevance compared (Skype §8.2, Table 5, Figures 21, 22, 25 and 26).

A distribution is built from one sample of posts and measured on others. `shared` counts what any index has to start
from: (subscriber, post, word) where the word is in both and the two meet at a worker. With a matcher, each worker's
share is matched in turn on this machine, and what that took is what the busiest would take on a core of its own.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from nearcast.kinds.relevance.distributions.keyword_first import KeywordFirst
from nearcast.kinds.relevance.distributions.prefix import Prefix
from nearcast.kinds.relevance.distributions.protocol import Distribution, messages, replication
from nearcast.kinds.relevance.distributions.registry import KINDS, build
from nearcast.kinds.relevance.distributions.spatial_first import SpatialFirst
from nearcast.kinds.relevance.vectors import Profiles, Vectors
from nearcast.storage.subscriptions.rows import take_lists
from nearcast_papers.benchmarks.figures import Progress, rounded

COLUMNS = {  # and what each says
    "distribution": "by name; prefix/sum has the paper's bound of the loose prefix",
    "workers": "subscription bolts",
    "parts": "l1 x l2 of a hybrid",
    "replication": "workers that hold a subscriber",
    "messages": "workers that a post is sent to",
    "held_max_to_mean": "subscribers of the fullest worker, to the mean",
    "shared": "common words looked up a post, by all workers",
    "shared_busiest": "by the busiest of them",
    "shared_max_to_mean": "the busiest to the mean",
    "looked": "pairs looked at one by one, a post, by all workers",
    "us_a_post": "core-µs to match a post, by all workers",
    "us_busiest": "by the busiest of them",
    "found": "pairs a post, each counted once",
    "found_again": "pairs a post that a second worker found too",
    "us_to_send": "core-µs to tell a post's workers",
    "us_to_place": "core-µs to tell a subscriber's workers",
    "build_s": "core-seconds, from the sample",
}
CREWS = (4, 8, 16, 32)
HYBRIDS = (SpatialFirst.name, KeywordFirst.name)
Row = dict[str, Any]


class MatchedPairs(Protocol):
    @property
    def rows(self) -> np.ndarray: ...

    @property
    def posts(self) -> np.ndarray: ...

    @property
    def looked(self) -> int: ...


class PairIndex(Protocol):
    def match(self, posts: Vectors) -> MatchedPairs: ...


Indexer = Callable[[Profiles, np.ndarray], PairIndex]


def distribution_figures(
    profiles: Profiles,
    theta: np.ndarray,
    posts: Vectors,
    known: Vectors,
    words_frequency: tuple[np.ndarray, np.ndarray],
    *,
    workers: Sequence[int] = CREWS,
    matcher: Indexer | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """A row of COLUMNS for every distribution and number of workers, and for the hybrids at every l1 x l2 of the
    largest number. `known` is the sample of posts; `matcher` makes the index of a worker (such as
    `kinds.relevance.index.build`), without it the columns that need one are None.
    """
    tell = progress or (lambda text: None)
    tell(line(list(COLUMNS)))
    rows = []
    if matcher is not None:  # compiled beforehand
        matcher(profiles.take(np.arange(min(len(profiles), 50))), theta[:50]).match(
            posts.take(np.arange(len(posts))[:50])
        )
    for name, crew, options in variants(workers):
        began = time.process_time()
        distribution = build(name, profiles, theta, known, crew, words_frequency, **options)
        built = time.process_time() - began
        row = measure(distribution, profiles, theta, posts, matcher) | {"build_s": rounded(built)}
        parts = options.get("parts")
        row |= {"distribution": f"{name}/sum" if options.get("by_sum") else name, "workers": crew}
        row |= {"parts": f"{parts}x{crew // parts}" if parts else None}
        rows.append({column: row[column] for column in COLUMNS})
        tell(line(list(rows[-1].values())))
    return rows


def variants(workers: Sequence[int]) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """(name, workers, options): the plain ones for each number of workers, then the hybrids in all ways to cut the
    largest number that leave nothing over.
    """
    for crew in sorted(workers):
        for name in KINDS:
            if name not in HYBRIDS:
                yield name, crew, {}
        yield Prefix.name, crew, {"by_sum": True}
    most = max(workers)
    for name in HYBRIDS:
        for parts in (2**n for n in range(most.bit_length()) if most % 2**n == 0):
            yield name, most, {"parts": parts}


def measure(
    distribution: Distribution, profiles: Profiles, theta: np.ndarray, posts: Vectors, matcher: Indexer | None
) -> Row:
    few = profiles.take(np.arange(min(len(profiles), 10)))
    distribution.holders(few, theta[: len(few)])  # compiled beforehand
    distribution.targets(posts)
    began = time.process_time()
    holders = distribution.holders(profiles, theta)
    placed = time.process_time()
    targets = distribution.targets(posts)
    sent = time.process_time()
    count = max(len(posts), 1)
    shared = shared_words(profiles, posts, holders, targets)
    held = holders.sum(axis=0)
    row = {
        "replication": replication(holders),
        "messages": messages(targets),
        "held_max_to_mean": uneven(held),
        "shared": shared.sum() / count,
        "shared_busiest": shared.max() / count,
        "shared_max_to_mean": uneven(shared),
        "us_to_place": (placed - began) / max(len(profiles), 1) * 1e6,
        "us_to_send": (sent - placed) / count * 1e6,
    }
    matched = matched_by(matcher, profiles, theta, posts, holders, targets) if matcher is not None else {}
    for column in ("looked", "us_a_post", "us_busiest", "found", "found_again"):
        row[column] = matched[column] / count if matched else None
    return {column: None if value is None else rounded(float(value)) for column, value in row.items()}


def shared_words(profiles: Profiles, posts: Vectors, holders: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """For each worker, the (subscriber, post, word) it has to do with."""
    terms, own = np.unique(np.concatenate((profiles.words, posts.terms)), return_inverse=True)
    words, used = own[: len(profiles.words)], own[len(profiles.words) :]
    out = np.zeros(holders.shape[1])
    for worker in range(len(out)):
        asked, _ = take_lists(words, profiles.offsets, np.flatnonzero(holders[:, worker]))
        shown, _ = take_lists(used, posts.offsets, np.flatnonzero(targets[:, worker]))
        here = np.bincount(asked, minlength=len(terms)).astype(np.float64)
        out[worker] = here @ np.bincount(shown, minlength=len(terms))
    return out


def matched_by(
    matcher: Indexer, profiles: Profiles, theta: np.ndarray, posts: Vectors, holders: np.ndarray, targets: np.ndarray
) -> dict[str, float]:
    """What the workers' matching comes to, one after the other."""
    micros, looked, pairs = [], 0, []
    for worker in range(holders.shape[1]):
        rows, shown = np.flatnonzero(holders[:, worker]), np.flatnonzero(targets[:, worker])
        if not len(rows) or not len(shown):
            micros.append(0.0)
            continue
        index, seen = matcher(profiles.take(rows), theta[rows]), posts.take(shown)
        began = time.process_time()
        found = index.match(seen)
        micros.append((time.process_time() - began) * 1e6)
        looked += found.looked
        pairs.append(rows[found.rows] * len(posts) + shown[found.posts])
    every = np.concatenate(pairs) if pairs else np.empty(0, np.int64)
    once = len(np.unique(every))
    return {
        "looked": looked, "us_a_post": sum(micros), "us_busiest": max(micros), "found": once,
        "found_again": len(every) - once,
    }  # fmt: skip


def uneven(values: np.ndarray) -> float:
    """The greatest to the mean; 1 where there is nothing."""
    return float(values.max() / values.mean()) if values.any() else 1.0


def line(values: Sequence[Any]) -> str:
    """One line of the table."""
    cells = ["-" if value is None else f"{value:,.4g}" if isinstance(value, float) else str(value) for value in values]
    return f"{cells[0]:14}" + "".join(f"{cell[:10]:>11}" for cell in cells[1:])


def plot_data(rows: Sequence[Row]) -> dict[str, dict[str, list[tuple[Any, float]]]]:
    """Panels, each of lines by name, each of points: figures over workers (Figure 22), and the hybrids' over l1 x l2
    (Figures 25 and 26). What was not measured is left out.
    """
    titles = {
        "replication": "workers that hold a subscriber", "messages": "messages a post",
        "shared_busiest": "common words a post, busiest worker", "us_busiest": "core-µs a post, busiest worker",
    }  # fmt: skip
    out: dict[str, dict[str, list[tuple[Any, float]]]] = {}
    for column, title in titles.items():
        for row in rows:
            if row[column] is not None:
                panel = out.setdefault(f"{title}, hybrids" if row["parts"] else title, {})
                at = row["parts"] or row["workers"]
                panel.setdefault(row["distribution"], []).append((at, row[column]))
    return out
