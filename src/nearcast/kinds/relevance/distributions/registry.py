"""All distributions by the name that `--topk-distribution` takes: building, choosing, storing."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.common.errors import BadInput
from nearcast.kinds.relevance.distributions.by_hash import Hashing
from nearcast.kinds.relevance.distributions.keyword import Keyword
from nearcast.kinds.relevance.distributions.keyword_first import KeywordFirst
from nearcast.kinds.relevance.distributions.location import Location
from nearcast.kinds.relevance.distributions.prefix import Prefix
from nearcast.kinds.relevance.distributions.protocol import Distribution
from nearcast.kinds.relevance.distributions.sample import SubscriberSample
from nearcast.kinds.relevance.distributions.spatial_first import SpatialFirst
from nearcast.kinds.relevance.vectors import Profiles, Vectors
from nearcast.storage.bundle import bundle_table, open_bundle
from nearcast.storage.files import write_table

_KINDS = (Hashing, Location, Keyword, Prefix, SpatialFirst, KeywordFirst)
KINDS: dict[str, Any] = {kind.name: kind for kind in _KINDS}
AUTO = "auto"


def check_distribution(name: str) -> None:
    if name != AUTO and name not in KINDS:
        raise BadInput(f"--topk-distribution {name!r} is unknown: give one of {', '.join((*KINDS, AUTO))}")


def auto(words_a_post: float, workers: int) -> str:
    """Prefix where a post has fewer words than there are workers, so that some need not see it; else location, which
    has no copies (the discussion at the end of Skype §7.3).
    """
    return Prefix.name if words_a_post < workers else Location.name


def build(
    name: str,
    profiles: Profiles,
    theta: np.ndarray,
    posts: Vectors,
    workers: int,
    words_frequency: tuple[np.ndarray, np.ndarray],
    **options: Any,
) -> Distribution:
    """The distribution of that name, learned from a sample; "auto" chooses by the words of the sample's posts.

    `words_frequency` is (sorted terms, how often each is in posts). The hybrids take `parts`, the l1 of l1 x l2.
    """
    check_distribution(name)
    sample = SubscriberSample.of(profiles, theta, posts, words_frequency)
    chosen = auto(sample.words_a_post, workers) if name == AUTO else name
    built: Distribution = KINDS[chosen].build(sample, workers, **options)
    return built


def save(distribution: Distribution, path: Path) -> int:
    """Write it as a bundle; the size of the file."""
    head = {"name": pa.array([distribution.name], pa.string()), "workers": np.array([distribution.workers], np.int64)}
    return write_table(path, bundle_table({**head, **{f"of_{k}": v for k, v in distribution.arrays().items()}}))


def load(path: Path) -> Distribution:
    """What was saved; its arrays are mapped."""
    arrays = open_bundle(path)
    own = {key.removeprefix("of_"): np.asarray(values) for key, values in arrays.items() if key.startswith("of_")}
    loaded: Distribution = KINDS[str(arrays["name"][0])].restored(int(np.asarray(arrays["workers"])[0]), own)
    return loaded
