"""What pictures have in common. matplotlib is imported only where something is drawn, and without `pyplot`: a figure is
an object like others, drawn by Agg, and needs no screen.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from nearcast.common.errors import BadInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEAT = "YlOrRd"  # from pale (little) to dark (much)
DARK, PALE = "#222222", "#ffffff"


def save(figure: "Figure", path: Path, dpi: float) -> None:
    """Write a PNG, whatever the file is called."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    figure.set_dpi(dpi)
    try:
        canvas.print_png(path)
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}") from None


def readable(colour: tuple[float, ...]) -> str:
    """Black or white, whichever shows on a colour of parts from 0 to 1."""
    red, green, blue, *_ = colour
    return PALE if 0.3 * red + 0.6 * green + 0.1 * blue < 0.5 else DARK
