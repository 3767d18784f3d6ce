"""`nearcast demo`: a made-up world that posts, subscriptions that match, live."""

import json
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearcast.cli.deferred import loading
from nearcast.common.errors import BadInput

if TYPE_CHECKING:
    from nearcast.sources.world import World
    from nearcast.storage.directory import StateDirectory
    from nearcast.storage.manifest import Manifest

SHOWN_FOR = 600_000_000  # microseconds that a burst is talked about


def demo(
    state: Annotated[
        Path | None, typer.Option("--state", metavar="DIR", help="Where; a new temporary directory unless given.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=0, help="Stop by itself so long after the first batch.")
    ] = None,
    rate: Annotated[float, typer.Option("--rate", min=1, max=1_000_000, help="Posts a second.")] = 3000.0,
    subscriptions: Annotated[int, typer.Option("--subscriptions", min=1, max=100_000, help="How many stand.")] = 200,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Another seed, another world.")] = 1,
    balance: Annotated[
        str, typer.Option("--balance", metavar="NAME", help="How leaves follow the load: auto, off, or a strategy.")
    ] = "auto",
    memory: Annotated[str, typer.Option("--memory", metavar="2g", help="Of the JVM.")] = "2g",
) -> None:
    """Watch subscriptions match a live stream through Spark, until Ctrl-C.

    [dim]nearcast demo --seconds 60[/dim]
    """
    with loading():
        from nearcast.cli.run_command import check_memory, go
        from nearcast.cli.tables import messages
        from nearcast.engine.settings import Inputs
        from nearcast.engine.settings_check import settings_for
        from nearcast.sources.world_source import world_spec
        from nearcast.storage.directory import StateDirectory

    check_memory(memory)
    root = state.absolute() if state else Path(tempfile.mkdtemp(prefix="nearcast-demo-")) / "state"
    directory = StateDirectory(root)
    settings = settings_for(directory, {"balance": balance})
    world, count = made_world(directory, seed, rate, subscriptions)
    ops = str(root / "demo" / "subscriptions.jsonl")
    inputs = Inputs((world_spec(world),), (ops,), batch_posts=max(20_000, int(4 * world.rate)))
    title = f"nearcast demo · {count:,} subscriptions · {world.rate:,.0f} posts/s · {root}"
    manifest, _ = go(
        directory,
        inputs,
        settings,
        title,
        False,
        memory,
        seconds,
        notice=Notices(world).text,
        place=place_name,
    )
    out = messages()
    out.print(
        f"\nStopped after {manifest.counts.get('posts', 0):,} posts and {manifest.next_seq:,} results. To try next:"
    )
    for line in suggestions(root, manifest, world):
        out.print(f"  {line}", soft_wrap=True, markup=False)


def made_world(directory: "StateDirectory", seed: int, rate: float, count: int) -> "tuple[World, int]":
    """The world of a demo, and its subscriptions in a file. A state that has had a demo goes on with the same one."""
    from nearcast.engine.settings import Settings
    from nearcast.sources.world import World

    settings = Settings()
    card = directory.root / "demo" / "world.json"
    if directory.exists():
        if not card.exists():
            raise BadInput(f"{directory.root} is a state of another kind: give the demo a new directory")
        fields = json.loads(card.read_text(encoding="utf-8"))
        return World(**fields["world"]), int(fields["subscriptions"])
    directory.create({"keep_accents": settings.keep_accents, "index": settings.index, "keep": settings.keep})
    world = World(seed=seed, start=int(time.time()) * 1_000_000, rate=rate)
    card.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"op": "subscribe", "id": name, "sql": sql}) for name, sql in world.subscriptions(count)]
    (card.parent / "subscriptions.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    card.write_text(json.dumps({"world": _fields(world), "subscriptions": count}), encoding="utf-8")
    return world, count


def _fields(world: "World") -> dict[str, Any]:
    return {"seed": world.seed, "start": world.start, "rate": world.rate, "vocabulary": world.vocabulary}


class Notices:
    """What is happening in the world, as the subscriptions see it."""

    def __init__(self, world: "World") -> None:
        self.world = world

    def text(self, manifest: "Manifest", by_query: Counter[str]) -> str | None:
        from nearcast.sources.world.cities import CITIES

        clock = manifest.clock
        if clock is None:
            return None
        current = [b for b in self.world.bursts(clock - SHOWN_FOR, clock + 1) if clock - SHOWN_FOR <= b.begin <= clock]
        if not current:
            return None
        burst = current[-1]
        seen = by_query[f"{burst.kind}-{CITIES[burst.city].tag}"]
        return (
            f"⚡ {burst.kind} in {CITIES[burst.city].name}: began {(clock - burst.begin) / 1e6:.0f} s ago, "
            f"{float(burst.per_minute(_array(clock))[0]):.0f} posts a minute, {seen:,} matches"
        )


def _array(value: int) -> Any:
    import numpy as np

    return np.array([value], np.int64)


def place_name(row: dict[str, Any]) -> str:
    """The nearest large city, or the coordinates where none is near."""
    import numpy as np

    from nearcast.sources.world.cities import CITIES

    lon = np.radians(np.array([city.lon for city in CITIES]) - row["lon"])
    lat = np.radians(np.array([city.lat for city in CITIES]))
    own = np.radians(row["lat"])
    chord = np.sin((lat - own) / 2) ** 2 + np.cos(lat) * np.cos(own) * np.sin(lon / 2) ** 2
    nearest = int(np.argmin(chord))
    distance = 2 * 6371.0088 * float(np.arcsin(np.sqrt(chord[nearest])))
    name = CITIES[nearest].name
    return name if distance < 12 else f"{distance:.0f} km from {name}"


def suggestions(root: Path, manifest: "Manifest", world: "World") -> list[str]:
    from nearcast.sources.world.cities import CITIES

    city = CITIES[world.bursts()[0].city]
    place = f"loc INSIDE CIRCLE({city.lon:.2f}, {city.lat:.2f}, 30 km)"
    return [
        f"nearcast results --state {root}",
        f'nearcast search --state {root} "SELECT * FROM stream WHERE {place} LIMIT 10"',
        f"nearcast subscribe --state {root} --id mine \"SELECT * FROM stream WHERE text OVERLAPS 'coffee espresso'\"",
        f"nearcast demo --state {root}     # goes on where this one stopped",
    ]
