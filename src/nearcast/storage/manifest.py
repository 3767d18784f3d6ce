"""The manifest: what the state is after a batch.

A manifest is a value; committing the next one is creating a file under the next number, which either happens or does
not. For the same streaming query it accepts the batch after the last, recognises the last one replayed, and refuses
anything else.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from nearcast.common.errors import BadInput, NearcastError
from nearcast.storage.files import create_exclusively

FORMAT = 8

POSTS, SUBSCRIPTIONS, ENDS, DELETES, TERMS, RESULTS, REJECTS, ARCHIVE, NEAREST, TICKS, WINDOW, STATISTICS, PARTIALS = (
    "posts", "subscriptions", "ends", "deletes", "terms", "results", "rejects", "archive", "nearest", "ticks", "window",
    "statistics", "partials",
)  # fmt: skip
COARSE = "coarse"  # slots of posts that are no longer kept
KEYWORDS, SEARCHES = "keywords", "searches"  # that leaves have learned; that came with the stream
LEDGER, BUFFERS = "ledger", "buffers"  # posts in the windows of subscriptions by relevance, and their k-skybands
DISTRIBUTION = "distribution"  # of such subscriptions over workers
IDF = "idf"  # term statistics of one version (`kinds.relevance.idf_versions`)


@dataclass(frozen=True)
class SegmentRef:
    """One segment: `name` is its file's path in the state, without ending. `batch` is the batch that wrote it."""

    kind: str
    name: str
    rows: int
    size: int
    batch: int
    owner: int = 0
    min_ts: int = 0
    max_ts: int = 0
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def asks(self) -> int:
        """What the subscriptions of a segment ask for (`common.op_schema`)."""
        return int(self.facts.get("asks", 0))


@dataclass(frozen=True)
class Manifest:
    """`clock` is the highest event time committed and `first_post` the time of the first post, None before any post.

    `query_id` and `batch` name the streaming batch it came from; `next_seq` numbers results, `next_op` ops. `router` is
    the routing table's name, and `aligned` the layout (`BatchPlan.layout`) for which each worker's own segments have
    every subscription that it keeps. `previous`, if there is one, is the table that subscriptions from before op
    `before` still follow (`engine.previous_table`), since batch `batch`. `settings` are what the state was created
    with. `counts` are totals since then. `adjustments` are the last changes of the routing table for the sake of
    balance, the newest last.
    """

    version: int = 0
    query_id: str = ""
    batch: int = -1
    clock: int | None = None
    first_post: int | None = None
    next_seq: int = 0
    next_op: int = 0
    router: str | None = None
    aligned: str | None = None
    previous: dict[str, Any] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    load: list[dict[str, Any]] = field(default_factory=list)
    adjustments: list[dict[str, Any]] = field(default_factory=list)
    segments: tuple[SegmentRef, ...] = ()
    format: int = FORMAT

    def of(self, kind: str) -> list[SegmentRef]:
        return [segment for segment in self.segments if segment.kind == kind]

    @property
    def kept_since(self) -> int | None:
        """The time from which on posts are kept; None if none has left but for retention, which archives them."""
        return max((ref.max_ts + 1 for ref in self.of(COARSE)), default=None)

    def replacing(self, gone: Iterable[str], new: Iterable[SegmentRef]) -> tuple[SegmentRef, ...]:
        names = set(gone)
        return (*(s for s in self.segments if s.name not in names), *new)

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "Manifest":
        data = json.loads(text)
        data["segments"] = tuple(SegmentRef(**segment) for segment in data["segments"])
        return cls(**data)


def path_of(folder: Path, version: int) -> Path:
    return folder / f"{version:012d}.json"


def versions(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in folder.glob("[0-9]*.json"))


def newest(folder: Path) -> Manifest:
    """The newest manifest of a state directory."""
    for _ in range(10):  # a reader may be overtaken by the sweeping of old manifests
        known = versions(folder)
        if not known:
            raise BadInput(f"{folder.parent} is not a Nearcast state directory (it has no manifest)")
        try:
            text = path_of(folder, known[-1]).read_text(encoding="utf-8")
        except FileNotFoundError:
            continue
        try:
            found = json.loads(text).get("format")
        except (ValueError, AttributeError):
            raise NearcastError(
                f"{path_of(folder, known[-1])} is damaged: restore it from a copy, or start a new state directory"
            ) from None
        if found != FORMAT:
            raise BadInput(
                f"{folder.parent} was written by another version of Nearcast (format {found}, not {FORMAT}): "
                "use that version, or start a new state directory"
            )
        return Manifest.from_json(text)
    raise NearcastError(f"{folder}: manifests vanish faster than they can be read")


def is_replay(current: Manifest, query_id: str, batch: int) -> bool:
    """True for the last batch come again, False for the next one; anything else is refused."""
    if current.query_id and current.query_id != query_id:
        raise BadInput("the checkpoint belongs to another streaming query than the one this state was written by")
    if batch == current.batch + 1:
        return False
    if batch == current.batch:
        return True
    raise BadInput(f"batch {batch} does not follow batch {current.batch}: state and checkpoint are not of one run")


def commit(folder: Path, current: Manifest, following: Manifest) -> Manifest:
    """Make `following` the state after `current`. All its files are on disk before this is called."""
    following = replace(following, version=current.version + 1)
    if not create_exclusively(path_of(folder, following.version), following.to_json()):
        raise NearcastError(f"{folder.parent}: another writer has committed version {following.version}")
    return following
