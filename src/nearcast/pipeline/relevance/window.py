"""The index of the posts in windows (seed 004 §6), by version of idf, as this process has it: it follows the ledger."""

from dataclasses import dataclass, field

from nearcast.index.idf import IdfSet
from nearcast.index.ledger import Ledger, first_number
from nearcast.index.window_posts import WindowPosts


@dataclass
class Followed:
    names: set[str] = field(default_factory=set)
    posts: WindowPosts = field(default_factory=WindowPosts)


_windows: dict[tuple[str, int], Followed] = {}


def open_window(ledger: Ledger, versions: IdfSet, version: int) -> WindowPosts:
    """All posts of the ledger, weighed by a version."""
    root = str(ledger.state.root)
    for key in [key for key in _windows if key[0] != root or key[1] not in (*versions.versions, version)]:
        del _windows[key]
    known = _windows.setdefault((root, version), Followed())
    fresh = [ref for ref in ledger.refs if ref.name not in known.names]
    if fresh and first_number(fresh[0]) < known.posts.end:
        known = _windows[root, version] = Followed()
        fresh = list(ledger.refs)
    idf = versions.at(version)
    for ref in fresh:
        known.posts.add(ledger.vectors(ref, idf), first_number(ref))
    known.names = {ref.name for ref in ledger.refs}
    known.posts.drop(ledger.base)
    return known.posts
