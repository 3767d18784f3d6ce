"""All routers by the name that `--router` takes."""

from collections.abc import Callable
from dataclasses import replace

from nearcast.model.errors import BadInput
from nearcast.routing import (
    a_grid,
    aqwa,
    everyone,
    kd_tree,
    kdt_tree,
    qt_tree,
    quad_tree,
    r_tree,
    text_partition,
    uniform_grid,
)
from nearcast.routing.partition import Partition
from nearcast.routing.sample import Sample

BUILDERS: dict[str, Callable[..., Partition]] = {
    "grid": uniform_grid.build,
    "everyone": everyone.build,
    "agrid": a_grid.build,
    "quad": quad_tree.build,
    "kd": kd_tree.build,
    "rtree": r_tree.build,
    "str": r_tree.build_str,
    "aqwa": aqwa.build,
    "qt": qt_tree.build,
    "qt-space": qt_tree.build_space,
    "qt-text": qt_tree.build_text,
    "kdt": kdt_tree.build,
    "text-frequency": text_partition.build_frequency,
    "text-hypergraph": text_partition.build_hypergraph,
    "text-metric": text_partition.build_metric,
}
DEFAULT = "grid"
BLIND = ("grid", "everyone", "rtree", "str")  # do not look at queries


def check_router(name: str) -> None:
    if name not in BUILDERS:
        raise BadInput(f"there is no router {name!r}: use one of {', '.join(BUILDERS)}")


def build(name: str, sample: Sample, workers: int) -> Partition:
    """The partition that a router makes of a sample, under the name it was asked for by."""
    check_router(name)
    return replace(BUILDERS[name](sample, workers), name=name)
