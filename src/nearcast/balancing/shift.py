"""Tornado's adaptivity (seed 002 §4.2-4.3): an overloaded evaluator is split while two others are merged, or hands a
strip of cells to a neighbour. An evaluator is a leaf here, a rectangle of cells; their number stays.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from nearcast.balancing.moves import Loads, Move, cell_load, only_space, worker_loads
from nearcast.routing.a_grid import cost_of, cut
from nearcast.routing.partition import Partition
from nearcast.routing.tally import Rectangle, prefix_sums
from nearcast.routing.tiles import area, bounds, rectangle

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


def adjust(partition: Partition, loads: Loads, beta: float = BETA) -> Move | None:
    """The operation with the greatest C_r among those with C_r > C_t, carried out; None if there is none.

    The line of a plain shift is sought once it is chosen. Where that shows that its true C_r does not exceed its true
    C_t, because all load is in one row, the next best operation is taken: the estimate assumes that any share of the
    load can be shifted. Cost: O(cells² + leaves + rows + columns).
    """
    if not only_space(partition):
        return None
    state = _State(partition, loads, beta)
    chosen = sorted((each for each in state.operations() if each.reduction > each.overhead), key=lambda o: -o.reduction)
    for operation in chosen:
        exact = operation if operation.gives else state.placed(operation)
        if exact and exact.reduction > exact.overhead:
            return state.carried_out(exact)
    return None


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
        self.cost = loads.leaf_load
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
        ways = []
        for line in range(a[across] + 1, a[across + 2]):
            strip = list(a)
            strip[across if b[across] == a[across + 2] else across + 2] = line
            ways.append(self.handed("shift", (strip[0], strip[1], strip[2], strip[3]), operation.to))
        return max(ways, key=lambda way: (way.reduction, -way.overhead), default=None)

    def carried_out(self, operation: Operation) -> Move:
        partition, side = self.partition, self.partition.cells
        node = partition.node.copy()
        for (x0, y0, x1, y1), leaf in operation.gives:
            node.reshape(side, side)[y0:y1, x0:x1] = leaf
        load = np.bincount(node, self.cell_load, partition.leaves)
        after = replace(partition, node=node, load=load)
        moved = partition.owner[partition.node] != partition.owner[node]
        return Move(
            "shift",
            f"{operation.name}: the costliest leaf has {self.cost[self.worst]:.3g}, the mean is {self.cost.mean():.3g}",
            after,
            replace(self.loads, leaf_load=load),
            float(self.loads.cell_transfer[moved].sum()),
            float(self.loads.cell_posts[moved].sum()),
            worker_loads(partition, self.cost),
            worker_loads(after, load),
        )
