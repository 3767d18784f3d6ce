"""An attribute from a function of the user's own, over Arrow columns."""

import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.errors import BadInput
from nearcast.common.post_schema import attribute_of
from nearcast.sources.derive.protocol import Given


@dataclass(frozen=True)
class Own:
    """`where` is package.module:function. It is called with a table of some posts (at least one) and gives an array of
    as many values.

    The table has the columns id, ts, lon, lat, text, and the attributes that some of these posts have, under their
    names. A function that fails stops the run with one line that names it, before anything of that batch is committed:
    nothing is lost, and the next run goes on from there with the function mended, or left out.
    """

    name: str
    where: str

    @cached_property
    def function(self) -> Callable[[pa.Table], Any]:
        module, _, path = self.where.partition(":")
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())  # as python itself would look there, which a command does not
        try:
            found: Any = importlib.import_module(module)
        except Exception as error:
            raise self.wrong(f"cannot import {module}: {_line(error)}") from None
        for part in path.split("."):
            if not hasattr(found, part):
                raise self.wrong(f"{module} has no {path}")
            found = getattr(found, part)
        if not callable(found):
            raise self.wrong(f"{path} is not a function")
        return found

    def values(self, given: Given) -> pa.Array:
        try:
            made = self.function(readable(given.posts))
        except BadInput:
            raise
        except Exception as error:
            hint = ""
            if isinstance(error, KeyError):
                hint = "; an attribute's column is there only where some post has it"
            elif isinstance(error, AttributeError | TypeError):
                hint = "; it is called with one table of posts (id, ts, lon, lat, text and their attributes)"
            raise self.wrong(f"it failed: {_line(error)}{hint}") from None
        if isinstance(made, pa.ChunkedArray):
            made = made.combine_chunks()
        if not isinstance(made, pa.Array):
            raise self.wrong(f"it must give an Arrow array, not {type(made).__name__}")
        if len(made) != len(given.posts):
            raise self.wrong(f"it gave {len(made):,} values for {len(given.posts):,} posts")
        return made

    def wrong(self, what: str) -> BadInput:
        return BadInput(f"--derive {self.name}={self.where}: {what}")


def readable(posts: pa.Table) -> pa.Table:
    """Posts as a person would write them: `id` a number where all ids are, `ts` a time, attributes under their names
    (as text, where they have values of several kinds).
    """
    texts = posts["id_text"]
    ids = posts["id"] if texts.null_count == len(posts) else pc.coalesce(texts, posts["id"].cast(pa.string()))
    columns = {"id": ids, "ts": posts["ts"].cast(pa.timestamp("us", tz="UTC"))}
    columns |= {name: posts[name] for name in ("lon", "lat", "text")}
    kinds: dict[str, list[pa.ChunkedArray]] = {}
    for column in posts.column_names:
        attribute = attribute_of(column)
        if attribute is not None:
            kinds.setdefault(attribute[0], []).append(posts[column])
    for name, several in kinds.items():
        columns[name] = several[0] if len(several) == 1 else pc.coalesce(*(each.cast(pa.string()) for each in several))
    return pa.table(columns)


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
