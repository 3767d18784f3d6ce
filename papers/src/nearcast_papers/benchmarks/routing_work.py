"""What a router makes workers do for posts and queries that it has not seen.

**Checked**, counted. In each leaf: a search looks at all posts that the leaf stores, if all of its words are among
theirs, and at none otherwise (SSTD's measure §4.1.1). A standing query is checked against every post matched
there that has the word which it is filed under, or against all where it has no word (after Tornado's q_l, Tornado
§4.1). Posts that the textual summary rules out are matched nowhere. Indexes inside a leaf that know places check less:
this is what the partition alone leaves to do, so more leaves mean less of it, and routers compare at equally many.

**Work**, expected. Eq. 2 of SSTD as `partitioning.cost_model` has it, with each leaf in the place of a cell of J: p is
the share of the queries that the leaf gets, M, the word counts and the lives are those of these queries, P.φ the words
of its posts, |O| the posts that it stores (for searches) or that reach it (for standing queries).

Both are posts a query, summed over the leaves. A query for the nearest gets the leaves that the circle to its k-th
answer touches; a CKQ is kept by all workers all the same (§4.2).

**Indexed**, counted. What workers check with an index that knows places: for a post the standing queries that touch its
cell and are filed under a word of it (Tornado §4.1, eq. 1). The sum is the same for all routers, the shares are not; a
post that several workers match counts for each with its part.

**Load** of a worker is that of Definition 1 of PS2Stream (`partitioning.worker_load`), the queries standing for more of
their kind.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.common.kernels.grid import SUMMARY_BITS, may_match, set_bits
from nearcast.common.kernels.mix import fingerprints
from nearcast.partitioning.kernels.query_counts import keyword_sets, known_words
from nearcast.partitioning.router_sample import CKQ, CRQ, SKQ, Queries, RouterSample, SampledPosts
from nearcast.partitioning.routers.a_grid import cell_costs, granularity
from nearcast.partitioning.routing_table import RoutingTable
from nearcast.partitioning.sample_tally import cells_of, extent_of
from nearcast.partitioning.worker_load import LoadCosts
from nearcast.sources.world.geography import KM_PER_DEGREE
from nearcast.storage.subscriptions.kernels.register import key_terms
from nearcast.storage.subscriptions.rows import Rows
from nearcast_papers.benchmarks.routing_sets import SPAN, Half, K, middles
from nearcast_papers.query_sets.query_tables import square_around

PAIRS = 4_000_000  # of a query and a post that distances are found of at a time


@dataclass(frozen=True)
class Fresh:
    """Fresh posts and queries, with all that does not depend on the router worked out once. Searches come first, then
    the standing queries, each with the box in which posts can be answers.
    """

    posts: SampledPosts
    prints: np.ndarray
    searches: Rows
    type: np.ndarray  # of the searches
    standing: Rows
    nearest: np.ndarray  # which of the standing are CKQs

    @classmethod
    def of(cls, half: Half) -> "Fresh":
        posts, rows = half.posts, half.rows
        near = np.flatnonzero(np.isin(half.type, (SKQ, CKQ)))
        boxes = rows.boxes.copy()
        boxes[near] = circles(posts, rows.take(near), K)
        rows = replace(rows, boxes=boxes)
        none = np.zeros(len(posts), np.bool_)
        stands = half.type >= CRQ
        return cls(
            posts,
            fingerprints(np.arange(len(posts)), none, posts.ts, posts.lon, posts.lat),
            rows.take(np.flatnonzero(~stands)),
            half.type[~stands].astype(np.int64),
            rows.take(np.flatnonzero(stands)),
            half.type[stands] == CKQ,
        )

    @property
    def queries(self) -> int:
        return len(self.searches) + len(self.standing)

    @cached_property
    def indexed(self) -> np.ndarray:
        """What each post is checked against with an index that knows places: the mean of its cell of A-Grid's grid."""
        rows, none = self.standing, np.zeros(len(self.standing), np.int64)
        kinds = np.full(len(rows), CRQ, np.uint8)
        queries = Queries(kinds, rows.boxes, rows.code, rows.code_offsets.astype(np.int64), none, none)
        sample = RouterSample(self.posts, queries)
        extent, side = extent_of(sample), granularity(sample)
        cells = cells_of(self.posts, extent, side)
        share = cell_costs(sample, extent, side).reshape(-1) / np.maximum(np.bincount(cells, minlength=side * side), 1)
        out: np.ndarray = share[cells]
        return out

    @cached_property
    def _keys(self) -> tuple[np.ndarray, np.ndarray]:
        return key_terms(self.standing.code, self.standing.code_offsets)

    @cached_property
    def _sets(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(where the sets of words of each search begin, sizes of sets, terms)."""
        row, starts, terms = keyword_sets(self.searches.code, frozen(self.searches.code_offsets.astype(np.int64)))
        return np.searchsorted(row, np.arange(len(self.searches) + 1)), starts, terms


@dataclass(frozen=True)
class Routed:
    """Where fresh posts and queries go: pairs (post, leaf), (search, leaf) and (standing, leaf)."""

    stored: np.ndarray
    wanted: np.ndarray  # posts that the summary does not rule out
    matched: tuple[np.ndarray, np.ndarray]
    searched: tuple[np.ndarray, np.ndarray]
    kept: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, table: RoutingTable, fresh: Fresh) -> "Routed":
        posts, bits = fresh.posts, summary_of(table, fresh.standing)
        stored, wanted, starts, leaves = route_posts(table, fresh, bits)
        post = np.repeat(np.arange(len(posts)), np.diff(starts))
        live = wanted[post]
        return cls(
            stored,
            wanted,
            (post[live], leaves[live]),
            _pairs(*table.leaves_of(fresh.searches, by_place=True)),
            _pairs(*table.leaves_of(fresh.standing)),
        )


def route_posts(
    table: RoutingTable, fresh: Fresh, bits: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """As the pipeline does it: (leaf that stores each, whether it is wanted, where its matches begin, leaves)."""
    posts = fresh.posts
    stored = table.store(posts.lon, posts.lat, posts.terms, posts.offsets, fresh.prints)
    cells = table.summary_cells(posts.lon, posts.lat)
    starts, leaves = table.match(posts.lon, posts.lat, posts.terms, posts.offsets, stored, bits, cells)
    wanted = np.diff(starts) > 0 if table.shares else may_match(cells, posts.terms, posts.offsets, bits)
    return stored, wanted, starts, leaves


def summary_of(table: RoutingTable, rows: Rows) -> np.ndarray:
    bits = np.zeros(1 << (SUMMARY_BITS - 6), np.uint64)
    set_bits(bits, table.summary(rows))
    return bits


def checked(fresh: Fresh, routed: Routed, leaves: int) -> np.ndarray:
    """Of each leaf, the posts checked for all of the queries together."""
    return _searched(fresh, routed, leaves)[0] + _standing(fresh, routed, leaves)


def work(fresh: Fresh, routed: Routed, leaves: int) -> np.ndarray:
    """W of each leaf by eq. 2: posts expected to be checked for one random query."""
    post = np.bincount(routed.matched[1], minlength=leaves)
    kept = np.bincount(routed.kept[1], minlength=leaves)
    span = max(float(np.ptp(fresh.posts.ts)), 1.0) if len(fresh.posts) else 1.0
    return (_searched(fresh, routed, leaves)[1] + post * kept * (SPAN / span)) / max(fresh.queries, 1)


def _searched(fresh: Fresh, routed: Routed, leaves: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each leaf, what all searches check: as counted, and as expected by eq. 1."""
    row, leaf = routed.searched
    first, starts, terms = fresh._sets
    stored = np.bincount(routed.stored, minlength=leaves).astype(np.float64)
    vocabulary = np.unique(terms)
    words, offsets = known_words(frozen(fresh.posts.terms), frozen(fresh.posts.offsets), frozen(vocabulary))
    count = max(len(vocabulary), 1)
    heard = np.unique(np.repeat(routed.stored, np.diff(offsets)).astype(np.int64) * count + words)

    pair_of_set, set_ = expand(first[row], first[row + 1])
    set_of_term, term = expand(starts[set_], starts[set_ + 1])
    at = leaf[pair_of_set[set_of_term]].astype(np.int64)
    known = _is_in(at * count + np.searchsorted(vocabulary, terms[term]), heard)

    missing = np.bincount(set_of_term, ~known, len(set_))
    found = np.bincount(pair_of_set, missing == 0, len(row)) > 0
    counted = np.bincount(leaf, found, leaves) * stored

    share = (1.0 / np.diff(first))[row][pair_of_set]
    spot = (leaf.astype(np.int64) * CRQ + fresh.type[row])[pair_of_set]  # M_srq and M_skq are two
    weight = share[set_of_term]
    asked = np.bincount(spot[set_of_term], weight, leaves * CRQ)
    own = np.bincount(spot[set_of_term], weight * known, leaves * CRQ)
    hit = np.divide(own, asked, out=np.ones(leaves * CRQ), where=asked > 0)
    cover = share * hit[spot] ** np.diff(starts)[set_]
    return counted, np.bincount(spot // CRQ, cover, leaves) * stored


def _standing(fresh: Fresh, routed: Routed, leaves: int) -> np.ndarray:
    """Of each leaf, the pairs of a post and a word that a standing query is filed under."""
    row, leaf = routed.kept
    post, where = routed.matched
    filed, terms = fresh._keys
    first = np.searchsorted(filed, np.arange(len(fresh.standing) + 1))
    pair, key = expand(first[row], first[row + 1])
    at, term = leaf[pair].astype(np.int64), terms[key]
    wordless = np.bincount(at[term == 0], minlength=leaves)
    out = (wordless * np.bincount(where, minlength=leaves)).astype(np.float64)

    vocabulary = np.unique(terms[terms != 0])
    count = max(len(vocabulary), 1)
    worded = term != 0
    places, queries = np.unique(at[worded] * count + np.searchsorted(vocabulary, term[worded]), return_counts=True)
    words, offsets = known_words(frozen(fresh.posts.terms), frozen(fresh.posts.offsets), frozen(vocabulary))
    pair, word = expand(offsets[post], offsets[post + 1])
    spot = where[pair].astype(np.int64) * count + words[word]
    index = np.minimum(np.searchsorted(places, spot), max(len(places) - 1, 0))
    met = places[index] == spot if len(places) else np.zeros(len(spot), np.bool_)
    return out + np.bincount(where[pair][met], queries[index[met]], leaves)


def indexed(fresh: Fresh, routed: Routed, owners: np.ndarray, workers: int) -> np.ndarray:
    """Of each worker, what it checks with an index that knows places."""
    post, leaf = routed.matched
    pairs = np.unique(post * workers + owners[leaf])
    shared = np.bincount(pairs // workers, minlength=len(fresh.posts))
    post = pairs // workers
    return np.bincount(pairs % workers, fresh.indexed[post] / shared[post], workers)


def loads(fresh: Fresh, routed: Routed, table: RoutingTable, workers: int, costs: LoadCosts) -> np.ndarray:
    """Definition 1 of each worker, in µs: of the posts that it stores or matches and the standing queries it keeps."""
    owners = table.owners(workers)
    post, leaf = routed.matched
    sent = post * workers + owners[leaf]
    if len(fresh.searches):
        sent = np.concatenate((sent, np.arange(len(fresh.posts)) * workers + owners[routed.stored]))
    posts = np.bincount(np.unique(sent) % workers, minlength=workers).astype(np.float64)
    queries = _kept(fresh, table, workers).sum(axis=0).astype(np.float64)
    return costs.c1 * posts * queries + costs.c2 * posts + costs.query * queries


def copies(fresh: Fresh, table: RoutingTable, workers: int) -> np.ndarray:
    """Which worker gets which query: searches by place, a CKQ all of them."""
    searched, _ = table.keepers(fresh.searches, workers, by_place=True)
    return np.concatenate((searched, _kept(fresh, table, workers)))


def _kept(fresh: Fresh, table: RoutingTable, workers: int) -> np.ndarray:
    kept, _ = table.keepers(fresh.standing, workers)
    out: np.ndarray = kept | fresh.nearest[:, None]
    return out


def circles(posts: SampledPosts, rows: Rows, k: int) -> np.ndarray:
    """Boxes about the circles from the middles of the rows to the k-th nearest post that has the word each is filed
    under; the world where there are fewer.
    """
    out = np.tile(np.array([-180.0, -90.0, 180.0, 90.0]), (len(rows), 1))
    filed, terms = key_terms(rows.code, rows.code_offsets)
    vocabulary = np.unique(terms)
    words, offsets = known_words(frozen(posts.terms), frozen(posts.offsets), frozen(vocabulary))
    order = np.argsort(words, kind="stable")
    holder = np.repeat(np.arange(len(posts)), np.diff(offsets))[order]
    lists = np.searchsorted(words[order], np.arange(len(vocabulary) + 1))
    word = np.searchsorted(vocabulary, terms)
    at = middles(rows.boxes)
    size = np.cumsum(np.diff(lists)[word]) // PAIRS
    for part in np.split(np.arange(len(filed)), np.flatnonzero(np.diff(size)) + 1):
        query, entry = expand(lists[word[part]], lists[word[part] + 1])
        row, post = filed[part][query], holder[entry]
        distance = _km(at[row, 0], at[row, 1], posts.lon[post], posts.lat[post])
        sort = np.lexsort((distance, query))
        begin = np.searchsorted(query, np.arange(len(part)))
        enough = np.diff(np.r_[begin, len(query)]) >= k
        kth = distance[sort[begin[enough] + k - 1]]
        mine = filed[part][enough]
        out[mine] = np.stack(square_around(at[mine, 0], at[mine, 1], 2 * kth), axis=1)
    return out


def expand(begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All numbers of the ranges [begin, end), one after the other, and which range each is of."""
    sizes = (end - begin).astype(np.int64)
    of = np.repeat(np.arange(len(sizes)), sizes)
    return of, np.arange(len(of)) + np.repeat(begin - (np.cumsum(sizes) - sizes), sizes)


def _pairs(starts: np.ndarray, leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts)), leaves


def _is_in(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    if not len(known):
        return np.zeros(len(values), np.bool_)
    return known[np.minimum(np.searchsorted(known, values), len(known) - 1)] == values


def _km(lon: np.ndarray, lat: np.ndarray, to_lon: np.ndarray, to_lat: np.ndarray) -> np.ndarray:
    lon, lat, to_lon, to_lat = (np.radians(v) for v in (lon, lat, to_lon, to_lat))
    chord = np.sin((to_lat - lat) / 2) ** 2 + np.cos(lat) * np.cos(to_lat) * np.sin((to_lon - lon) / 2) ** 2
    return 2 * np.degrees(np.arcsin(np.minimum(np.sqrt(chord), 1.0))) * KM_PER_DEGREE
