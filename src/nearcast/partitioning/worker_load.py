"""The load of a worker by PS2Stream (PS2Stream §IV-A, Definition 1), and the posts and queries that it comes from.

    L = c1·|O|·|Q| + c2·|O| + c3·|Q| + c4·|Q deleted|

A query is filed under one word of each of its conjunctions, the rarest. A part of the text gets the posts that have a
word which one of its queries is filed under; others are dropped on the way (H2 of §IV-C), in parts of space as well. A
query without a word wants all posts of its place.
"""

from dataclasses import dataclass

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.common.kernels.grid import grid_leaves
from nearcast.partitioning.kernels.query_counts import known_words
from nearcast.partitioning.kernels.word_division import inside, sent_posts, wanted_posts
from nearcast.partitioning.router_sample import CRQ, CTQ, Queries, RouterSample, SampledPosts
from nearcast.partitioning.sample_tally import CELLS, Extent, Rectangle, extent_of, rectangles_of
from nearcast.storage.subscriptions.kernels.register import key_terms
from nearcast.storage.subscriptions.rows import take_lists

MOST = 100_000  # posts, and queries, that a plan is made with


@dataclass(frozen=True)
class LoadCosts:
    """c1 to c4 in microseconds, as measured on this system (2 cores of a small virtual machine, queries Q1 and Q2 of
    PS2Stream §VI-A): checking a post against one more subscription of the index, carrying a post to a worker and
    looking it up, filing a subscription, ending one. `deletions` is |Q deleted| / |Q|; as many go as come (§VI-A).
    """

    c1: float = 4e-5
    c2: float = 2.5
    c3: float = 0.8
    c4: float = 0.3
    deletions: float = 1.0

    @property
    def query(self) -> float:
        return self.c3 + self.c4 * self.deletions

    def load(self, posts: float, queries: float) -> float:
        return self.c1 * posts * queries + self.c2 * posts + self.query * queries

    def scaled(self, posts: float, queries: float) -> "LoadCosts":
        """What one post and one query cost that stand for so many."""
        return LoadCosts(
            self.c1 * posts * queries, self.c2 * posts, self.c3 * queries, self.c4 * queries, self.deletions
        )


MEASURED = LoadCosts()
CANDIDATE, MATCH = 0.05, 1.0  # microseconds: to check a candidate that the index has found, to write a match: estimates


@dataclass(frozen=True)
class LoadPart:
    """Posts and queries of a rectangle of cells, by number, and the words (of `keys`) that it is for: None for all. The
    first part of a rectangle has the queries without words. `sent` are the posts that reach it, and `load` is that of
    Definition 1.
    """

    rectangle: Rectangle
    posts: np.ndarray
    sent: np.ndarray
    queries: np.ndarray
    load: float
    words: np.ndarray | None = None
    first: bool = True
    by_text: bool = False


