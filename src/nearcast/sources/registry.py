"""All sources by the scheme of their specs. A new one is a file with a `Source`, and a line here.

A distribution of its own adds sources by an entry point of the group `nearcast.sources`, which names a `Scheme`; so
does the environment variable NEARCAST_SOURCES.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from nearcast.common.errors import BadInput
from nearcast.common.schemes import FILES, Scheme, all_schemes, split_spec
from nearcast.sources.protocol import OPS, POSTS, Source, SourceContext

_OWN = (
    Scheme(FILES, "nearcast.sources.file_source:open_files"),
    Scheme("world", "nearcast.sources.world_source:open_world"),
)
OPTIONS = {POSTS: "--posts", OPS: "--queries"}


@cache
def schemes() -> dict[str, Scheme]:
    return all_schemes(_OWN, "nearcast.sources", "NEARCAST_SOURCES")


def absolute(specs: Sequence[str]) -> tuple[str, ...]:
    """Specs that mean the same in any directory: paths are absolute."""
    split = [(*split_spec(spec, schemes(), "source"), spec) for spec in specs]
    return tuple(str(Path(rest).absolute()) if scheme.name == FILES else spec for scheme, rest, spec in split)


def open_source(spec: str, context: SourceContext) -> Source:
    """The source that a spec names. What is wrong with it is told now."""
    scheme, rest = split_spec(spec, schemes(), "source")
    source: Source = scheme.open(([rest] if rest else []) if scheme.name == FILES else rest, context)
    return source


def open_sources(specs: Sequence[str], context: SourceContext) -> list[Source]:
    """The sources of a role, in the order in which they are read.

    All files and folders are one source; any other stands alone. Ops come from the state's inbox besides, which is a
    folder of files.
    """
    split = {spec: split_spec(spec, schemes(), "source") for spec in specs}
    paths = [rest for scheme, rest in split.values() if scheme.name == FILES]
    others = [spec for spec, (scheme, _) in split.items() if scheme.name != FILES]
    if len(others) > 1 or (others and paths):
        option = OPTIONS[context.role]
        raise BadInput(f"{option} {others[0]} stands alone: a run reads files, or one other source, not both")
    found: list[Source] = [schemes()[FILES].open(paths, context)] if paths or context.role == OPS else []
    return found + [open_source(spec, context) for spec in others]
