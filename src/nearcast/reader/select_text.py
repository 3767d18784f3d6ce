"""Parts of the SELECT of a subscription that came as columns."""

from dataclasses import dataclass

from nearcast.common.geo.shapes import CIRCLE, POLYGON, RECT
from nearcast.storage.subscriptions.rows import Rows


@dataclass(frozen=True)
class SelectPart:
    """A kind's part of a SELECT: what comes before FROM, its `conditions` beside those of all kinds, and what comes
    `after` the WHERE.
    """

    what: str = "*"
    conditions: tuple[str, ...] = ()
    after: str = ""


def exact_number(value: float) -> str:
    """The shortest number that is read as this one."""
    return repr(value).removesuffix(".0")


def region_condition(rows: Rows, row: int) -> str:
    """Where posts lie, empty for everywhere."""
    shape = rows.shape[rows.shape_offsets[row] : rows.shape_offsets[row + 1]].tolist()
    kind = rows.kinds[row]
    if kind == RECT:
        return f"loc INSIDE RECT({', '.join(map(exact_number, rows.boxes[row].tolist()))})"
    if kind == CIRCLE:
        return f"loc INSIDE CIRCLE({', '.join(map(exact_number, shape[:3]))} km)"
    return f"loc INSIDE POLYGON('{_wkt(shape)}')" if kind == POLYGON else ""


def _wkt(shape: list[float]) -> str:
    rings, at = [], 0
    while at < len(shape):
        count = int(shape[at])
        pairs = [f"{exact_number(shape[at + 1 + 2 * i])} {exact_number(shape[at + 2 + 2 * i])}" for i in range(count)]
        if pairs and pairs[0] != pairs[-1]:
            pairs.append(pairs[0])
        rings.append("(" + ", ".join(pairs) + ")")
        at += 1 + 2 * count
    return "POLYGON(" + ", ".join(rings) + ")"
