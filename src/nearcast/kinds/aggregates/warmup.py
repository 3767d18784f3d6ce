"""Questions for aggregates, by which the kernels are compiled before they are needed."""

from nearcast.engine.roles import WarmUp

PLACE = "loc INSIDE RECT(-180, -90, 180, 90)"
STANDING = (
    f"SELECT Count(id), Avg(likes), weekday FROM stream WHERE {PLACE} AND text CONTAINS 'coffee' AND likes < 50 "
    "AND time AFTER '1 second ago' GROUP BY weekday SYNC 1 second",
    "SELECT TopK(text, 3), Max(length), likes FROM stream WHERE likes = 3 GROUP BY likes SYNC 1 second",
    "SELECT TopK(text, 3), Sum(length), length FROM stream GROUP BY length SYNC 1 second",
)

ROLE = WarmUp(
    standing=STANDING,
    searches=(
        *STANDING,
        "SELECT Count(id), Sum(length), hour, cell FROM stream GROUP BY hour, cell ORDER BY Count(id) DESC LIMIT 5",
    ),
    pattern=r"(?is)(GROUP\s+BY|Count|Sum|Avg|Min|Max).*\bSYNC\s+['\"]?\d",
)
