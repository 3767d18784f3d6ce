"""Which kinds of subscriptions, other than to ranges, the first batches of a run will meet: their kernels are compiled
once before, rather than by every worker at the same time.
"""

import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.errors import BadInput
from nearcast.common.op_schema import AGGREGATES, NEAREST, RELEVANT, TERMS
from nearcast.engine.samples import sampled_ops
from nearcast.engine.settings import Inputs
from nearcast.engine.warmup import is_warm_for
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import SUBSCRIPTIONS

STANDING = {NEAREST: "nearest", TERMS: "reports", AGGREGATES: "reports", RELEVANT: "relevance"}
WRITTEN = {"nearest": r"(?i)\bDISTANCE\s*\(", "reports": r"(?i)\bSYNC\s+['\"]?\d", "relevance": r"(?i)\bRELEVANCE\s*\("}
COLUMN = {"nearest": "k", "reports": "sync_seconds", "relevance": "alpha"}  # of subscriptions in bulk


def to_compile(state: StateDirectory, inputs: Inputs) -> list[str]:
    """Of the kinds foreseen those that this machine has not compiled; where it has compiled all, no file is read."""
    cold = [kind for kind in WRITTEN if not is_warm_for(kind)]
    return [kind for kind in foreseen(state, inputs) if kind in cold] if cold else []


def foreseen(state: StateDirectory, inputs: Inputs) -> list[str]:
    """Those that stand, and those at the beginnings of the files of ops and in the inbox, told by how they look: a
    query that is taken for another kind costs time, and nothing else.
    """
    kinds = {STANDING[ref.asks] for ref in state.newest().of(SUBSCRIPTIONS) if ref.asks in STANDING}
    for paths in (inputs.ops, (str(state.inbox),)):
        try:
            ops = sampled_ops(Inputs(ops=paths))
        except BadInput:  # which is told where the file is read
            continue
        if ops is not None:
            kinds |= asked(ops)
    return sorted(kinds)


def asked(ops: pa.Table) -> set[str]:
    """The kinds that raw ops seem to ask for."""
    found = {kind for kind, how in WRITTEN.items() if pc.any(pc.match_substring_regex(ops["sql"], how)).as_py()}
    names = set(ops.column_names)
    return found | {kind for kind, name in COLUMN.items() if name in names and ops[name].null_count < len(ops)}
