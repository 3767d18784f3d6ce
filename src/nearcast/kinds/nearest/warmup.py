"""Questions for the nearest, by which the kernels are compiled before they are needed."""

from nearcast.engine.roles import WarmUp

NEAREST = "SELECT * FROM stream WHERE text CONTAINS 'coffee' ORDER BY DISTANCE(loc, POINT(0, 50)) LIMIT 5"

ROLE = WarmUp(
    standing=(NEAREST,),
    searches=(NEAREST, "SELECT * FROM stream ORDER BY DISTANCE(loc, POINT(0, 50)) LIMIT 5"),
    pattern=r"(?i)\bDISTANCE\s*\(",
    column="k",
)
