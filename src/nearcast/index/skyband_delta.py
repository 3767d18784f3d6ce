"""What came to buffers with a batch, from which they can be had again: a file of buffers and the deltas since are the
buffers of now, bit for bit.

A delta has no decisions: thetas that rose are in it, so that it can be replayed whatever the policy has learnt since.
Windows are told by the number of their first post, so that it can be replayed with a later ledger, too, of which posts
have come and gone: replayed with the ledger of then, each state in between is what it was; with a later one, the last,
once it is advanced to the windows of now. (Posts that only the ledger of then had are outside of every window, and so
are all that they dominate.) Rows added and ended are not in it: that is what the subscriptions say.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nearcast.index.skyband import Arrivals, Buffers, Numbered, Refills, Step, concealed
from nearcast.index.skyband_policy import NO_LIMIT

NONE_INSIDE = np.int64(2**62)


@dataclass(frozen=True)
class Delta:
    """`first`: of each window the number of the first post inside, or NONE_INSIDE. `raised` rows have the theta of
    `theta`, of all others that arrivals came to it stayed.
    """

    first: np.ndarray
    deleted: np.ndarray
    arrivals: Arrivals
    raised: np.ndarray
    theta: np.ndarray
    refills: Refills

    @classmethod
    def of(
        cls,
        buffers: Buffers,
        ledger: Numbered,
        bounds: np.ndarray,
        arrivals: Arrivals,
        step: Step,
        refills: Refills,
        deleted: np.ndarray | None = None,
    ) -> "Delta":
        """Of a batch that was advanced (with that step) and refilled (all short rows)."""
        anew = np.zeros(len(buffers), np.bool_)
        anew[refills.rows] = True
        keep = ~anew[arrivals.rows]
        kept = Arrivals(arrivals.rows[keep], arrivals.numbers[keep], arrivals.scores[keep])
        raised = step.moved[~anew[step.moved]]
        settled = Refills(**{**refills.__dict__, "theta": buffers.theta[refills.rows]})
        inside = np.full(len(bounds), NONE_INSIDE)
        some = bounds < len(ledger.by_order)
        inside[some] = ledger.by_order[bounds[some]]
        gone = np.empty(0, np.int64) if deleted is None else np.asarray(deleted, np.int64)
        return cls(inside, gone, kept, raised, buffers.theta[raised], settled)

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it, for a file."""
        own = {"first": self.first, "deleted": self.deleted, "raised": self.raised, "theta": self.theta}
        came = {f"came_{name}": value for name, value in self.arrivals.__dict__.items()}
        return own | came | {f"refill_{name}": value for name, value in self.refills.__dict__.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "Delta":
        came = {name.removeprefix("came_"): value for name, value in arrays.items() if name.startswith("came_")}
        anew = {name.removeprefix("refill_"): value for name, value in arrays.items() if name.startswith("refill_")}
        own = {name: arrays[name] for name in ("first", "deleted", "raised", "theta")}
        return cls(arrivals=Arrivals(**came), refills=Refills(**anew), **own)


def replay(buffers: Buffers, delta: Delta, ledger: Numbered, dominance: bool = True) -> None:
    """Do again to buffers what was done with a batch, under a policy that evicts what is dominated or not."""
    bounds = first_orders(delta.first, ledger)
    hidden = concealed(ledger, delta.deleted)
    rows, starts = buffers.touched(ledger, bounds, delta.arrivals, hidden)
    raised = np.full(len(rows), -1.0)
    raised[np.searchsorted(rows, delta.raised)] = delta.theta
    batch = (rows, starts, delta.arrivals.numbers, delta.arrivals.scores, raised)
    none = np.empty(0, np.bool_)
    for refill, (what, gone) in enumerate(((batch, hidden), (delta.refills.batch(), none))):
        if refill:
            buffers.version[delta.refills.rows] = delta.refills.version
        limit = np.full(len(what[0]), NO_LIMIT)
        flags = {"refilled": bool(refill), "judged": False, "dominance": dominance}
        buffers.settle(ledger, bounds, what, (limit, limit), gone, **flags)


def first_orders(first: np.ndarray, ledger: Numbered) -> np.ndarray:
    """The order that the first post of each window has now; 0 where it is gone, with all posts before it."""
    places = first - ledger.base
    there = (places >= 0) & (places < len(ledger.order))
    out = np.where(places < 0, 0, len(ledger.by_order))
    out[there] = np.maximum(ledger.order[places[there]], 0)
    return out.astype(np.int64)
