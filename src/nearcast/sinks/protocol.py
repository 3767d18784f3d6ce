"""What a sink promises: it takes results in the order of the outbox, and knows how far it has got.

- Results have numbers, `seq`, from 0 on. A sink's *cursor* is the number of the first result that it has not got.
- The cursor outlives the process. It is asked for at every start and after every fault, and delivery goes on from it.
- A sink that stores cursor and results in one step (one file, one transaction) has each result exactly once, whatever
  crashes. One that cannot (a web hook) writes first and moves its cursor then: each result at least once.

Who drives it, `sinks.delivery`, never passes over a result, nor gives one again that the cursor says is there.
`tests/sinks/conformance.py` holds every sink to it.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True)
class ResultBatch:
    """The results with the numbers [first, stop), in order: rows as `nearcast results --format json` prints them."""

    first: int
    stop: int
    rows: list[dict[str, Any]]

    def json_lines(self) -> str:
        """The rows as JSON, one a line."""
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows)


@dataclass(frozen=True)
class SinkContext:
    """What a sink may want to know of the run that opens it: the state's directory."""

    state: Path


class Sink(Protocol):
    """Somewhere that results go. `name` is what messages call it."""

    name: str

    def cursor(self) -> int:
        """The number of the first result that it has not got; 0 for a new one."""

    def write(self, batch: ResultBatch) -> None:
        """Take a batch, which begins at the cursor, and move the cursor behind it. All of it, or raise an error."""

    def close(self) -> None:
        """The run has ended."""
        return None
