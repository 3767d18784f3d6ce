"""Tables and numbers as the documentation writes them."""

from collections.abc import Iterable
from typing import Any


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """The lines of a table."""
    lines = [f"| {' | '.join(row)} |" for row in (head, *rows)]
    return [lines[0], "|" + "---|" * (lines[0].count("|") - 1), *lines[1:]]


def number(value: float) -> str:
    """Three digits that count, four from a thousand on, and thousands apart."""
    if abs(value) >= 1000:
        return f"{round(value, 4 - len(f'{abs(value):.0f}')):,.0f}"
    text = f"{value:.3g}"
    return f"{value:.7f}".rstrip("0") if "e" in text else text


def whole(value: float) -> str:
    """A count, every digit of it."""
    return f"{value:,.0f}"


def plain(figure: Any) -> float:
    """The number of a figure: its value, or the median of its repeats."""
    if isinstance(figure, dict):
        figure = figure["value"] if "value" in figure else figure["median"]
    return float(figure)


def shown(figure: Any, unit: str = "") -> str:
    """A figure with its unit, and with the span of its repeats where it has some."""
    text = number(plain(figure)) + (f" {unit}" if unit else "")
    if isinstance(figure, dict):
        values = figure.get("range") or figure.get("repeats") or ()
        if len(values) > 1 and min(values) < max(values):
            text += f" ({number(min(values))} to {number(max(values))})"
    return text


def aim(figure: Any) -> str:
    """The aim beside a figure, marked where it was missed."""
    if not isinstance(figure, dict) or "target" not in figure:
        return ""
    kind, _, value = figure["target"].rpartition(" ")
    text = f"{'≤' if kind == 'at most' else '≥'} {value.removesuffix('.0')}"
    return text if figure["met"] else f"{text}, missed"
