"""Which strategy balances a state, by the name that `--balance` takes."""

from dataclasses import replace

from nearcast.common.errors import BadInput
from nearcast.engine.batch import open_router
from nearcast.engine.measured_load import Measured
from nearcast.engine.predicted_load import predicted
from nearcast.partitioning.balancers import migration as migrate
from nearcast.partitioning.balancers import reallocation as reallocate
from nearcast.partitioning.balancers import sstd as escalate
from nearcast.partitioning.balancers import star as borders
from nearcast.partitioning.balancers import text_cuts as retext
from nearcast.partitioning.balancers import tornado as shift
from nearcast.partitioning.moves import Move, worker_loads
from nearcast.partitioning.redrawn import move_of
from nearcast.partitioning.routers.registry import DEFAULT, balancer_of, build, router_named, routers_fit_for
from nearcast.storage.directory import StateDirectory

PLANS = {name: tuple(name.split("+")) for name in ("pm", "fm", "pm+fm", "fg", "pm+fm+fg")}
NAMES = ("auto", "off", *PLANS, "local", "global", "shift", "borders")

RATIO = 2.0  # L_max / L_min that makes `auto` act: it weighs cost and gain as well, so it can look sooner than λ = 6
SHIFTS = 16  # of Tornado's operations that one adjustment may consist of
HORIZON = 20  # batches in which a change has to pay for itself
LEAST = 0.05  # of its load that the busiest worker has to get rid of
A_QUERY, A_CHANGE = 5.0, 50_000.0  # microseconds: to hand over a subscription, and to change anything at all


def check_balance(name: str, router: str) -> None:
    """Refuse what is unknown, or makes no sense for a router."""
    if name not in NAMES:
        raise BadInput(f"there is no --balance {name}: use one of {', '.join(NAMES)}")
    if name in ("auto", "off"):
        return
    if router_named(router).balancer == "off":
        raise BadInput(f"--balance {name}: router {router} deals posts out evenly, so there is nothing to balance")
    only = routers_fit_for(name)
    if only and router not in only:
        raise BadInput(f"--balance {name} is for the routers {', '.join(only)}, not for {router}: leave it to auto")
    if name == "global" and router_named(router).blind:
        raise BadInput(f"--balance global makes the router anew, and {router} looks at no queries: leave it to auto")


def check_balanced(state: StateDirectory, name: str, router: str | None) -> None:
    """The same for the router asked for, or else the state's own."""
    own = state.newest().router if router is None and state.exists() else None
    check_balance(name, open_router(str(state.root), own).name if own else router or DEFAULT)


def picked(name: str, router: str) -> str:
    """The strategy by name; that of the router's own paper for `auto`."""
    return balancer_of(router) if name == "auto" else name


def decide(name: str, measured: Measured, ratio: float | None = None) -> Move | None:
    """The move of a strategy, or None. `ratio` is L_max / L_min from which on it acts, the paper's unless given."""
    partition, loads = measured.partition, measured.loads
    if name in PLANS:
        return escalate.adjust(
            partition, loads, lambda: measured.statistics, ratio or reallocate.RATIO, plan=PLANS[name]
        )
    if name == "local":
        return retext.local(partition, loads, measured.sample, ratio or migrate.RATIO)
    if name == "shift":
        return shift.adjust(partition, loads, A_QUERY / HORIZON, SHIFTS)
    if name == "borders":
        return borders.adjust(partition, loads)
    if name == "global":
        return rebuilt(measured, ratio or migrate.RATIO)
    return None


def rebuilt(measured: Measured, ratio: float) -> Move | None:
    """Global load adjustment (PS2Stream §V-B): the router made anew from a recent sample, if that is worth it by the
    loads of Definition 1 on the sample under both. Both stay for a while (`engine.previous_table`).
    """
    old, sample = measured.partition, measured.sample
    if not len(sample.posts):
        return None
    new = build(old.name, measured.asked[0], old.workers)
    before, after = predicted(old, sample), predicted(new, sample)
    current, fresh = worker_loads(old, before), worker_loads(new, after)
    if not retext.repartition(current, fresh, ratio):
        return None
    cause = f"a partition made anew has {fresh.sum() / max(current.sum(), 1e-300):.2f} of the load of the old one"
    scale = measured.loads.leaf_load.sum() / max(before.sum(), 1e-300)
    if new.extent != old.extent or new.cells != old.cells:  # cells cannot be compared
        loads = replace(measured.loads, leaf_load=after * scale)
        queries, posts = float(len(sample.queries)), float(len(sample.posts))
        return Move("global", cause, new, loads, queries, posts, current * scale, fresh * scale, gradual=True)
    return replace(move_of(old, measured.loads, new, after * scale, "global", cause), gradual=True)


def pays(move: Move) -> bool:
    """Whether what the busiest worker saves in HORIZON batches is more than the change costs; and worth the trouble."""
    return move.effect * HORIZON > A_CHANGE + A_QUERY * move.queries and move.effect > LEAST * float(move.before.max())
