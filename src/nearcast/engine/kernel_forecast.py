"""Which kinds of subscriptions, other than to ranges, the first batches of a run will meet: their kernels are compiled
once before, rather than by every worker at the same time.
"""

import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.errors import BadInput
from nearcast.common.kinds import kinds
from nearcast.engine.roles import WarmUp
from nearcast.engine.samples import sampled_ops
from nearcast.engine.settings import Inputs
from nearcast.engine.warmup import is_warm_for, questions
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import SUBSCRIPTIONS


def to_compile(state: StateDirectory, inputs: Inputs) -> list[str]:
    """Of the kinds forecast those that this machine has not compiled; where it has compiled all, no file is read."""
    cold = {kind.name for kind in kinds() if not is_warm_for(kind)}
    return [name for name in forecast(state, inputs) if name in cold] if cold else []


def forecast(state: StateDirectory, inputs: Inputs) -> list[str]:
    """Those that stand, and those at the beginnings of the files of ops and in the inbox, told by how they look: a
    query that is taken for another kind costs time, and nothing else.
    """
    standing = {ref.asks for ref in state.newest().of(SUBSCRIPTIONS)}
    found = {kind.name for kind in kinds() if kind.code in standing and questions(kind).pattern}
    for paths in (inputs.ops, (str(state.inbox),)):
        try:
            ops = sampled_ops(Inputs(ops=paths))
        except BadInput:  # which is told where the file is read
            continue
        if ops is not None:
            found |= asked(ops)
    return sorted(found)


def asked(ops: pa.Table) -> set[str]:
    """The kinds that raw ops seem to ask for."""
    return {kind.name for kind in kinds() if _seems_asked(questions(kind), ops)}


def _seems_asked(how: WarmUp, ops: pa.Table) -> bool:
    if how.column in ops.column_names and ops[how.column].null_count < len(ops):
        return True
    return bool(how.pattern) and bool(pc.any(pc.match_substring_regex(ops["sql"], how.pattern)).as_py())