@dataclass(frozen=True)
class Traffic:
    """A sample prepared: posts at (x, y) with words[offsets[i]:offsets[i + 1]] of the vocabulary, each once; queries
    with one or two rectangles, asked[asked_offsets[r]:...] all words of a query, and keys[key_offsets[r]:...] those it
    is filed under; `wordless` ones have a conjunction without.
    """

    extent: Extent
    costs: LoadCosts
    vocabulary: np.ndarray
    x: np.ndarray
    y: np.ndarray
    words: np.ndarray
    offsets: np.ndarray
    rectangles: np.ndarray  # queries by 8: two rectangles, the second may be empty
    keys: np.ndarray
    key_offsets: np.ndarray
    wordless: np.ndarray
    everything: tuple[int, int]  # the numbers of posts and of queries

    @classmethod
    def of(cls, sample: RouterSample, costs: LoadCosts, most: int = MOST) -> "Traffic":
        """Of the standing range and term queries, those of Definition 2; of all, if none stands. Of many posts or
        queries as many as `most`, spread evenly, stand for the rest.
        """
        extent = extent_of(sample)
        standing = np.flatnonzero((sample.queries.type == CRQ) | (sample.queries.type == CTQ))
        rows = standing if len(standing) else np.arange(len(sample.queries))
        queries, query_share = _taken(sample.queries, _few(rows, most)), _share(len(rows), most)
        posts = _posts(sample.posts, _few(np.arange(len(sample.posts)), most))
        offsets = frozen(np.asarray(queries.code_offsets, np.int64))
        filed, keys = key_terms(frozen(queries.code), offsets)
        vocabulary = np.unique(np.concatenate((posts.terms, keys)))
        vocabulary = vocabulary[vocabulary != 0]
        words, word_offsets = known_words(frozen(posts.terms), frozen(posts.offsets), frozen(vocabulary))
        cells = grid_leaves(frozen(posts.lon), frozen(posts.lat), frozen(np.array(extent)), CELLS)
        boxes = np.zeros((len(queries), 8), np.int64)
        owner, rectangles = rectangles_of(queries, extent, CELLS)
        again = np.r_[False, owner[1:] == owner[:-1]] if len(owner) else np.zeros(0, np.bool_)
        boxes[owner[~again], :4] = rectangles[~again]
        boxes[owner[again], 4:] = rectangles[again]
        known = keys != 0
        wordless = np.zeros(len(queries), np.bool_)
        wordless[filed[~known]] = True
        return cls(
            extent,
            costs.scaled(_share(len(sample.posts), most), query_share),
            vocabulary,
            frozen(cells % CELLS),
            frozen(cells // CELLS),
            frozen(words),
            frozen(word_offsets),
            frozen(boxes),
            frozen(np.searchsorted(vocabulary, keys[known])),
            frozen(np.searchsorted(filed[known], np.arange(len(queries) + 1))),
            frozen(wordless),
            (len(posts), len(queries)),
        )

    def whole(self) -> LoadPart:
        """Everything, in one part."""
        posts, queries = (frozen(np.arange(count)) for count in self.everything)
        return self.part((0, 0, CELLS, CELLS), posts, queries)

    def part(self, rectangle: Rectangle, posts: np.ndarray, queries: np.ndarray, by_text: bool = False) -> LoadPart:
        """All of the text in a rectangle: those of the posts that lie in it, those of the queries that touch it."""
        mine, touching = inside(posts, self.x, self.y, queries, self.rectangles, *rectangle)
        mine, touching = frozen(mine), frozen(touching)
        wanted = wanted_posts(
            mine,
            self.offsets,
            self.words,
            touching,
            self.key_offsets,
            self.keys,
            self.wordless,
            len(self.vocabulary),
        )
        load = self.costs.load(len(wanted), len(touching))
        return LoadPart(rectangle, mine, frozen(wanted), touching, load, by_text=by_text)

    def pairs(self, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(query, word) under which they are filed."""
        keys, offsets = take_lists(self.keys, self.key_offsets, queries)
        return np.repeat(queries, np.diff(offsets)), keys

    def divided(self, part: LoadPart, words: np.ndarray, part_of_word: np.ndarray, parts: int) -> list[LoadPart]:
        """A part whose words are dealt out: `part_of_word` is that of each of `words`."""
        part_of = np.full(len(self.vocabulary), -1, np.int64)
        part_of[words] = part_of_word
        starts, posts = sent_posts(part.posts, self.offsets, self.words, part_of, parts)
        rows, keys = self.pairs(part.queries)
        known = part_of[keys] >= 0
        count = max(len(self.wordless), 1)
        kept = np.unique(part_of[keys[known]] * count + rows[known])
        bounds = np.searchsorted(kept, np.arange(parts + 1) * count)
        out = []
        for number in range(parts):
            mine = posts[starts[number] : starts[number + 1]]
            queries = kept[bounds[number] : bounds[number + 1]] - number * count
            first = part.first and number == 0
            if first:
                wordless = part.queries[self.wordless[part.queries]]
                queries = np.union1d(queries, wordless)
                mine = part.posts if len(wordless) else mine
            load = self.costs.load(len(mine), len(queries))
            own = np.sort(words[part_of_word == number])
            mine = frozen(mine)
            out.append(LoadPart(part.rectangle, mine, mine, frozen(queries), load, own, first, part.by_text))
        return out


def _share(count: int, most: int) -> float:
    return max(-(-count // most), 1)


def _few(rows: np.ndarray, most: int) -> np.ndarray:
    return rows[:: int(_share(len(rows), most))]


def _posts(posts: SampledPosts, rows: np.ndarray) -> SampledPosts:
    terms, offsets = take_lists(posts.terms, np.asarray(posts.offsets, np.int64), rows)
    return SampledPosts(posts.lon[rows], posts.lat[rows], posts.ts[rows], terms, offsets)


def _taken(queries: Queries, rows: np.ndarray) -> Queries:
    code, offsets = take_lists(queries.code, np.asarray(queries.code_offsets, np.int64), rows)
    boxes = np.asarray(queries.boxes, np.float64).reshape(-1, 4)[rows]
    return Queries(queries.type[rows], boxes, code, offsets, queries.life[rows], queries.k[rows])
