"""IGPT, the subscription index of Skype (Skype §5): a quadtree of cells, in each an inverted file whose posting
lists are divided into groups of like alpha, ordered by threshold within.

A post visits every cell that is not skipped, one word after the other. Each of the paper's rules can be left out, none
changes an answer:

- `cells`: a cell too far for all of its subscribers (lemma 6);
- `groups`, `early`: a group of which none, or no more, can reach its threshold (theorems 3 and 4);
- `outer`, `inner`: the distance of the post to the cell, and of the subscriber to the cell's border (definitions 6-8);
- `prefix`: location-aware prefix with max-weight refinement (theorem 1);
- `unseen`: the bound for words not yet seen (theorem 2).

Thresholds stand where the paper has kScore (§6.2, remark). Bounds are multiplied out, since alpha may be 0 or 1: within
a group the order is by theta, and alpha is kept as its least and greatest. For whole batches see `igpt_batch`.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.kinds.relevance.kernels.pyramid_cells import z_order
from nearcast.kinds.relevance.matcher import Matcher, Out, Pairs, StandingSubscribers, collected
from nearcast.kinds.relevance.term_ranks import Terms
from nearcast.kinds.relevance.vectors import Profiles, Vectors
from nearcast.storage.subscriptions.rows import is_first
from nearcast_papers.baselines.kernels.igpt_cells import (
    ALPHA,
    CELL_FIELDS,
    INNER,
    POSTING_FIELDS,
    THETA,
    bound_cells,
    bound_groups,
    fill_words,
    leaf_starts,
)  # fmt: skip
from nearcast_papers.baselines.kernels.one_at_a_time import match_each

RULES = ("cells", "groups", "early", "outer", "inner", "prefix", "unseen")
INDIVIDUAL = ("outer", "inner", "prefix", "unseen")  # IPT of §8.1.2: no pruning of groups
GROUPS = 10
LARGEST_CELL = 1000


@dataclass(frozen=True)
class CellIndex:
    """Postings by term, cell, alpha group and threshold: see `nearcast_papers.baselines.kernels.igpt_cells`."""

    rows: np.ndarray
    terms: Terms
    cells: np.ndarray
    term_runs: np.ndarray
    run_cells: np.ndarray
    run_groups: np.ndarray
    group_starts: np.ndarray
    postings: np.ndarray
    owners: np.ndarray
    rules: int

    def match(self, posts: Vectors, standing: StandingSubscribers, number: int) -> Pairs:
        numbers = self.terms.numbers_of(posts.terms)
        profiles = standing.profiles
        stamps = np.full(len(profiles), -1, np.int32)
        most = len(self.rows)

        def go(done: int, out: Out, tally: np.ndarray) -> tuple[int, int]:
            found: tuple[int, int] = match_each(
                done, self.rules, self.cells, self.term_runs, self.run_cells, self.run_groups,
                self.group_starts, self.postings, self.owners, numbers, stamps, number, standing.home, standing.theta,
                profiles.lon, profiles.lat, profiles.alpha, profiles.reach, profiles.words, profiles.offsets,
                profiles.weights, posts.lon, posts.lat, posts.terms, posts.offsets, posts.weights, *out, most, tally,
            )  # fmt: skip
            return found

        return collected(len(posts), most, go)

    @property
    def nbytes(self) -> int:
        own = (self.rows, self.cells, self.term_runs, self.run_cells, self.run_groups, self.group_starts)
        return self.terms.nbytes + sum(array.nbytes for array in (*own, self.postings, self.owners))


def build_part(
    profiles: Profiles,
    theta: np.ndarray,
    rows: np.ndarray,
    rules: Collection[str] = RULES,
    groups: int = GROUPS,
    largest_cell: int = LARGEST_CELL,
) -> CellIndex:
    terms, numbers = Terms.of(profiles, rows)
    sizes = profiles.offsets[rows + 1] - profiles.offsets[rows]
    word_starts = np.cumsum(sizes) - sizes

    codes = z_order(frozen(profiles.lon[rows]), frozen(profiles.lat[rows]))
    by_place = np.argsort(codes, kind="stable")
    starts = leaf_starts(frozen(codes[by_place]), largest_cell)
    cell = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    cells, inner = np.empty((CELL_FIELDS, len(starts) - 1)), np.empty(len(rows))
    members = frozen(rows[by_place])
    bound_cells(
        frozen(starts), members, profiles.lon, profiles.lat, profiles.alpha, profiles.reach, theta, cells, inner
    )

    edges = np.quantile(profiles.alpha[rows], np.arange(1, groups) / groups) if len(rows) else np.empty(0)
    group = np.searchsorted(edges, profiles.alpha[members], side="right")
    order = np.lexsort((theta[members], group, cell))
    count = len(numbers)
    term, at = np.empty(count, np.int32), np.empty(count, np.int32)
    unsorted = np.empty((count, POSTING_FIELDS), np.float32)
    fill_words(
        frozen(members[order]), numbers, frozen(word_starts[by_place[order]]), profiles.offsets, profiles.weights,
        int(sizes.max(initial=0)), term, unsorted, at,
    )  # fmt: skip
    place = order[at]  # of a posting's subscriber among `members`
    owner = members[place]
    unsorted[:, INNER], unsorted[:, THETA], unsorted[:, ALPHA] = inner[place], theta[owner], profiles.alpha[owner]
    run = term.astype(np.int64) * len(starts) + cell[place]
    sort = np.argsort(run, kind="stable")
    run, group = run[sort], group[place][sort]
    postings = unsorted[sort]
    new_run = is_first(run) if count else np.zeros(0, np.bool_)
    new_group = (new_run | is_first(group)) if count else new_run
    run_starts, group_starts = np.flatnonzero(new_run), np.append(np.flatnonzero(new_group), count)
    bound_groups(frozen(group_starts), postings)
    return CellIndex(
        rows=rows,
        terms=terms,
        cells=frozen(cells),
        term_runs=frozen(np.searchsorted(run[run_starts], np.arange(terms.count + 1) * len(starts))),
        run_cells=frozen(cell[place][sort][run_starts].astype(np.int32)),
        run_groups=frozen(np.searchsorted(group_starts, np.append(run_starts, count)).astype(np.int32)),
        group_starts=frozen(group_starts.astype(np.int32)),
        postings=frozen(postings),
        owners=frozen(owner[sort].astype(np.int32)),
        rules=sum(1 << bit for bit, rule in enumerate(RULES) if rule in rules),
    )


def build(
    profiles: Profiles,
    theta: np.ndarray,
    rules: Collection[str] = RULES,
    groups: int = GROUPS,
    largest_cell: int = LARGEST_CELL,
) -> Matcher:
    return Matcher(profiles, theta, partial(build_part, rules=rules, groups=groups, largest_cell=largest_cell))
