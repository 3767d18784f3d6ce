"""Sweeping: files that no manifest names leave the disk, some minutes after they left the last one.

Orphans are what a crashed batch wrote and never committed, and what merging has replaced. A superseded manifest is
kept for GRACE seconds, so a reader that opened it finds all its files. Only the writer sweeps, between batches.
"""

import time
from pathlib import Path

from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import Manifest, path_of, versions

GRACE = 300.0
FOLDERS = ("segments", "rejects", "archive", "router", "models")


def sweep(state: StateDirectory, grace: float = GRACE, now: float | None = None) -> int:
    """Remove what is no longer needed; returns the number of files removed."""
    now = time.time() if now is None else now
    known = versions(state.manifests)
    kept = set()
    removed = 0
    for version, following in zip(known, [*known[1:], None], strict=True):
        path = path_of(state.manifests, version)
        if following is not None and now - path_of(state.manifests, following).stat().st_mtime > grace:
            path.unlink()
            removed += 1
            continue
        manifest = Manifest.from_json(path.read_text(encoding="utf-8"))
        kept |= {ref.name for ref in manifest.segments} | {manifest.router, (manifest.previous or {}).get("router")}
        kept |= {spec.partition("=")[2] for spec in manifest.settings.get("derive") or ()}
    for folder in FOLDERS:
        for path in (state.root / folder).rglob("*"):
            if path.is_file() and _name(state.root, path) not in kept:
                path.unlink()
                removed += 1
    for path in state.manifests.glob(".*"):  # manifests written aside and never linked
        path.unlink()
    return removed


def empty_spool(state: StateDirectory) -> None:
    """Remove the packets of a batch that is done; between batches none is needed."""
    for path in state.spool.glob("*"):
        path.unlink(missing_ok=True)


def _name(root: Path, path: Path) -> str:
    """The name by which a manifest knows a file: its path without the endings of a segment."""
    name = path.relative_to(root).as_posix()
    if name.startswith(("router/", "models/")):
        return name
    folder, _, file = name.rpartition("/")
    return f"{folder}/{file.partition('.')[0]}"
