"""Questions for the most relevant, by which the kernels are compiled before they are needed."""

from nearcast.engine.roles import WarmUp

RELEVANT = "SELECT * FROM stream ORDER BY RELEVANCE(POINT(0, 50), 'coffee rain the', 0.4) DESC LIMIT 5 WINDOW {}"

ROLE = WarmUp(
    standing=(RELEVANT.format("100 POSTS"), RELEVANT.format("1 HOUR")),
    searches=(RELEVANT.format("1000 POSTS"),),
    pattern=r"(?i)\bRELEVANCE\s*\(",
    column="alpha",
)
