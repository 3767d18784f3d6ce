"""The tables of `bench routing`, from what `routing_summary` compares."""

from typing import Any

from nearcast.partitioning.router_sample import TYPES
from nearcast_papers.published.markdown import number, table

ROUTERS = {
    "qt": "QT-tree", "qt-space": "QT-tree without text", "qt-text": "QT-tree without space", "agrid": "A-Grid",
    "grid": "uniform grid, 64 × 64", "quad": "quadtree", "kd": "kd-tree", "kdt": "kdt-tree", "rtree": "R-tree",
    "str": "STR", "aqwa": "AQWA", "everyone": "everything to everyone",
}  # fmt: skip


def checked(compared: dict[str, Any]) -> list[str]:
    """Posts checked a query, to the QT-tree's."""
    return by_set("posts checked a query, to the QT-tree's", compared["checked_to_qt"])


def load(compared: dict[str, Any]) -> list[str]:
    """The busiest worker."""
    return by_set("busiest worker by Definition 1 of PS2Stream, µs a post", compared["load_us"])


def by_set(title: str, rows: dict[str, dict[str, float]]) -> list[str]:
    sets = list(dict.fromkeys(name for row in rows.values() for name in row))
    cells = ([router_name(router), *(number(row[name]) for name in sets)] for router, row in rows.items())
    return table((title, *map(set_name, sets)), cells)


def set_name(name: str) -> str:
    """A set of queries as its paper writes it."""
    return name.upper() if name[:3] in TYPES or name in ("q1", "q2", "q3") else name


def router_name(router: str) -> str:
    """`agrid/64` in words; as registered A-Grid has one leaf a worker."""
    name, _, leaves = router.partition("/")
    if router == "agrid":
        return "A-Grid, one leaf a worker"
    return ROUTERS.get(name, name) if not leaves else f"{ROUTERS[name].partition(',')[0]}, {leaves} leaves"
