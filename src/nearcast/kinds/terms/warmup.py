"""Questions for frequent terms, by which the kernels are compiled before they are needed."""

from nearcast.engine.roles import WarmUp

PLACE = "loc INSIDE RECT(-180, -90, 180, 90)"

ROLE = WarmUp(
    standing=(f"SELECT TopK(text, 5) FROM stream WHERE {PLACE} AND time AFTER '1 second ago' SYNC 1 second",),
    searches=(
        f"SELECT TopK(text, 5) FROM stream WHERE {PLACE}",
        "SELECT TopK(text, 5) FROM stream WHERE loc INSIDE RECT(-10, 40, 20, 60) AND text CONTAINS 'coffee'",
    ),
    pattern=r"(?is)\bTopK\s*\(.*\bSYNC\s+['\"]?\d",
    column="sync_seconds",
)
