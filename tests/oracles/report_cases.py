"""What reports of frequent terms mean, one thing at a time, worked out by hand. Times are minutes after a full hour.

A report is written as `20 q: flood 2, bus 1`, by its window's end, its query and its rows; one with how many were
skipped as `20 q: (5 skipped)`. The first post of every stream is at minute 1.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.engine.oracle import Batch

MINUTE = 60_000_000
HOUR = 60 * MINUTE
ZERO = 1_700_000_000_000_000 // HOUR * HOUR


def at(minutes: float) -> int:
    return ZERO + round(minutes * MINUTE)


def post(post_id: int | str, minute: float, text: str | None = "word", lon: float = 1.0, **more: Any) -> dict[str, Any]:
    return {"id": post_id, "ts": at(minute), "lon": lon, "lat": 1.0, "text": text, **more}


def top(window: float = 10, beat: float = 10, k: int = 9, where: str = "", life: str = "") -> str:
    """Minutes of window and beat."""
    conditions = f"{where} AND " if where else ""
    times = f"time AFTER '{window} minutes ago' SYNC {beat} minutes"
    return f"SELECT TopK(text, {k}) FROM stream WHERE {conditions}{times}{' FOR ' if life else ''}{life}"


def subscribe(query_id: int | str, sql: str, minute: float | None = None) -> dict[str, Any]:
    return {"op": "subscribe", "id": query_id, "sql": sql, "ts": None if minute is None else at(minute)}


def unsubscribe(query_id: int | str, minute: float | None = None) -> dict[str, Any]:
    return {"op": "unsubscribe", "id": query_id, "ts": None if minute is None else at(minute)}


def delete(post_id: int | str) -> dict[str, Any]:
    return {"op": "delete", "id": post_id}


def minute(moment: int) -> str:
    return f"{(moment - ZERO) / MINUTE:.15g}"


def spelled(reports: Iterable[tuple[int, int | str, list[dict[str, Any]], int | None]]) -> list[str]:
    """(window_end, query_id, rows, skipped) as the cases write them."""
    out = []
    for window_end, query_id, rows, skipped in reports:
        assert not rows or skipped is None
        words = ", ".join(f"{row['term']} {row['count']}" for row in rows)
        what = words if skipped is None else f"({skipped} skipped)"
        out.append(f"{minute(window_end)} {query_id}: {what}".rstrip())
    return out


FIRST = post("first", 1, "the first post")


@dataclass(frozen=True)
class Case:
    """Batches, and what the outbox holds after them; `late` as (query, post), lateness and retention in minutes."""

    batches: list[Batch]
    reports: list[str]
    late: list[tuple[int | str, int | str]] = field(default_factory=list)
    lateness: int = 0
    retention: int | None = None
    rejects: int = 0


RANGE = "SELECT * FROM stream WHERE text CONTAINS 'nothing'"
TOCKS = "text CONTAINS 'NOT tick'"  # posts that only move the clock say tick


def tick(number: int, minute: float) -> dict[str, Any]:
    return post(f"t{number}", minute, "tick")


CASES: dict[str, Case] = {
    #  beats      |10        |20        |30
    #  posts  1  2|   3      4|5
    "a window has its end and not its beginning, a post has a term once, and a beat fires when the clock is past": Case(
        [
            Batch([subscribe("q", top())], [post(1, 1, "a b a"), post(2, 10, "A"), post(3, 10.5, "c")]),
            Batch([], [post(4, 20, "d c")]),
            Batch([], [post(5, 20.1, "e")]),
            Batch([], [post(6, 30, "f")]),
        ],
        ["10 q: a 2, b 1", "20 q: c 2, d 1"],
    ),
    "a subscription that was there from the beginning reports from the first post on": Case(
        [Batch([subscribe("q", top(2, 1))], [post(1, 2, "a"), post(2, 0.5, "early"), tick(1, 4)])],
        ["1 q: early 1", "2 q: a 1, early 1", "3 q: a 1"],
    ),
    "a beat at the very start reports, one at the end does not, and posts from before the start count": Case(
        [
            Batch([], [post(1, 2, "old"), post(2, 9, "a"), post(3, 12, "b")]),
            Batch([subscribe("q", top(9, 10, life="20 MINUTES"), 10)]),
            Batch([], [post(4, 20, "c"), post(5, 29, "d"), post(6, 41, "e")]),
        ],
        ["10 q: a 1, old 1", "20 q: b 1, c 1"],
    ),
    #  beats 10 20 30 40 50; windows of 25: a post at 12 is in those of 20 and 30, one at 15 is not in that of 40
    "a step that does not divide the window": Case(
        [Batch([subscribe("q", top(25, 10))], [post(1, 12, "a"), post(2, 15, "b"), post(3, 15.1, "c"), tick(1, 51)])],
        ["10 q:", "20 q: a 1, b 1, c 1", "30 q: a 1, b 1, c 1", "40 q: c 1", "50 q:"],
    ),
    "a step longer than the window leaves posts out, and they are never late": Case(
        [
            Batch([subscribe("q", top(2, 10))], [post(1, 7, "a"), post(2, 8.5, "b"), post(3, 31, "c")]),
            Batch([], [post(4, 16, "d"), post(5, 18, "e"), post(6, 18.1, "f"), post(7, 41, "g")]),
        ],
        ["10 q: b 1", "20 q:", "30 q:", "40 q:"],
        late=[("q", 6)],
    ),
    "ties go by code point, beyond the first plane too, and k cuts them": Case(
        [
            Batch([subscribe("all", top(k=40)), subscribe("five", top(k=5)), subscribe("one", top(k=1))],
                  [post(1, 2, "🌊 﨎 zebra 東京 𠮷"), post(2, 3, "Éclair 🌊 ω #tag 﨎 𠮷 東 zebra"), tick(1, 11)]),
        ],
        [
            "10 all: zebra 2, 東 2, 﨎 2, 🌊 2, 𠮷 2, #tag 1, eclair 1, tag 1, ω 1, 京 1",
            "10 five: zebra 2, 東 2, 﨎 2, 🌊 2, 𠮷 2",
            "10 one: zebra 2",
        ],
    ),
    "every beat reports, of posts without words too": Case(
        [
            Batch([subscribe("q", top(where=TOCKS))], [post(1, 15, None), post(2, 16, ""), post(3, 25, "a")]),
            Batch([], [tick(1, 50.5)]),
        ],
        ["10 q:", "20 q:", "30 q: a 1", "40 q:", "50 q:"],
    ),
    "at one beat the earlier subscription reports first, whatever its id": Case(
        [
            Batch([subscribe("z", top(20, 20)), subscribe(7, top()), subscribe("a", top())], [post(1, 5, "x")]),
            Batch([subscribe("b", top(), 10), subscribe(1, top(), 10)], [tick(1, 21)]),
        ],
        ["10 7: x 1", "10 a: x 1", "10 b: x 1", "10 1: x 1", "20 z: x 1", "20 7:", "20 a:", "20 b:", "20 1:"],
    ),
    "conditions of all kinds: a region over the antimeridian, words, attributes": Case(
        [
            Batch(
                [
                    subscribe("over", top(where="loc INSIDE RECT(170, -60, -170, 60)")),
                    subscribe("round", top(where="loc INSIDE CIRCLE(180, 1, 200 km)")),
                    subscribe("words", top(where="""text CONTAINS '"a b" OR (c AND NOT a)'""")),
                    subscribe("cheap", top(where="price < 5 AND kind IS NULL")),
                ],
                [
                    post(1, 2, "a b", -180.0, price=9, kind=None), post(2, 3, "b a", 179.0, price=1),
                    post(3, 4, "c", -170.0, price=4, kind="shop"), post(4, 5, "c a", -169.9, price=None), tick(1, 11),
                ],
            ),
        ],
        ["10 over: a 2, b 2, c 1", "10 round: a 2, b 2", "10 words: a 1, b 1, c 1", "10 cheap: a 1, b 1"],
    ),
    #  lateness 5: beat 10 fires when the clock is past 15
    "a beat waits for the lateness, and what comes until then counts": Case(
        [
            Batch([subscribe("q", top())], [post(1, 8, "a"), post(2, 15, "b")]),
            Batch([], [post(3, 10, "c"), post(4, 9, "d"), post(5, 14, "e")]),
            Batch([], [post(6, 15.1, "f"), post(7, 7, "g")]),
            Batch([], [post(8, 25.5, "h"), post(9, 11, "i")]),
        ],
        ["10 q: a 1, c 1, d 1, g 1", "20 q: b 1, e 1, f 1, i 1"],
        lateness=5,
    ),
    #  beats 10, 20, 30 have fired; post 3 belonged to 10 and 20 and 30, post 4 to 20, 30 and 40, post 5 to 40
    "a post that comes after its report is late once, however many beats, and counts from then on": Case(
        [
            Batch([subscribe("q", top(30, 10))], [post(1, 5, "a"), post(2, 31, "b")]),
            Batch([], [post(3, 9, "c"), post(4, 12, "d"), post(5, 30.5, "e")]),
            Batch([], [post(4, 12, "d"), post(4, 12, "d")]),
            Batch([], [tick(1, 41)]),
        ],
        ["10 q: a 1", "20 q: a 1", "30 q: a 1", "40 q: b 1, d 1, e 1"],
        late=[("q", 3), ("q", 4)],
    ),
    "late is only what was asked for and would have counted": Case(
        [
            Batch([subscribe("q", top(where="text CONTAINS 'a'"), 20), subscribe("r", top())], [tick(1, 31)]),
            Batch([], [post(1, 9, "a"), post(2, 15, "a"), post(3, 25, "b"), post(4, 25, "a b")]),
        ],
        ["10 r:", "20 q:", "20 r:", "30 q:", "30 r:"],
        late=[("q", 2), ("q", 4), ("r", 1), ("r", 2), ("r", 3), ("r", 4)],
    ),
    "a post is late for a subscription that has ended since, and not for beats after its end": Case(
        [
            Batch([subscribe("q", top(life="20 MINUTES"), 10)], [tick(1, 45)]),
            Batch([], [post(1, 9, "a"), post(2, 19, "b"), post(3, 25, "c")]),
        ],
        ["10 q:", "20 q:"],
        late=[("q", 1), ("q", 2)],
    ),
    "a post counts and is late with its time in a later batch, also if it has the id of another": Case(
        [
            Batch([subscribe("q", top())], [post(1, 5, "a"), post(1, 6, "a"), post(1, 5, "a", 3.0), post(1, 5, "a")]),
            Batch([], [post("1", 5, "a"), tick(1, 11)]),
            Batch([], [post(1, 7, "a")]),
        ],
        ["10 q: a 4"],
        late=[("q", 1)],
    ),
    "a deleted post is in no report that fires with the deletion or later": Case(
        [
            Batch([subscribe("q", top(20, 10))], [post(1, 5, "a"), post(2, 6, "b"), post(3, 6, "b")]),
            Batch([delete(1)], [post(4, 11, "c")]),
            Batch([delete(2), delete("3")], [post(5, 21, "d")]),
            Batch([delete(4), delete(5)], [post(5, 22, "e"), tick(1, 31)]),
        ],
        ["10 q: b 2", "20 q: b 1, c 1", "30 q: e 1"],
    ),
    "the same text again changes nothing": Case(
        [
            Batch([subscribe("q", top(life="25 MINUTES"))], [post(1, 5, "a")]),
            Batch([subscribe("q", top(life="25 minutes").replace(" AND", "  and"))], [post(2, 11, "b")]),
            Batch([subscribe("q", top(life="25 MINUTES"), 12), subscribe("r", top())], [tick(1, 41)]),
        ],
        ["10 q: a 1", "20 q: b 1", "20 r: b 1", "30 r:", "40 r:"],
    ),
    #  clock 22 when it is replaced: beat 20 is still the old one's, and fires later
    "another text takes over at the clock, and what the old one still owes it reports": Case(
        [
            Batch([subscribe("q", top()), subscribe("r", top(5, 20))], [post(1, 5, "a"), post(2, 22, "b")]),
            Batch([subscribe("q", top(40, 10, 1))], [post(3, 18, "c"), post(4, 21, "b")]),
            Batch([], [tick(1, 46)]),
        ],
        ["10 q: a 1", "20 q: c 1", "20 r: c 1", "30 q: b 2", "40 r:", "40 q: b 2"],
        lateness=5,
    ),
    "a replacement for later starts there, and until then the old one reports": Case(
        [
            Batch([subscribe("q", top())], [post(1, 5, "a")]),
            Batch([subscribe("q", top(60, 10), 25)], [post(2, 15, "b"), tick(1, 31)]),
        ],
        ["10 q: a 1", "20 q: b 1", "30 q: a 1, b 1"],
    ),
    "from a range to reports and back": Case(
        [
            Batch([subscribe("q", RANGE)], [post(1, 5, "a")]),
            Batch([subscribe("q", top())], [post(2, 15, "b")]),
            Batch([subscribe("q", RANGE)], [post(3, 25, "c")]),
            Batch([], [post(4, 9, "d")]),
        ],
        ["10 q: a 1"],
        late=[("q", 4)],
    ),
    "unsubscribing ends it at the clock, or when it says": Case(
        [
            Batch([subscribe("now", top()), subscribe("then", top()), subscribe("past", top())], [post(1, 15, "a")]),
            Batch([unsubscribe("now"), unsubscribe("then", 30.5), unsubscribe("past", 5)], [post(2, 25, "b")]),
            Batch([], [tick(1, 45)]),
        ],
        ["10 now:", "10 then:", "10 past:", "20 then: a 1", "30 then: b 1"],
    ),
    "one that was ended in the past has still reported what it has": Case(
        [
            Batch([subscribe("q", top())], [post(1, 5, "a"), post(2, 11, "b")]),
            Batch([unsubscribe("q", 2)]),
            Batch([], [post(3, 6, "c"), post(4, 12, "d"), tick(1, 31)]),
        ],
        ["10 q: a 1"],
        late=[("q", 3)],
    ),
    "a subscription may end before it began": Case(
        [Batch([subscribe("q", top(), 25), unsubscribe("q", 12)], [post(1, 6, "a"), tick(1, 45)])],
        [],
    ),
    "beats that are past when a subscription comes are reported at once, with the posts of its batch": Case(
        [
            Batch([], [post(1, 5, "a"), post(2, 15, "b"), post(3, 35, "c")]),
            Batch([subscribe("q", top(), 15), delete(3)], [post(4, 16, "d")]),
            Batch([], [post(5, 17, "e"), tick(1, 41)]),
        ],
        ["20 q: b 1, d 1", "30 q:", "40 q:"],
        late=[("q", 5)],
    ),
    "one that begins again in the past reports its beats again": Case(
        [
            Batch([subscribe("q", top())], [post(1, 5, "a"), post(2, 21, "b")]),
            Batch([unsubscribe("q")]),
            Batch([subscribe("q", top(), 10)], [post(3, 6, "c")]),
            Batch([], [post(4, 7, "d"), tick(1, 31)]),
        ],
        ["10 q: a 1", "20 q:", "10 q: a 1, c 1", "20 q:", "30 q: b 1"],
        late=[("q", 3), ("q", 4)],
    ),
    "an integer id and its digits are two": Case(
        [Batch([subscribe(1, top()), subscribe("1", top(k=1)), unsubscribe(1, 15)], [post(1, 5, "a b"), tick(1, 21)])],
        ["10 1: a 1, b 1", "10 1: a 1", "20 1:"],
    ),
    "before 1970 beats are whole multiples too": Case(
        [
            Batch([subscribe("q", top(10, 10), -ZERO / MINUTE - 15)]),
            Batch([], [{**post(1, 0, "a"), "ts": -20 * MINUTE}, {**post(2, 0, "b"), "ts": -10 * MINUTE - 1}]),
            Batch([], [{**post(3, 0, "c"), "ts": -1}, {**post(4, 0, "d"), "ts": 1}]),
        ],
        [f"{minute(-10 * MINUTE)} q: b 1", f"{minute(0)} q: c 1"],
    ),
    "a step and a window longer than all time": Case(
        [
            Batch([subscribe("q", top().replace("10 minutes", "5000000 weeks"), -ZERO / MINUTE)]),
            Batch([], [{**post(1, 0, "a"), "ts": -1}, post(2, 1, "b")]),
        ],
        [f"{minute(0)} q: a 1"],
    ),
    "a window longer than retention is a reject, and replaces nothing": Case(
        [
            Batch([subscribe("q", top(30, 10)), subscribe("r", top(30.001, 10))], [post(1, 5, "a")]),
            Batch([subscribe("q", top(31, 10))], [tick(1, 21)]),
        ],
        ["10 q: a 1", "20 q: a 1"],
        retention=30,
        rejects=2,
    ),
    #  the clock is at 61 when they come: what is from before 31 is too old
    "a post older than retention is late and counts nowhere": Case(
        [
            Batch([subscribe("q", top(30, 20, where=TOCKS))], [tick(1, 61)]),
            Batch([], [post(1, 30.5, "a"), post(2, 31, "b"), post(3, 59, "c")]),
            Batch([], [tick(2, 81)]),
        ],
        ["20 q:", "40 q:", "60 q:", "80 q: c 1"],
        late=[("q", 1), ("q", 2), ("q", 3)],
        retention=30,
    ),
    #  beat 60, whose window begins at 30, waits for the clock to pass 80
    "a post older than retention is late also for a report to come, which counts one just as old as retention": Case(
        [
            Batch([subscribe("q", top(30, 20, where=TOCKS), 41)], [tick(1, 61)]),
            Batch([], [post(1, 30.5, "a"), post(2, 31, "b")]),
            Batch([], [tick(2, 81)]),
        ],
        ["60 q: b 1"],
        late=[("q", 1)],
        lateness=20,
        retention=30,
    ),
}  # fmt: skip
