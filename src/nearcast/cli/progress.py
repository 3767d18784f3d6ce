"""What a run has done so far: figures that grow with every committed batch, and what they look like."""

import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nearcast.cli.backlog import backlog
from nearcast.cli.tables import time_text
from nearcast.reader.reader import Reader
from nearcast.reader.results import read_results
from nearcast.reader.row_format import iso
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import Manifest

LATEST = 10
TAIL = 500  # results of a batch that are looked at, at most
SMOOTHING = 8.0  # seconds over which rates are taken
BARS = "▁▂▃▄▅▆▇█"
SPARKS = 40


@dataclass
class Progress:
    """Told of stages and of commits by the thread that runs, drawn by another: fields are replaced, never half changed.

    `due` says how many posts a generator should have made after so many seconds, where there is one.
    """

    state: StateDirectory
    title: str
    due: Callable[[float], float] | None = None
    notice: Callable[[Manifest, Counter[str]], str | None] | None = None
    place: Callable[[dict[str, Any]], str] | None = None
    stage: str = "starting"
    manifest: Manifest | None = None
    began: float = field(default_factory=time.monotonic)
    streaming: float | None = None
    batches: int = 0
    batch_seconds: float = 0.0
    latest: tuple[dict[str, Any], ...] = ()
    by_query: Counter[str] = field(default_factory=Counter)
    moments: deque[tuple[float, int, int]] = field(default_factory=lambda: deque(maxlen=4000))
    at_start: tuple[int, int] = (0, 0)
    left: int | None = None

    def on_stage(self, text: str) -> None:
        self.stage = text

    def begin(self, manifest: Manifest | None) -> None:
        """Totals of the state before the run: the figures shown are of the run."""
        if manifest is not None:
            self.at_start = (manifest.counts.get("posts", 0), manifest.next_seq)

    def on_commit(self, manifest: Manifest, reports: list[Any]) -> None:
        now = time.monotonic()
        seen = self.at_start[1] if self.manifest is None else self.manifest.next_seq
        if self.streaming is None:
            self.streaming = now
        elif self.moments:
            self.batch_seconds = now - self.moments[-1][0]
        self.moments.append((now, self.posts_of(manifest), self.results_of(manifest)))
        if manifest.next_seq > seen:
            fresh = list(read_results(Reader(self.state, manifest), since_seq=max(seen, manifest.next_seq - TAIL)))
            self.by_query.update(str(row["query_id"]) for row in fresh)
            self.latest = (*self.latest, *fresh)[-LATEST:]
        self.batches += 1
        self.left = self._left(manifest, now)
        self.manifest = manifest

    def _left(self, manifest: Manifest, now: float) -> int | None:
        if self.due is not None and self.streaming is not None:
            return max(0, round(self.due(now - self.streaming)) - self.posts_of(manifest))
        found = backlog(self.state, manifest.batch)
        return None if found is None else found.posts + found.ops

    def posts_of(self, manifest: Manifest) -> int:
        return manifest.counts.get("posts", 0) - self.at_start[0]

    def results_of(self, manifest: Manifest) -> int:
        return manifest.next_seq - self.at_start[1]

    @property
    def posts(self) -> int:
        return self.moments[-1][1] if self.moments else 0

    @property
    def results(self) -> int:
        return self.moments[-1][2] if self.moments else 0

    def rates(self) -> tuple[float, float]:
        """(posts, results) a second over the last seconds."""
        moments = list(self.moments)
        if len(moments) < 2:
            return 0.0, 0.0
        last = moments[-1]
        first = next(m for m in moments if last[0] - m[0] <= SMOOTHING or m is last)
        first = moments[-2] if first is last else first
        seconds = max(last[0] - first[0], 1e-6)
        return (last[1] - first[1]) / seconds, (last[2] - first[2]) / seconds

    def batches_told(self) -> str:
        return "1 batch" if self.batches == 1 else f"{self.batches:,} batches"

    def line(self) -> str:
        """The state of things in one line."""
        if self.manifest is None:
            return self.stage
        posts, results = self.rates()
        left = "" if self.left is None else f", backlog {self.left:,}"
        return (
            f"{self.batches_told()}, {self.posts:,} posts ({posts:,.0f}/s), "
            f"{self.results:,} results ({results:,.0f}/s), {self.batch_seconds:.2f} s a batch{left}"
        )

    def __rich__(self) -> RenderableType:
        seconds = time.monotonic() - self.began
        head = Text.assemble((self.title, "bold"), f"  {seconds:.0f} s", ("   Ctrl-C stops", "dim"))
        if self.manifest is None:
            return Group(head, Text(f"  {self.stage} …", style="cyan"))
        posts, results = self.rates()
        grid = Table.grid(padding=(0, 2))
        for justify in ("left", "right", "right", "left"):
            grid.add_column(justify=justify)
        grid.add_row("  posts", f"{self.posts:,}", f"{posts:,.0f}/s", Text(self.sparkline(), style="green"))
        grid.add_row("  matches", f"{self.results:,}", f"{results:,.1f}/s", Text(self.busiest(), style="dim"))
        left = "" if self.left is None else f"backlog {self.left:,}"
        grid.add_row("  batches", f"{self.batches:,}", f"{self.batch_seconds:.2f} s", left)
        clock = Text(f"  stream time {time_text(self.manifest.clock)[:19]}", style="dim")
        parts: list[RenderableType] = [head, grid, clock]
        notice = self.notice(self.manifest, self.by_query) if self.notice else None
        if notice:
            parts.append(Text(f"  {notice}", style="bold yellow"))
        return Group(*parts, Text(""), self.matches()) if self.latest else Group(*parts)

    def matches(self) -> Table:
        """The latest matches, the newest last."""
        table = Table(
            title="latest matches", title_justify="left", title_style="bold", show_edge=False, box=None, expand=True
        )
        table.add_column("time", no_wrap=True, width=8, header_style="dim")
        table.add_column(
            "subscription", no_wrap=True, max_width=24, overflow="ellipsis", style="cyan", header_style="dim"
        )
        table.add_column("where", no_wrap=True, max_width=22, overflow="ellipsis", style="magenta", header_style="dim")
        table.add_column("what", no_wrap=True, overflow="ellipsis", ratio=1, header_style="dim")
        for row in self.latest:
            when = iso(row["ts"])[11:19] if "ts" in row else ""
            what = str(row.get("text") or row.get("rows") or row.get("post_id", "")).replace("\n", " ")
            table.add_row(when, Text(str(row["query_id"])), Text(self.where(row)), Text(what))
        return table

    def where(self, row: dict[str, Any]) -> str:
        if row.get("lon") is None or row.get("lat") is None:
            return ""
        return self.place(row) if self.place else f"{row['lon']:.3f}, {row['lat']:.3f}"

    def busiest(self) -> str:
        return "  ".join(f"{name} {count:,}" for name, count in self.by_query.most_common(2))

    def sparkline(self) -> str:
        """Posts a second, one bar a second."""
        if self.streaming is None or len(self.moments) < 2:
            return ""
        moments = list(self.moments)
        now = int(moments[-1][0])
        bars = []
        for second in range(now - SPARKS, now):
            before = next((m for m in reversed(moments) if m[0] <= second), None)
            after = next((m for m in moments if m[0] >= second + 1), None)
            if before is not None and after is not None:
                bars.append((after[1] - before[1]) / (after[0] - before[0]))
        top = max(bars, default=0.0) or 1.0
        return "".join(BARS[min(len(BARS) - 1, int(bar / top * (len(BARS) - 1) + 0.5))] for bar in bars)
