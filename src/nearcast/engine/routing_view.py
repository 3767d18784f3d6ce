"""Posts on their way to the workers, as routing sees them: which of them can any subscription want?"""

from dataclasses import dataclass

import numpy as np

from nearcast.common.kernels.grid import may_match
from nearcast.common.kinds import kinds
from nearcast.engine.batch import BatchPlan, open_summary
from nearcast.storage.manifest import SUBSCRIPTIONS


@dataclass(frozen=True)
class RoutingView:
    """The cells (of the router's textual summary) and the terms of some posts."""

    cells: np.ndarray
    terms: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.cells)

    def may_match(self, plan: BatchPlan, codes: tuple[int, ...]) -> np.ndarray:
        """Which of them a subscription of some kinds may want, by the textual summary of its words and its place
        (PS2Stream's H2, Tornado §4.6).
        """
        return may_match(self.cells, self.terms, self.offsets, open_summary(plan, codes))

    def everything(self) -> np.ndarray:
        return np.ones(len(self), np.bool_)

    def marks(self, plan: BatchPlan, drop: bool, matched: np.ndarray | None) -> np.ndarray:
        """The kinds of subscriptions that may want each post, a bit each (`Kind.mark`). Where posts may not be dropped
        (`drop` is False), every kind may; `matched`, if given, are those that some leaf has to match.
        """
        asked = {ref.asks for ref in plan.manifest.of(SUBSCRIPTIONS)}
        marks = np.zeros(len(self), np.min_scalar_type(max(kind.mark for kind in kinds())))
        for kind in kinds():
            bit = marks.dtype.type(kind.mark)
            if not drop:
                marks |= bit
            elif kind.placed and matched is not None:
                marks[matched] |= bit
            elif kind.code in asked:
                marks[kind.standing.wants(plan, self)] |= bit
        return marks
