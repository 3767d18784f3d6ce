"""Results into a folder, exactly once: one JSON Lines file for each range of results, named by it.

A file is there whole or not at all, and the names are the cursor: after a crash delivery goes on behind the last one.
"""

from pathlib import Path

from nearcast.common.errors import BadInput
from nearcast.sinks.protocol import ResultBatch, Sink, SinkContext
from nearcast.storage.files import write_text


class FolderSink(Sink):
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = str(folder)

    def cursor(self) -> int:
        return max((int(path.stem.split("-")[1]) for path in self.folder.glob("[0-9]*-[0-9]*.jsonl")), default=0)

    def write(self, batch: ResultBatch) -> None:
        write_text(self.folder / f"{batch.first:015d}-{batch.stop:015d}.jsonl", batch.json_lines())


def open_folder(path: str, context: SinkContext) -> FolderSink:
    folder = Path(path).absolute()
    if not path or (folder.exists() and not folder.is_dir()):
        raise BadInput(f"--deliver {path!r} is no folder")
    return FolderSink(folder)
