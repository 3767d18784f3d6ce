"""What standing aggregates mean, one thing at a time, worked out by hand, written as in report_cases.py.

A report is written as `20 q: 2 x; 1 -`, by its window's end (minutes after a full hour), its query and the values of
its rows; a time among them as its minute (`3m`), terms as `[flood:2,rain:1]`, a null as `-`. The first post of every
stream is at minute 1.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from tests.engine.oracle import Batch
from tests.oracles.aggregates import EPOCH, MICROSECOND
from tests.oracles.report_cases import ZERO, Case, delete, minute, post, subscribe, tick, top, unsubscribe


def count(
    items: str = "Count(id)",
    window: float | None = 10,
    beat: float = 10,
    where: str = "",
    rest: str = "",
    life: str = "",
) -> str:
    """A standing aggregate; minutes of window (None: it counts from its start) and beat."""
    sliding = [] if window is None else [f"time AFTER '{window} minutes ago'"]
    conditions = " AND ".join([where, *sliding] if where else sliding)
    parts = [f"SELECT {items} FROM stream", f"WHERE {conditions}" if conditions else "", rest]
    return " ".join(filter(None, [*parts, f"SYNC {beat} minutes", f"FOR {life}" if life else ""]))


def spelled(reports: Iterable[tuple[int, int | str, list[dict[str, Any]], int | None]]) -> list[str]:
    """(window_end, query_id, rows, skipped) as the cases write them."""
    out = []
    for window_end, query_id, rows, skipped in reports:
        assert not rows or skipped is None
        what = spelled_rows(rows, ZERO) if skipped is None else f"({skipped} skipped)"
        out.append(f"{minute(window_end)} {query_id}: {what}".rstrip())
    return out


def spelled_rows(rows: list[dict[str, Any]], zero: int = 0) -> str:
    """Values side by side, rows apart by semicolons; times as minutes after `zero`."""
    return "; ".join(" ".join(_spelled(value, zero) for value in row.values()) for row in rows)


def _spelled(value: Any, zero: int) -> str:
    match value:
        case datetime():
            return f"{((value - EPOCH) // MICROSECOND - zero) / 60e6:g}m"
        case list():
            return "[" + ",".join(f"{each['term']}:{each['count']}" for each in value) + "]"
    return "-" if value is None else str(value)


KINDS = "Count(id), kind"
BY_KIND = "GROUP BY kind"
SINCE = count(window=None)

CASES: dict[str, Case] = {
    #  beats     |10       |20       |30       |40       |50
    #  posts  1 2|3        |4                            |tick
    "a window has its end and not its beginning, and without groups there is one row also of no posts": Case(
        [
            Batch(
                [subscribe("q", count("Count(id), Sum(n)"))],
                [post(1, 1, n=1), post(2, 10, n=2), post(3, 10.5, n=4)],
            ),
            Batch([], [post(4, 20.5, n=8)]),
            Batch([], [tick(1, 50.5)]),
        ],
        ["10 q: 2 3", "20 q: 1 4", "30 q: 1 8", "40 q: 0 -", "50 q: 0 -"],
    ),
    "by group a report of no posts has no rows, and the beats of a batch come in order of beat and op": Case(
        [
            Batch(
                [subscribe("z", count(KINDS, rest=BY_KIND)), subscribe("a", count(KINDS, 20, 20, rest=BY_KIND))],
                [post(1, 3, kind="x"), post(2, 4), post(3, 5, kind="x"), post(4, 41, kind="y")],
            ),
        ],
        ["10 z: 2 x; 1 -", "20 z:", "20 a: 2 x; 1 -", "30 z:", "40 z:", "40 a:"],
    ),
    #  beats 10 20 30 40 50; windows of 25: a post at 12 is in those of 20 and 30, one at 15 is not in that of 40
    "a step that does not divide the window": Case(
        [Batch([subscribe("q", count(window=25))], [post(1, 12), post(2, 15), post(3, 15.1), tick(1, 51)])],
        ["10 q: 0", "20 q: 3", "30 q: 3", "40 q: 1", "50 q: 0"],
    ),
    #  r starts at minute 2, the clock when it comes, and s at minute 0.5
    "without a time it counts from its start, and what was there from the beginning counts all": Case(
        [
            Batch([subscribe("q", SINCE)], [post(1, 2), post(2, 0.5)]),
            Batch([subscribe("r", SINCE), subscribe("s", SINCE, 0.5)], [post(3, 11)]),
            Batch([], [post(4, 20), tick(1, 20.5), tick(2, 45)]),
        ],
        [
            "10 q: 2", "10 r: 1", "10 s: 2", "20 q: 4", "20 r: 3", "20 s: 4",
            "30 q: 5", "30 r: 4", "30 s: 5", "40 q: 5", "40 r: 4", "40 s: 5",
        ],
    ),
    "a post that comes after its report is late, and counts from then on": Case(
        [
            Batch([subscribe("w", count(window=20)), subscribe("all", SINCE)], [post(1, 5), post(2, 11)]),
            Batch([], [post(3, 6), post(4, 21)]),
        ],
        ["10 w: 1", "10 all: 1", "20 w: 3", "20 all: 3"],
        late=[("w", 3), ("all", 3)],
    ),
    "late is only what would have counted": Case(
        [
            Batch([subscribe("q", count(where="kind = 'x' AND length = 4")), subscribe("s", SINCE, 5)], [tick(1, 11)]),
            Batch([], [post(1, 4, kind="x"), post(2, 6, "longer", kind="x"), post(3, 7, kind="y")]),
        ],
        ["10 q: 0", "10 s: 0"],
        late=[("q", 1), ("s", 2), ("s", 3)],
    ),
    #  lateness 5: beat 10 fires when the clock is past 15
    "a beat waits for the lateness, and what comes until then counts": Case(
        [
            Batch([subscribe("q", count())], [post(1, 8), post(2, 15)]),
            Batch([], [post(3, 10), post(4, 15.5)]),
            Batch([], [post(5, 9), post(6, 25.5)]),
        ],
        ["10 q: 2", "20 q: 2"],
        late=[("q", 5)],
        lateness=5,
    ),
    #  both start at 10, where there is a beat, and end at 30, where there is none
    "a subscription that comes mid-window counts what came before; one without a window counts from its start": Case(
        [
            Batch([], [post(1, 2), post(2, 9), post(3, 12)]),
            Batch(
                [
                    subscribe("q", count(window=9, life="20 MINUTES"), 10),
                    subscribe("all", count(window=None, life="20 MINUTES"), 10),
                ]
            ),
            Batch([], [post(4, 20), post(5, 29), post(6, 41)]),
        ],
        ["10 q: 2", "10 all: 0", "20 q: 2", "20 all: 2"],
    ),
    "beats that are past when a subscription comes are reported at once, with the posts of its batch": Case(
        [
            Batch([], [post(1, 5), post(2, 15), post(3, 35)]),
            Batch([subscribe("q", SINCE, 15), delete(3)], [post(4, 16)]),
            Batch([], [post(5, 17), tick(1, 41)]),
        ],
        ["20 q: 2", "30 q: 2", "40 q: 3"],
        late=[("q", 5)],
    ),
    "unsubscribing ends it at the clock, or when it says": Case(
        [
            Batch([subscribe("now", SINCE), subscribe("then", SINCE)], [post(1, 15)]),
            Batch([unsubscribe("now"), unsubscribe("then", 30.5)], [post(2, 25)]),
            Batch([], [tick(1, 45)]),
        ],
        ["10 now: 0", "10 then: 0", "20 then: 1", "30 then: 2"],
    ),
    "a deleted post is in no report that fires with the deletion or later": Case(
        [
            Batch([subscribe("w", count(window=20)), subscribe("all", SINCE)], [post(1, 5), post(2, 6), post(3, 6)]),
            Batch([delete(1)], [post(4, 11)]),
            Batch([delete(2), delete("3")], [post(5, 21)]),
        ],
        ["10 w: 2", "10 all: 2", "20 w: 2", "20 all: 2"],
    ),
    "a duplicate counts once, another post of the same id counts too": Case(
        [
            Batch([subscribe("q", SINCE)], [post(1, 5), post(1, 5), post(1, 6)]),
            Batch([], [post(1, 5), post("1", 5), tick(1, 11)]),
        ],
        ["10 q: 3"],
    ),
    "HAVING, ORDER BY and LIMIT are of each report": Case(
        [
            Batch(
                [
                    subscribe(
                        "q",
                        count(
                            "kind, Count(id)", rest=f"{BY_KIND} HAVING Count(id) > 1 ORDER BY Count(id) DESC LIMIT 1"
                        ),
                    ),
                    subscribe("r", count(rest="HAVING Count(id) < 2")),
                ],
                [post(n, 1 + n, kind=kind) for n, kind in enumerate("aabbbc")],
            ),
            Batch([], [tick(1, 11), tick(2, 21)]),
        ],
        ["10 q: b 3", "10 r:", "20 q:", "20 r: 1"],
    ),
    "groups by street and minute, as in the paper's fourth example": Case(
        [
            Batch(
                [subscribe("q", count("Count(id), streetName, minute", rest="GROUP BY streetName, minute"))],
                [
                    post(1, 3.2, streetName="A"), post(2, 3.7, streetName="A"), post(3, 4.1, streetName="A"),
                    post(4, 10, streetName="B"), tick(1, 11),
                ],
            ),
        ],
        ["10 q: 2 A 3m; 1 A 4m; 1 B 10m"],
    ),
    "terms of each group, as in the paper's third example": Case(
        [
            Batch(
                [subscribe("q", count("TopK(text, 2), kind", None, rest=BY_KIND))],
                [post(1, 2, "a b", kind="x"), post(2, 3, "b c", kind="x"), post(3, 4, "c"), post(4, 5, None, kind="y")],
            ),
            Batch([], [post(5, 6, "c", kind="x"), post(6, 7, "c"), tick(1, 11)]),
        ],
        ["10 q: [b:2,c:2] x; [] y; [c:2] -"],
    ),
    "conditions of all kinds": Case(
        [
            Batch(
                [
                    subscribe("over", count(where="loc INSIDE RECT(170, -60, -170, 60)")),
                    subscribe("words", count(where="text CONTAINS 'a AND NOT b'")),
                    subscribe("cheap", count("Min(price), Max(price)", where="price < 5 AND kind IS NULL")),
                    subscribe("long", count("Avg(length)", where="length > 1 AND weekday = 2")),
                ],
                [
                    post(1, 2, "a b", -180.0, price=9), post(2, 3, "a", 179.0, price=1),
                    post(3, 4, "c", -169.9, price=4, kind="shop"), post(4, 5, "ccccc", 7.0, price="2"), tick(1, 11),
                ],
            ),
        ],
        ["10 over: 2", "10 words: 1", "10 cheap: 1 1", "10 long: 4.0"],
    ),
    "the same text again changes nothing": Case(
        [
            Batch([subscribe("q", SINCE)], [post(1, 5)]),
            Batch([subscribe("q", SINCE.replace("SELECT", " select "))], [post(2, 11)]),
            Batch([subscribe("q", SINCE, 3)], [tick(1, 21)]),
        ],
        ["10 q: 1", "20 q: 2"],
    ),
    #  the clock is at 22 when it is replaced
    "another text takes over at the clock, and counts from there": Case(
        [
            Batch([subscribe("q", SINCE)], [post(1, 5), post(2, 22)]),
            Batch([subscribe("q", count("Count(id) AS n", None))], [post(3, 21), post(4, 31)]),
        ],
        ["10 q: 1", "20 q: 1", "30 q: 1"],
    ),
    "from frequent terms to a count and back": Case(
        [
            Batch([subscribe("q", top())], [post(1, 5, "a")]),
            Batch([subscribe("q", count())], [post(2, 15)]),
            Batch([subscribe("q", top())], [post(3, 25, "c")]),
        ],
        ["10 q: 1", "20 q: word 1"],
    ),
    #  the clock is at 61 when posts 2 and 3 come: what is from before 31 is too old
    "a count with no time outlives the posts it came from; one older than retention counts nowhere": Case(
        [
            Batch([subscribe("all", count(window=None, beat=20))], [post(1, 5)]),
            Batch([], [tick(1, 61)]),
            Batch([], [post(2, 30.5), post(3, 59), tick(2, 81)]),
        ],
        ["20 all: 1", "40 all: 1", "60 all: 1", "80 all: 3"],
        late=[("all", 2), ("all", 3)],
        retention=30,
    ),
    "a window longer than retention is a reject, and replaces nothing": Case(
        [
            Batch([subscribe("q", count(window=30)), subscribe("r", count(window=30.001))], [post(1, 5)]),
            Batch([subscribe("q", count(window=31))], [tick(1, 21)]),
        ],
        ["10 q: 1", "20 q: 1"],
        retention=30,
        rejects=2,
    ),
    "what makes no sense on a beat is a reject": Case(
        [
            Batch(
                [
                    subscribe("no beat", "SELECT Count(id) FROM stream"),
                    subscribe("fixed", "SELECT Count(id) FROM stream WHERE time AFTER '2020-01-01' SYNC 10 minutes"),
                    subscribe("rough", "SELECT APPROXIMATE TopK(text), Count(id) FROM stream SYNC 10 minutes"),
                ],
                [post(1, 5), tick(1, 11)],
            ),
        ],
        [],
        rejects=3,
    ),
}  # fmt: skip
