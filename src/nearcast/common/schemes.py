"""Specs: how sources and sinks are named on the command line and in Python, `world:seed=7` or `kafka://host/topic`.

A spec is a scheme, a colon and what the scheme makes of the rest. A spec without a known scheme is a path, which the
scheme `files` takes.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from nearcast.common.errors import BadInput

FILES = "files"


@dataclass(frozen=True)
class Scheme:
    """What a spec begins with, and the function that opens such a spec.

    `opener` is the function, or `module:function`, imported when the scheme is first used.
    """

    name: str
    opener: str | Callable[..., Any]

    def open(self, *arguments: Any) -> Any:
        opener = self.opener
        return (_named(opener) if isinstance(opener, str) else opener)(*arguments)


def all_schemes(own: Sequence[Scheme], group: str, environment: str) -> dict[str, Scheme]:
    """Our own, and those that others add: by an entry point of a group, or by an environment variable.

    Both name objects, `package.module:SCHEME`; several in the variable have commas between them.
    """
    found = {scheme.name: scheme for scheme in own}
    more = [point.value for point in entry_points(group=group)]
    more += [name for name in os.environ.get(environment, "").split(",") if name]
    for path in more:
        scheme: Scheme = _named(path)
        found.setdefault(scheme.name, scheme)
    return found


def split_spec(spec: str, schemes: dict[str, Scheme], what: str) -> tuple[Scheme, str]:
    """The scheme of a spec, and the rest of it: `what` says what is to be opened, a source or a sink."""
    head, colon, rest = spec.partition(":")
    if head in schemes and (colon or head != FILES):
        return schemes[head], rest
    if re.match(r"[A-Za-z][\w+.-]*://", spec):
        raise BadInput(f"{spec}: there is no {what} {head}: known are {', '.join(schemes)}, and paths")
    return schemes[FILES], spec


def _named(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
