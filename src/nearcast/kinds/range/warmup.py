"""Questions for posts in a region, by which the kernels are compiled before they are needed."""

from nearcast.engine.roles import WarmUp

PLACE = "loc INSIDE RECT(-180, -90, 180, 90)"

ROLE = WarmUp(
    standing=(f"SELECT * FROM stream WHERE {PLACE} AND text CONTAINS 'coffee'",),
    searches=(
        f"SELECT * FROM stream WHERE {PLACE} AND text CONTAINS 'coffee'",
        f"SELECT * FROM stream WHERE {PLACE} AND text CONTAINS 'coffee OR rain AND NOT tea'",
        "SELECT * FROM stream WHERE loc INSIDE CIRCLE(0, 0, 5000 km) AND time AFTER '1 hour ago'",
    ),
)
