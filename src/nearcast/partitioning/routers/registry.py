"""All routers by the name that `--router` takes. A new one is a file that builds a `Partition`, and a line here.

A distribution of its own adds routers by an entry point of the group `nearcast.routers`, which names a `Router`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from nearcast.common.errors import BadInput
from nearcast.partitioning.partition import Partition
from nearcast.partitioning.router_sample import RouterSample

DEFAULT = "grid"
ANY_PARTITION = "pm+fm"  # the balancer that asks for nothing but leaves with owners


@dataclass(frozen=True)
class Router:
    """A router's name, the function that builds its partition of a sample, and what it is fit for.

    `builder` is the function, or `module:function`, imported when the router is first asked for. A `blind` router looks
    at no queries. `balancer` is what `--balance auto` means for it, that of its own paper; `fits` are the balancers
    that ask more of a partition than leaves with owners: rectangles of cells for `shift`, leaves of space alone for
    `borders`, a QT-tree for `fg`.
    """

    name: str
    builder: str | Callable[..., Partition]
    blind: bool = False
    balancer: str = ANY_PARTITION
    fits: tuple[str, ...] = ()

    def __call__(self, sample: RouterSample, workers: int, **options: Any) -> Partition:
        """The partition that it makes of a sample."""
        builder = self.builder
        if isinstance(builder, str):
            module, _, function = builder.partition(":")
            builder = getattr(import_module(module), function)
        return builder(sample, workers, **options)


_ROUTERS = "nearcast.partitioning.routers"
_OWN = (
    Router("grid", f"{_ROUTERS}.uniform_grid:build", blind=True, fits=("shift", "borders")),
    Router("everyone", f"{_ROUTERS}.everyone:build", blind=True, balancer="off"),
    Router("agrid", f"{_ROUTERS}.a_grid:build", balancer="shift", fits=("shift", "borders")),
    Router("quad", f"{_ROUTERS}.quad_tree:build", balancer="borders", fits=("borders",)),
    Router("kd", f"{_ROUTERS}.kd_tree:build", fits=("shift", "borders")),
    Router("qt", f"{_ROUTERS}.qt_tree:build", balancer="pm+fm+fg", fits=("fg", "pm+fm+fg")),
    Router(
        "qt-space", f"{_ROUTERS}.qt_tree:build_space", balancer="pm+fm+fg", fits=("fg", "pm+fm+fg", "borders")
    ),
    Router("qt-text", f"{_ROUTERS}.qt_tree:build_text", balancer="pm+fm+fg", fits=("fg", "pm+fm+fg")),
    Router("kdt", f"{_ROUTERS}.kdt_tree:build", balancer="local"),
)  # fmt: skip


@cache
def routers() -> dict[str, Router]:
    """Our own, and those of other distributions."""
    found = {router.name: router for router in _OWN}
    for point in entry_points(group="nearcast.routers"):
        router: Router = point.load()
        found.setdefault(router.name, router)
    return found


def router_named(name: str) -> Router:
    if name not in routers():
        raise BadInput(f"there is no router {name!r}: use one of {', '.join(routers())}")
    return routers()[name]


def balancer_of(name: str) -> str:
    """What `--balance auto` means for a partition by its router's name. A state outlives the distribution whose router
    made its partition: that of a router which is not installed here is balanced as any partition can be.
    """
    return routers()[name].balancer if name in routers() else ANY_PARTITION


def routers_fit_for(balancer: str) -> list[str]:
    """By their names, those first whose own paper's balancer it is."""
    fit = [router for router in routers().values() if balancer in router.fits]
    return [router.name for router in sorted(fit, key=lambda router: router.balancer != balancer)]


def build(name: str, sample: RouterSample, workers: int) -> Partition:
    """The partition that a router makes of a sample, under the name it was asked for by."""
    return replace(router_named(name)(sample, workers), name=name)
