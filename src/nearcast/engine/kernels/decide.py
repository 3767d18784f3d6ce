"""What each op of a batch does, one id after the other: the rules of subscribing, repeating, replacing and ending."""

from typing import NamedTuple

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.storage.subscriptions.kernels.match import ends_at

UNKNOWN, FRESH, SAME, REPLACES, ENDS = 0, 1, 2, 3, 4


class NewestVersions(NamedTuple):
    """The newest version of each id before the batch."""

    seq: np.ndarray  # -1 where there is none
    digest: np.ndarray
    end: np.ndarray


@kernel
def decide(starts, subscribing, moment, digest, since, until, life, seqs, now, first_post, known):
    """For each op: what it does, when, which version (`seq`) it ends, and whether its id had a version before.

    The ops come id by id, each id's from `starts` on; `known` are the versions before the batch.
    """
    known_seq, known_digest, known_end = known
    n = moment.size
    does, when = np.empty(n, np.uint8), np.empty(n, np.int64)
    ended, before = np.full(n, np.int64(-1), np.int64), np.zeros(n, np.bool_)
    for group in range(starts.size - 1):
        seq, meaning, end = known_seq[group], known_digest[group], known_end[group]
        for op in range(starts[group], starts[group + 1]):
            stands = seq >= 0 and end > now
            when[op] = moment[op]
            if not subscribing[op]:
                does[op] = ENDS if stands else UNKNOWN
            elif not stands:
                does[op] = FRESH
            elif meaning == digest[op]:
                does[op] = SAME
            else:
                does[op] = REPLACES
                when[op] = moment[op] if moment[op] > now else now
            if does[op] == ENDS or does[op] == REPLACES:
                ended[op] = seq
                end = when[op] if when[op] < end else end
            if does[op] == FRESH or does[op] == REPLACES:
                before[op] = seq >= 0
                seq, meaning = seqs[op], digest[op]
                begin = when[op] if when[op] > since[op] else since[op]
                end = ends_at(begin, until[op], life[op], first_post)
    return does, when, ended, before
