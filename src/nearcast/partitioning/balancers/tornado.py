"""Tornado's adaptivity (Tornado §4.2-4.3): an overloaded evaluator is split while two others are merged, or hands a
strip of cells to a neighbour. An evaluator is a leaf here, a rectangle of cells; their number stays.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nearcast.partitioning.moves import Loads, Move, cell_load, only_space, worker_loads
from nearcast.partitioning.partition import Partition
from nearcast.partitioning.routers.a_grid import cost_of, cut, split
from nearcast.partitioning.sample_tally import Rectangle, prefix_sums
from nearcast.partitioning.tiles import area, bounds, paint, rectangle

NOTHING = (0, 0, 0, 0)
WORTH, FEW = 0.95, 64  # of the greatest cost, and leaves: for a grid drawn anew
BETA = 0.1  # load of transferring one query: in the unit of the loads


@dataclass(frozen=True)
class Operation:
    """`gives` are (rectangle of cells, leaf that gets it); `reduction` is C_r and `overhead` C_t. For a plain shift
    these are the estimates of §4.3 and `gives` is empty, since its line is still open.
    """

    name: str
    reduction: float
    overhead: float
    gives: tuple[tuple[Rectangle, int], ...] = ()
    to: int = -1
    across: int = -1  # the axis that the shifted line crosses: 0 for x


def adjust(partition: Partition, loads: Loads, beta: float = BETA, most: int = 1) -> Move | None:
    """The operation with the greatest C_r among those with C_r > C_t, carried out; None if there is none.

    A stream of batches seldom gets the chance, so there may be up to `most` operations, each after those before. Where
    nothing relieves the costliest evaluator the next costliest are relieved, which may let it go on; what comes after
    the greatest cost has fallen for the last time is left out. Where a grid drawn anew (§4.1) has a greatest cost below
    WORTH of what that leads to, and C_r > C_t of the difference, it is taken instead.

    The line of a plain shift is sought once it is chosen. Where that shows that its true C_r does not exceed its true
    C_t, because all load is in one row, the next best operation is taken: the estimate assumes that any share of the
    load can be shifted. Cost: O(cells²), and O(leaves + rows + columns) for each operation.
    """
    if not only_space(partition):
        return None
    state, lowest = _State(partition, loads, beta), float(loads.leaf_load.max())
    names: list[str] = []
    kept, came_to = 0, partition.node
    for _ in range(most):
        operation = state.next(only_worst=most == 1)
        if operation is None:
            break
        state.carry_out(operation)
        names.append(operation.name)
        if most == 1 or state.cost.max() < lowest:
            kept, came_to, lowest = len(names), state.node.copy(), float(state.cost.max())
    if most > 1 and partition.leaves <= FEW:
        anew, greatest = state.drawn_anew()
        more = state.moved(anew) - state.moved(came_to)
        if greatest < WORTH * lowest and lowest - greatest > beta * more:
            return state.move(["drawn anew"], anew)
    return state.move(names[:kept], came_to) if kept else None


def operations(partition: Partition, loads: Loads, beta: float = BETA) -> list[Operation]:
    """All operations that would relieve the costliest evaluator, which is the only one that can lower the maximum."""
    return list(_State(partition, loads, beta).operations())


class _State:
    """Costs and numbers of queries of any rectangle, by prefix sums: all that row and column aggregates tell (§4.3)."""

    def __init__(self, partition: Partition, loads: Loads, beta: float) -> None:
        self.partition, self.loads, self.beta = partition, loads, beta
        side = partition.cells
        self.cell_load = cell_load(partition, loads)
        self.costs = prefix_sums(self.cell_load.reshape(side, side))
        self.query_sums = prefix_sums(loads.cell_transfer.reshape(side, side))
        held = np.bincount(partition.node, minlength=partition.nodes)
        self.parts = [rectangle(row) for row in bounds(partition)]
        self.tidy = [area(part) == int(count) for part, count in zip(self.parts, held, strict=True)]
        self.node, self.cost = partition.node.copy(), loads.leaf_load.copy()
        self.worst = int(self.cost.argmax())

    def cost_of(self, part: Rectangle) -> float:
        return cost_of(self.costs, part)

    def transfer(self, *parts: Rectangle) -> float:
        """C_t: β for each query in the parts that change hands."""
        return self.beta * sum(cost_of(self.query_sums, part) for part in parts)

    def reduction(self, *after: float) -> float:
        """C_r: how much the maximum of those involved falls when their costs become these (eq. 4)."""
        return float(self.cost[self.worst]) - max(after)

    def operations(self) -> Iterator[Operation]:
        if not self.tidy[self.worst] or self.cost[self.worst] <= 0:
            return
        yield from self.splits()
        for to, along, whole in self.neighbours():
            yield self.estimated(to, 1 - along) if whole else self.corner(to, along)

    def splits(self) -> Iterator[Operation]:
        """Split the worst and merge two neighbours that share a whole side: one for each such pair (eq. 4, 5). The half
        and the neighbour with fewer queries move.
        """
        if area(self.parts[self.worst]) == 1:
            return
        moves, stays = sorted(cut(self.costs, self.parts[self.worst]), key=self.transfer)
        for pair in self.mergeable():
            light, heavy = sorted(pair, key=lambda leaf: self.transfer(self.parts[leaf]))
            yield Operation(
                "split and merge",
                self.reduction(self.cost_of(moves), self.cost_of(stays), float(self.cost[light] + self.cost[heavy])),
                self.transfer(moves, self.parts[light]),
                ((self.parts[light], heavy), (moves, light)),
            )

    def mergeable(self) -> Iterator[tuple[int, int]]:
        """Pairs without the worst whose union is a rectangle."""
        leaves = [leaf for leaf, tidy in enumerate(self.tidy) if tidy and leaf != self.worst]
        west = {(self.parts[leaf][0], self.parts[leaf][1], self.parts[leaf][3]): leaf for leaf in leaves}
        south = {(self.parts[leaf][1], self.parts[leaf][0], self.parts[leaf][2]): leaf for leaf in leaves}
        for leaf in leaves:
            x0, y0, x1, y1 = self.parts[leaf]
            for other in (west.get((x1, y0, y1)), south.get((y1, x0, x1))):
                if other is not None:
                    yield leaf, other

    def neighbours(self) -> Iterator[tuple[int, int, bool]]:
        """(leaf, axis along the shared side, whether all of the side is shared) of those that may take cells of the
        worst: others must touch the side from one of its ends, for a corner shift.
        """
        a = self.parts[self.worst]
        for leaf, b in enumerate(self.parts):
            if leaf == self.worst or not self.tidy[leaf]:
                continue
            for along, across in ((0, 1), (1, 0)):
                low, high = b[along] == a[along], b[along + 2] == a[along + 2]
                inside = a[along] <= b[along] and b[along + 2] <= a[along + 2]
                touching = b[across] == a[across + 2] or b[across + 2] == a[across]
                if touching and inside and (low or high):
                    yield leaf, along, low and high

    def estimated(self, to: int, across: int) -> Operation:
        """A horizontal or vertical shift, taken to halve the difference (§4.3)."""
        a, b = float(self.cost[self.worst]), float(self.cost[to])
        reduction = a - (a + b) / 2
        return Operation(
            "shift", reduction, self.transfer(self.parts[self.worst]) * reduction / a, to=to, across=across
        )

    def corner(self, to: int, along: int) -> Operation:
        """What lies beside the neighbour goes to it: there is no choice of the line."""
        b, strip = self.parts[to], list(self.parts[self.worst])
        strip[along], strip[along + 2] = b[along], b[along + 2]
        return self.handed("corner shift", (strip[0], strip[1], strip[2], strip[3]), to)

    def handed(self, name: str, strip: Rectangle, to: int) -> Operation:
        """The worst hands a strip to a neighbour."""
        moved = self.cost_of(strip)
        after = self.reduction(float(self.cost[self.worst]) - moved, float(self.cost[to]) + moved)
        return Operation(name, after, self.transfer(strip), ((strip, to),))

    def placed(self, operation: Operation) -> Operation | None:
        """A plain shift with its line: where C_r is greatest, and C_t least among equals."""
        a, b, across = self.parts[self.worst], self.parts[operation.to], operation.across
        lines = np.arange(a[across] + 1, a[across + 2])
        strips = np.tile(np.array(a), (len(lines), 1))
        strips[:, across if b[across] == a[across + 2] else across + 2] = lines
        x0, y0, x1, y1 = strips.T
        moved, queries = (
            sums[y1, x1] - sums[y0, x1] - sums[y1, x0] + sums[y0, x0] for sums in (self.costs, self.query_sums)
        )
        after = np.maximum(self.cost[self.worst] - moved, self.cost[operation.to] + moved)
        ways = np.lexsort((queries, after))
        return self.handed("shift", rectangle(strips[ways[0]]), operation.to) if len(ways) else None

    def next(self, only_worst: bool) -> Operation | None:
        """The operation to carry out, if there is one: for the costliest evaluator, or else for the costliest for which
        there is one. That lowers the costs of all whom it concerns below its own, so there is an end to it.
        """
        for leaf in np.argsort(-self.cost, kind="stable")[: 1 if only_worst else None].tolist():
            self.worst = leaf
            if operation := self.best():
                return operation
        return None

    def best(self) -> Operation | None:
        """The operation that relieves the one at hand best, if there is one."""
        some = (each for each in self.operations() if each.reduction > each.overhead)
        for operation in sorted(some, key=lambda each: -each.reduction):
            exact = operation if operation.gives else self.placed(operation)
            if exact and exact.reduction > exact.overhead:
                return exact
        return None

    def carry_out(self, operation: Operation) -> None:
        grid = self.node.reshape(self.partition.cells, self.partition.cells)
        for strip, leaf in operation.gives:
            x0, y0, x1, y1 = strip
            giver = int(grid[y0, x0])
            rest, grown = without(self.parts[giver], strip), together(self.parts[leaf], strip)
            self.parts[giver], self.parts[leaf] = rest, grown
            grid[y0:y1, x0:x1] = leaf
            self.cost[giver], self.cost[leaf] = self.cost_of(rest), self.cost_of(grown)

    def drawn_anew(self) -> tuple[np.ndarray, float]:
        """The leaf of each cell by §4.1 for the costs as they are, and the greatest cost. The new rectangles go to the
        leaves that have most of their queries already.
        """
        from scipy.optimize import linear_sum_assignment  # 0.2 s to import, and seldom needed

        side, leaves = self.partition.cells, self.partition.leaves
        parts = split(self.costs, leaves)
        drawn = paint(parts, side)
        kept = np.bincount(drawn * np.int32(leaves) + self.partition.node, self.loads.cell_transfer, leaves**2)
        number, leaf = linear_sum_assignment(kept.reshape(leaves, leaves), maximize=True)
        leaf_of = np.empty(leaves, np.int32)
        leaf_of[number] = leaf
        return leaf_of[drawn], max(map(self.cost_of, parts))

    def moved(self, node: np.ndarray) -> float:
        """Queries that change hands if leaves have these cells."""
        owner = self.partition.owner
        return float(self.loads.cell_transfer[owner[self.partition.node] != owner[node]].sum())

    def move(self, names: Sequence[str], node: np.ndarray) -> Move:
        """From the partition as it was to what it has become by these operations."""
        partition, was = self.partition, self.loads.leaf_load
        load = np.bincount(node, self.cell_load, partition.leaves)
        after = replace(partition, node=node, load=load)
        moved = partition.owner[partition.node] != partition.owner[node]
        return Move(
            "shift",
            f"{', '.join(names)}: the costliest leaf has {was.max():.3g}, the mean is {was.mean():.3g}",
            after,
            replace(self.loads, leaf_load=load),
            self.moved(node),
            float(self.loads.cell_posts[moved].sum()),
            worker_loads(partition, was),
            worker_loads(after, load),
        )


def without(part: Rectangle, strip: Rectangle) -> Rectangle:
    """What is left of a rectangle without a strip along one of its sides; nothing, if that is all of it."""
    rest = list(part)
    for axis in (0, 1):
        if (strip[axis], strip[axis + 2]) != (part[axis], part[axis + 2]):
            low = strip[axis] == part[axis]
            rest[axis if low else axis + 2] = strip[axis + 2 if low else axis]
            return rest[0], rest[1], rest[2], rest[3]
    return NOTHING


def together(part: Rectangle, strip: Rectangle) -> Rectangle:
    """A rectangle and a strip along one of its sides."""
    if part == NOTHING:
        return strip
    return min(part[0], strip[0]), min(part[1], strip[1]), max(part[2], strip[2]), max(part[3], strip[3])
