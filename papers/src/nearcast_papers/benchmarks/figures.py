"""Figures: a number or repeats of it, with the target of the project beside it."""

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

Progress = Callable[[str], None]


def figure(
    values: float | Sequence[float], at_most: float | None = None, at_least: float | None = None
) -> dict[str, Any]:
    """One value, or repeats and their median; whether it meets the bound, if there is one."""
    out: dict[str, Any] = {}
    if isinstance(values, int | float):
        value = float(values)
        out["value"] = rounded(value)
    else:
        value = median(values)
        out["median"] = rounded(value)
        out["repeats"] = [rounded(each) for each in values]
    if at_most is not None:
        out |= {"target": f"at most {at_most:,}", "met": value <= at_most}
    if at_least is not None:
        out |= {"target": f"at least {at_least:,}", "met": value >= at_least}
    return out


def rounded(value: float) -> float:
    """Four significant digits and no fewer before the point: benchmarks know no more."""
    return float(round(value)) if abs(value) >= 1000 else float(f"{value:.4g}")
