"""Draws docs/partitions.png: how the QT-tree and the kdt-tree divide the same posts among 8 workers.

Each is shown on a set of queries of `bench routing`, the QT-tree on one for which it cuts some places by text.

Run from the checkout as `.venv/bin/python scripts/make_partitions.py`; always the same picture.
"""

from pathlib import Path

from matplotlib.figure import Figure

from nearcast.cli.partition_map import legend, paint, shape
from nearcast.cli.plan_command import summary
from nearcast.common.plotting import save
from nearcast.partitioning.routers.registry import build
from nearcast_papers.benchmarks.routing_sets import Grounds, generated, make_set

PICTURE = Path("docs/partitions.png")
POSTS, QUERIES, WORKERS, SEED = 20_000, 10_000, 8, 1
ROUTERS = {"qt": "srq", "kdt": "tornado-skewed"}  # and the set of queries
WIDE, LEFT, BETWEEN, BELOW, ABOVE = 7.0, 0.6, 0.3, 0.6, 0.4  # inches; WIDE is one map
DPI = 110


def main() -> None:
    grounds = Grounds(generated(POSTS, SEED), SEED)
    posts = grounds["given"].posts[0]
    samples = [make_set(name, grounds, QUERIES, SEED)[0].sample for name in ROUTERS.values()]
    partitions = [build(router, sample, WORKERS) for router, sample in zip(ROUTERS, samples, strict=True)]
    across = LEFT + len(partitions) * (WIDE + BETWEEN)
    down = WIDE * max(map(shape, partitions))
    tall = down + BELOW + ABOVE
    figure = Figure(figsize=(across, tall))
    for number, partition in enumerate(partitions):
        left = LEFT + number * (WIDE + BETWEEN)
        axes = figure.add_axes((left / across, BELOW / tall, WIDE / across, down / tall))
        paint(axes, partition, posts.lon, posts.lat, (WIDE, down))
        axes.set_title(f"{summary(partition)} · set {ROUTERS[partition.name]}", loc="left", fontsize=12)
        if number:
            axes.tick_params(labelleft=False)
        legend(axes, partition, -0.32 / down)
    PICTURE.parent.mkdir(exist_ok=True)
    save(figure, PICTURE, DPI)


if __name__ == "__main__":
    main()
