"""What an adjustment has done, measured in the batches after it, beside what was predicted (`engine.rebalancing`).

Loads are those that workers note (`engine.load_notes`), in milliseconds a batch; times are the driver's own, from the
start of a batch to its commit. Neither decides anything.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np

from nearcast.partitioning.moves import imbalance
from nearcast.storage.manifest import STATISTICS, SegmentRef

BATCHES = 3  # with posts, that an adjustment is judged by


def timed(refs: Sequence[SegmentRef], seconds: float | None) -> list[SegmentRef]:
    """New segments, the notes among them with how long their batch took."""
    if seconds is None:
        return list(refs)
    took = {"seconds": round(seconds, 3)}
    return [replace(ref, facts={**ref.facts, **took}) if ref.kind == STATISTICS else ref for ref in refs]


def seconds_of(refs: Sequence[SegmentRef]) -> dict[int, float]:
    """By batch how long it took, of those whose notes tell."""
    return {ref.batch: float(ref.facts["seconds"]) for ref in refs if ref.kind == STATISTICS and "seconds" in ref.facts}


def neighbours(refs: Sequence[SegmentRef], batch: int) -> dict[str, float]:
    """How long the batch of an adjustment took, and those before it, as far as is known."""
    took = seconds_of(refs)
    earlier = [took[each] for each in sorted(took) if each < batch][-BATCHES:]
    out = {"batch_s": took[batch]} if batch in took else {}
    return out | ({"earlier_s": round(median(earlier), 3)} if earlier else {})


def judged(adjustments: Sequence[dict[str, Any]], refs: Sequence[SegmentRef]) -> list[dict[str, Any]]:
    """The records of adjustments; the newest with what was measured, once BATCHES batches have followed it."""
    if not adjustments or "ratio_measured" in adjustments[-1]:
        return list(adjustments)
    newest = adjustments[-1]
    after = [ref for ref in refs if ref.kind == STATISTICS and ref.batch > newest["batch"]]
    batches = sorted({ref.batch for ref in after})[:BATCHES]
    if len(batches) < BATCHES:
        return list(adjustments)
    own = [ref for ref in after if ref.batch in batches]
    work = [ref.facts["carrying"] + ref.facts["checking"] for ref in own]
    loads = np.bincount([ref.owner for ref in own], work, minlength=newest.get("workers", 0)) / BATCHES / 1000
    ratio = imbalance(loads)
    found: dict[str, Any] = {
        "busiest_measured": round(float(loads.max()), 3),
        "ratio_measured": None if ratio == float("inf") else round(ratio, 2),
    }
    took = [seconds for batch, seconds in seconds_of(own).items() if batch in batches]
    if took:
        found["later_s"] = round(median(took), 3)
    return [*adjustments[:-1], {**newest, **found}]
