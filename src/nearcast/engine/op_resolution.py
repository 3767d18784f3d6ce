"""What ops mean, given the state: DESIGN's *Meaning* of subscribing, repeating, replacing and ending.

A pure function of the state before the batch and of the ops in their order, so every worker works it out alike.
"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import frozen
from nearcast.common.kernels.lookup import sorted_members
from nearcast.common.kernels.mix import id_keys
from nearcast.common.op_schema import (
    AGGREGATES,
    BEGINNING,
    DELETE,
    NEAREST,
    NEVER,
    RELEVANT,
    SEARCH,
    SUBSCRIBE,
    TERMS,
    UNSUBSCRIBE,
)
from nearcast.common.post_schema import REJECTS
from nearcast.engine.kernels.decide import ENDS, FRESH, REPLACES, SAME, UNKNOWN, decide
from nearcast.engine.op_encoding import reject_rows
from nearcast.engine.op_packets import Share
from nearcast.storage.subscriptions.rows import SPECIAL, Rows, flat_lists, is_first, is_text, optional_strings
from nearcast.storage.subscriptions.subscription_set import EndLog, SubscriptionSet, Versions


@dataclass(frozen=True)
class Resolved:
    rows: Rows
    ends: EndLog
    deletes: pa.Table
    searches: pa.Table
    rejects: pa.Table
    again: np.ndarray  # keys of the ids that had a subscription before the new one
    replaced: np.ndarray  # those of the batch (seq) whose ids a later op of it has subscribed again
    roles: np.ndarray  # what a worker has to do with each row (`engine.op_packets`)
    counts: dict[str, int] = field(default_factory=dict)


def resolve(
    ops: pa.Table, standing: SubscriptionSet, clock: int | None, next_op: int, share: Share | None = None
) -> Resolved:
    """New subscriptions, ends, deletions and searches. Op number i of the batch has seq next_op + i.

    Of `ops` only the heads are looked at where the whole queries are given apart, as a worker's share of them: then
    `rows` and `searches` are those of the share, and all else is about the whole batch.
    """
    share = Share.all_of(ops) if share is None else share
    kinds = ops["op"].to_numpy()
    about = np.flatnonzero(kinds <= UNSUBSCRIBE)
    now = BEGINNING if clock is None else clock
    keys = frozen(id_keys(ops["id"].to_numpy(), is_text(optional_strings(ops["id_text"]), len(ops))))
    when = np.full(len(ops), now)
    if ops["ts"].null_count < len(ops):
        when = ops["ts"].fill_null(now).to_numpy().copy()

    order, starts, known = by_id(keys if len(about) == len(ops) else frozen(keys[about]), standing)
    order = about[order]
    does = np.where(kinds == SUBSCRIBE, np.uint8(FRESH), np.uint8(UNKNOWN))  # as if every id were new and came once
    ended = before = np.zeros(0, np.int64)
    if len(order):
        digest, since, until, life = (ops[name].to_numpy()[order] for name in ("digest", "since", "until", "life"))
        does[order], when[order], ended, before = decide(
            starts, kinds[order] == SUBSCRIBE, when[order], digest, since, until, life, next_op + order,
            np.int64(now), np.int64(standing.first_post), known.seq, known.digest, known.end,
        )  # fmt: skip
    new, again = (does == FRESH) | (does == REPLACES), order[before > 0]
    stops = np.flatnonzero(ended >= 0)
    stops = stops[np.argsort(order[stops])]
    end = order[stops]
    made = order[new[order]]

    picked = np.flatnonzero(new[share.places])
    at = share.places[picked]
    strangers = np.flatnonzero((does == UNKNOWN) & (kinds == UNSUBSCRIBE))
    rejects = REJECTS.empty_table()
    if len(strangers):
        shown = ops.select(["id", "id_text", "ts"])
        rejects = reject_rows(shown, strangers, ["unsubscribe: no such subscription stands"] * len(strangers))
    return Resolved(
        rows=_rows(share.ops, picked, next_op + at, when[at]),
        ends=EndLog(keys[end], ended[stops], when[end]),
        deletes=ops.select(["id", "id_text"]).filter(pa.array(kinds == DELETE)),
        searches=_searches(share.ops),
        rejects=rejects,
        again=keys[again],
        replaced=next_op + made[:-1][keys[made[1:]] == keys[made[:-1]]],
        roles=share.roles[picked],
        counts={
            "subscribed": int((does == FRESH).sum()),
            "repeated": int((does == SAME).sum()),
            "replaced": int((does == REPLACES).sum()),
            "unsubscribed": int((does == ENDS).sum()),
            "again": len(again),
            "deleted": int((kinds == DELETE).sum()),
            "searched": int((kinds == SEARCH).sum()),
        },
    )


def _searches(ops: pa.Table) -> pa.Table:
    return ops.select(["id", "id_text", "sql"]).filter(pa.array(ops["op"].to_numpy() == SEARCH))


def by_id(keys: np.ndarray, standing: SubscriptionSet) -> tuple[np.ndarray, np.ndarray, Versions]:
    """(ops, where each id begins among them, its newest version): of those ids that come twice or have come before.

    In bulk these are few, and sorting keys takes a fraction of what sorting ops by their keys does.
    """
    ordered = np.sort(keys)
    first = is_first(ordered)
    ids = ordered if first.all() else ordered[first]
    known = standing.newest(ids)
    met = known.seq >= 0
    if len(ids) < len(keys):
        met |= np.diff(np.append(np.flatnonzero(first), len(keys))) > 1
    ops = np.flatnonzero(sorted_members(ids[met], keys)) if met.any() else np.empty(0, np.int64)
    order = ops[np.argsort(keys[ops], kind="stable")]
    starts = np.append(np.flatnonzero(is_first(keys[order])), len(order))
    return order, starts, Versions(known.seq[met], known.digest[met], known.end[met])


def _rows(ops: pa.Table, picked: np.ndarray, seq: np.ndarray, start: np.ndarray) -> Rows:
    """Subscriptions that begin at `start`, from the encoded queries of some ops."""
    if len(picked) < len(ops):
        ops = ops.take(pa.array(picked))
    shape, shape_offsets = flat_lists(ops["shape"])
    code, code_offsets = flat_lists(ops["code"])
    start = np.maximum(start, ops["since"].to_numpy())
    life = ops["life"].to_numpy().copy()
    end = ops["until"].to_numpy().copy()
    counted = (life != NEVER) & (start != BEGINNING)  # FOR counts from the recorded start
    end[counted] = np.minimum(
        end[counted], start[counted] + np.minimum(life[counted], NEVER - np.maximum(start[counted], 0))
    )
    life[counted] = NEVER
    asks, special = ops["asks"].to_numpy(), {}
    if (asks == NEAREST).any():
        k = np.where(asks == NEAREST, ops["k"].to_numpy(), 0)
        special["points"] = np.stack([ops["at_lon"].to_numpy(), ops["at_lat"].to_numpy(), k.astype(np.float64)], axis=1)
    reporting = (asks == TERMS) | (asks == AGGREGATES)
    if reporting.any():
        k = np.where(asks == TERMS, ops["k"].to_numpy(), 0)
        beats = np.stack([ops["window"].to_numpy(), ops["sync"].to_numpy(), k, np.zeros_like(k)], axis=1)
        special["beats"] = np.where(reporting[:, None], beats, 0)
    if (asks == RELEVANT).any():
        special["words"], special["words_offsets"] = flat_lists(ops["words"])
        special["tastes"] = _tastes(ops, asks == RELEVANT)
    boxes = np.stack([ops[name].to_numpy() for name in ("min_lon", "min_lat", "max_lon", "max_lat")], axis=1)
    return Rows(
        seq=seq, id=ops["id"].to_numpy(), id_text=optional_strings(ops["id_text"]), start=start, end=end, life=life,
        digest=ops["digest"].to_numpy(), home=np.ones(len(ops), np.uint8), kinds=ops["region_kind"].to_numpy(),
        boxes=boxes, shape=shape, shape_offsets=shape_offsets, code=code, code_offsets=code_offsets,
        predicates=optional_strings(ops["predicates"]), columns=optional_strings(ops["columns"]),
        sql=optional_strings(ops["sql"]), **special,
    )  # fmt: skip


def _tastes(ops: pa.Table, relevant: np.ndarray) -> np.ndarray:
    """The `tastes` of Rows; 0 of all that do not ask for the most relevant."""
    tastes = np.zeros((len(ops), SPECIAL["tastes"]))
    for at, name in enumerate(("at_lon", "at_lat", "k")):
        tastes[relevant, at] = ops[name].to_numpy()[relevant]
    tastes[relevant, 3:] = flat_lists(ops["scoring"])[0].reshape(-1, 4)
    return tastes
