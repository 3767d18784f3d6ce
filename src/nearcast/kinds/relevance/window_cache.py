"""The index of the posts in windows (Skype §6), by version of idf, as this process has it: it follows the ledger."""

from dataclasses import dataclass, field

from nearcast.kinds.relevance.idf import IdfSet
from nearcast.kinds.relevance.ledger import Ledger
from nearcast.kinds.relevance.window_index import WindowPosts


@dataclass
class Followed:
    """Posts of the ledger, with the origins that they had when they were added."""

    origins: dict[int, int] = field(default_factory=dict)
    posts: WindowPosts = field(default_factory=WindowPosts)

    def fits(self, ledger: Ledger) -> bool:
        """Whether all that it has is in the ledger, or was: a batch may have been tried and not committed."""
        there = ledger.origins()
        end = ledger.base + len(ledger.order)
        known = all(there.get(first, origin) == origin for first, origin in self.origins.items())
        return known and self.posts.end <= end and all(f in self.origins for f in there if f < self.posts.end)


_windows: dict[tuple[str, int], Followed] = {}


def open_window(ledger: Ledger, versions: IdfSet, version: int) -> WindowPosts:
    """All posts of the ledger, weighed by a version."""
    root = str(ledger.state.root)
    for key in [key for key in _windows if key[0] != root or key[1] not in (*versions.versions, version)]:
        del _windows[key]
    known = _windows.get((root, version))
    if known is None or not known.fits(ledger):
        known = _windows[root, version] = Followed()
    idf = versions.at(version)
    for ref, first in ledger.firsts():
        since = max(0, known.posts.end - first)
        if since < ref.rows:
            known.posts.add(ledger.vectors(ref, idf, since), first + since)
    known.origins = ledger.origins()
    known.posts.drop(ledger.base)
    return known.posts
