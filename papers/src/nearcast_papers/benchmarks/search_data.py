"""The state that searches are measured on: posts of ten words, in merged segments and a few fresh ones.

Places are those of the generator's world, so they crowd in cities. Words are drawn by rank ⌊vocabulary^u⌋, which gives
every order of magnitude of frequency the same share; a query's word is one of a post's, so half of them occur in fewer
than one post of a thousand (SSTD §7.1: queries are made from sampled posts).
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from nearcast.common.text.tokenizer import Tokenizer
from nearcast.partitioning.routers import uniform_grid
from nearcast.partitioning.routing_table import RoutingTable
from nearcast.sources.world import World
from nearcast.storage.directory import StateDirectory
from nearcast.storage.files import create_exclusively
from nearcast.storage.manifest import POSTS, TERMS, Manifest, SegmentRef, path_of
from nearcast.storage.posts.post_segment import PostSegment, write_posts
from nearcast.storage.term_table import TermTable
from nearcast_papers.benchmarks.figures import Progress
from nearcast_papers.query_sets.query_tables import join_words

WORDS = 10  # a post
WINDOW = 72 * 3600 * 1_000_000
START = World().start
LARGEST = 3_200_000  # a run's, of batches of 100,000 posts, with two workers (`storage.compaction_policy`)
FRESH, FRESH_ROWS = 4, 20_000
PIECES = 8  # that a merged segment is made of
JITTER = 0.01  # degrees, about a place of the sample


@dataclass
class Built:
    """A state, what it cost, and posts to make queries of: (lon, lat, words)."""

    root: Path
    posts: int
    size: int
    merge_us: list[float] = field(default_factory=list)
    sample: list[tuple[float, float, list[str]]] = field(default_factory=list)


def word_list(count: int) -> pa.StringArray:
    """`count` different words that can be spoken, the first ones of two syllables."""
    syllables = [c + v for c in "bcdfghjklmnprstvz" for v in "aeiou"]

    def spell(number: int) -> str:
        word = ""
        while number:
            number, syllable = divmod(number - 1, len(syllables))
            word += syllables[syllable]
        return word

    return pa.array([spell(number + len(syllables) + 1) for number in range(count)], pa.string())


class PostMaker:
    """PostMaker by the thousands, the same for the same seed."""

    def __init__(self, count: int, vocabulary: int, seed: int, exact_places: bool = False) -> None:
        self.count = count
        self.words = word_list(vocabulary)
        self.rng = np.random.default_rng((seed, 0x5EA7C4))
        self.exact_places = exact_places
        near = World(seed=seed).posts(0, 100_000)
        self.lon, self.lat = near["lon"].to_numpy(), near["lat"].to_numpy()
        self.router = RoutingTable(uniform_grid.over(self.lon, self.lat, workers=1))
        self.made = 0

    def take(self, count: int) -> tuple[pa.Table, np.ndarray]:
        """The next posts, as `write_posts` takes them, and the ranks of their words."""
        rng, vocabulary = self.rng, len(self.words)
        at = rng.integers(len(self.lon), size=count)
        lon = np.clip(self.lon[at] + rng.normal(0, JITTER, count), -180, 180)
        lat = np.clip(self.lat[at] + rng.normal(0, JITTER, count), -90, 90)
        if not self.exact_places:
            lon, lat = np.round(lon, 6) + 0.0, np.round(lat, 6) + 0.0
        ranks = (vocabulary ** rng.random((count, WORDS))).astype(np.int32) - 1
        texts = join_words(self.words, ranks, np.full(count, WORDS))
        terms, offsets = Tokenizer().terms(texts)
        numbers = np.arange(self.made, self.made + count)
        ts = START + (numbers * (WINDOW / self.count)).astype(np.int64)
        self.made += count
        columns = {
            "id": numbers, "id_text": pa.nulls(count, pa.string()), "ts": ts, "lon": lon, "lat": lat, "text": texts,
            "leaf": self.router.store(lon, lat).astype(np.int32),
            "terms": pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(terms)),
        }  # fmt: skip
        return pa.table(columns), ranks


def build(
    progress: Progress,
    root: Path,
    posts: int,
    vocabulary: int,
    queries: int,
    seed: int,
    exact_places: bool = False,
    source: PostMaker | None = None,
    segment: int = LARGEST,
) -> Built:
    """Merged segments as a run leaves them, each made from pieces that were read from disk, and fresh ones; of the
    posts of `source`, if there is one.
    """
    state = StateDirectory(root)
    state.create({})
    source = source or PostMaker(posts, vocabulary, seed, exact_places)
    built = Built(root, posts, 0)
    _warm_up(state, vocabulary, seed)
    refs = []
    wanted = np.sort(np.random.default_rng((seed, 0x9E)).integers(posts, size=queries))
    for number, (rows, sealed) in enumerate(_sizes(posts, segment)):
        progress(f"search: segment {number + 1}, {rows:,} posts, {'merged' if sealed else 'fresh'}")
        name = state.new_name(POSTS, number, 0)
        if sealed:
            size, cost = _merged(state, name, source, rows, built, wanted)
            built.merge_us.append(cost)
        else:
            size, _ = write_posts(state.path(name), _remembered(source, rows, built, wanted))
        low, high = _time(source.made - rows, posts), _time(source.made - 1, posts)
        refs.append(SegmentRef(POSTS, name, rows, size, number, min_ts=low, max_ts=high))
        built.size += size
    refs.append(_dictionary(state, source.words))
    manifest = Manifest(version=1, batch=len(refs), clock=_time(posts - 1, posts), segments=tuple(refs))
    create_exclusively(path_of(state.manifests, 1), manifest.to_json())
    np.random.default_rng(seed).shuffle(built.sample)
    return built


def _warm_up(state: StateDirectory, vocabulary: int, seed: int) -> None:
    """Compile what writes and reads segments."""
    path = state.path(state.new_name("pieces", 0, 0))
    write_posts(path, PostMaker(3000, vocabulary, seed).take(3000)[0], sealed=True)
    write_posts(path, PostSegment(path).all().combine_chunks(), sealed=False)
    PostSegment(path).all()


def _time(number: int, posts: int) -> int:
    return START + int(number * (WINDOW / posts))


def _sizes(posts: int, segment: int) -> Iterator[tuple[int, bool]]:
    """Rows of each segment, and whether it is merged: about three of those, and a tail of fresh ones."""
    fresh = min(FRESH_ROWS, posts // 20)
    left = posts - FRESH * fresh
    largest = min(segment, max(1, -(-left * 2 // 5)))
    while left:
        rows = min(largest, left)
        left -= rows
        yield rows, True
    for _ in range(FRESH if fresh else 0):
        yield fresh, False


def _remembered(source: PostMaker, rows: int, built: Built, wanted: np.ndarray) -> pa.Table:
    """The next posts; those of them that queries are to be made of are remembered."""
    first = source.made
    table, ranks = source.take(rows)
    lon, lat = table["lon"].to_numpy(), table["lat"].to_numpy()
    for at in (wanted[(wanted >= first) & (wanted < first + rows)] - first).tolist():
        built.sample.append((float(lon[at]), float(lat[at]), source.words.take(pa.array(ranks[at])).to_pylist()))
    return table


def _merged(
    state: StateDirectory, name: str, source: PostMaker, rows: int, built: Built, wanted: np.ndarray
) -> tuple[int, float]:
    """Write pieces, then read and merge them: (size, processor time a post in µs)."""
    pieces = []
    for piece in range(PIECES):
        count = rows * (piece + 1) // PIECES - rows * piece // PIECES
        path = state.path(state.new_name("pieces", 0, piece))
        write_posts(path, _remembered(source, count, built, wanted))
        pieces.append(path)
    began = time.process_time()
    whole = pa.concat_tables([PostSegment(path).all() for path in pieces]).combine_chunks()
    size, _ = write_posts(state.path(name), whole, sealed=True)
    cost = (time.process_time() - began) / rows * 1e6
    for path in pieces:
        for file in path.parent.glob(path.name.removesuffix(".arrow") + "*"):
            file.unlink()
    return size, cost


def _dictionary(state: StateDirectory, words: pa.StringArray) -> SegmentRef:
    terms, _ = Tokenizer().terms(words)
    order = np.argsort(terms)
    name = state.new_name(TERMS, 0, 0)
    table = TermTable(terms[order], np.ones(len(terms), np.uint64), words.take(pa.array(order)))
    return SegmentRef(TERMS, name, len(terms), table.write(state.path(name)), 0)
