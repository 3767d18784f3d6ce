"""Predicates on attributes, for the pairs that an index has found."""

import numpy as np
import pyarrow as pa

from nearcast.storage.posts.attributes import names_in, satisfied
from nearcast.storage.posts.derived import with_derived
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Matches


def predicates_hold(rows: Rows, matches: Matches, posts: pa.Table) -> np.ndarray:
    """Which pairs satisfy the predicates on attributes of their subscription."""
    keep = np.ones(len(matches.rows), np.bool_)
    if not len(rows.predicates) or not len(matches.rows):
        return keep
    texts = rows.predicates.take(pa.array(matches.rows)).dictionary_encode()
    codes = texts.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    for code, predicates in enumerate(texts.dictionary.to_pylist()):
        pairs = np.flatnonzero(codes == code)
        paired = posts.take(pa.array(matches.posts[pairs]))
        keep[pairs] = satisfied(predicates, with_derived(paired, names_in(predicates)))
    return keep
