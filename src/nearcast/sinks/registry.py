"""All sinks by the scheme of their specs. A new one is a file with a `Sink`, and a line here.

A distribution of its own adds sinks by an entry point of the group `nearcast.sinks`, which names a `Scheme`; so does
the environment variable NEARCAST_SINKS.
"""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TypeAlias, cast

from nearcast.common.errors import BadInput
from nearcast.common.schemes import FILES, Scheme, all_schemes, split_spec
from nearcast.sinks.protocol import Sink, SinkContext

GivenSink: TypeAlias = str | Path | Sink  # a spec, or the sink itself

_OWN = (Scheme(FILES, "nearcast.sinks.folder:open_folder"),)


@cache
def schemes() -> dict[str, Scheme]:
    return all_schemes(_OWN, "nearcast.sinks", "NEARCAST_SINKS")


def open_sink(spec: str, context: SinkContext) -> Sink:
    """The sink that a spec names. What is wrong with it is told now."""
    scheme, rest = split_spec(spec, schemes(), "sink")
    sink: Sink = scheme.open(rest, context)
    return sink


def open_sinks(given: GivenSink | Iterable[GivenSink] | None, context: SinkContext) -> list[Sink]:
    """The sinks of a run: specs, or sinks that are open already; each once."""
    several: list[GivenSink] = []
    if given is not None:
        several = list(given) if isinstance(given, list | tuple) else [cast(GivenSink, given)]
    sinks = [open_sink(str(one), context) if isinstance(one, str | Path) else one for one in several]
    for number, sink in enumerate(sinks):
        if sink.name in [other.name for other in sinks[:number]]:
            raise BadInput(f"--deliver {sink.name} is given twice")
    return sinks
