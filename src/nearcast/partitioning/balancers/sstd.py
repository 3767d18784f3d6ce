"""SSTD's escalation (SSTD §5.3): PM, and if that does not restore balance FM, and if that does not FG."""

from collections.abc import Callable, Sequence

from nearcast.partitioning.balancers import reallocation as reallocate
from nearcast.partitioning.balancers import reshaping as reshape
from nearcast.partitioning.moves import Loads, Move, imbalance
from nearcast.partitioning.partition import Partition
from nearcast.partitioning.query_statistics import Statistics

PLAN = ("pm", "fm", "fg")


def adjust(
    partition: Partition,
    loads: Loads,
    statistics: Statistics | Callable[[], Statistics],
    ratio: float = reallocate.RATIO,
    epsilon: float = reshape.EPSILON,
    plan: Sequence[str] = PLAN,
) -> Move | None:
    """The first of the plan's moves after which L_max / L_min is at most λ (`ratio`), or else the one with the least
    L_max. Each is worked out from the partition as it is: no batch comes in between, so what a later one does over
    again need not be moved twice. Statistics may be given as a function, since only FG asks for them.
    """
    strategies: dict[str, Callable[[], Move | None]] = {
        "pm": lambda: reallocate.pm(partition, loads, ratio),
        "fm": lambda: reallocate.fm(partition, loads, ratio),
        "fg": lambda: reshape.adjust(
            partition, loads, statistics() if callable(statistics) else statistics, ratio, epsilon
        ),
    }
    best: Move | None = None
    for name in plan:
        move = strategies[name]()
        if move and imbalance(move.after) <= ratio:
            return move
        if move and (best is None or move.after.max() < best.after.max()):
            best = move
    return best
