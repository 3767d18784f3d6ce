"""The plots of the documentation, drawn from saved results."""

from collections.abc import Callable, Mapping
from pathlib import Path

from nearcast_papers.benchmarks import balance_plot, routing_plot, topk_plot, warehouse_plot
from nearcast_papers.benchmarks.bench_balance import CALM
from nearcast_papers.published.saved_result import SavedResult


def draw_routing(path: Path, result: SavedResult) -> None:
    leaves = max(result.content["settings"]["theta"])
    routing_plot.draw(path, result.figures, list(result.content["columns"]), leaves)


def draw_balance(path: Path, result: SavedResult) -> None:
    balance_plot.draw(path, result.figures, CALM)


def draw_topk(path: Path, result: SavedResult) -> None:
    topk_plot.draw(path, result.figures)


def draw_warehouse(path: Path, result: SavedResult) -> None:
    warehouse_plot.draw(path, result.figures)


PICTURES: dict[str, tuple[str, Callable[[Path, SavedResult], None]]] = {  # file, and the result it is made from
    "routing.png": ("routing", draw_routing),
    "balance.png": ("balance", draw_balance),
    "warehouse.png": ("warehouse", draw_warehouse),
    "topk.png": ("topk-small", draw_topk),
}


def draw_all(folder: Path, results: Mapping[str, SavedResult]) -> list[Path]:
    """Draw those whose results are whole. One that was entered from an earlier version's documentation has not all
    figures that its picture needs: the picture of that run stays.
    """
    drawn = []
    for name, (source, draw) in PICTURES.items():
        if source in results and not results[source].entered:
            draw(folder / name, results[source])
            drawn.append(folder / name)
    return drawn
