"""What ops mean, given the state: subscribing, repeating, replacing and ending (docs/language, *Subscriptions*).

A pure function of the state before the batch and of the ops in their order, so every worker works it out alike.
"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import frozen
from nearcast.common.kernels.lookup import sorted_members
from nearcast.common.kernels.mix import id_keys
from nearcast.common.kinds import Kind, kind_coded
from nearcast.common.op_schema import BEGINNING, DELETE, NEVER, SEARCH, SUBSCRIBE, UNSUBSCRIBE
from nearcast.common.post_schema import REJECTS
from nearcast.engine.kernels.decide import ENDS, FRESH, REPLACES, SAME, UNKNOWN, NewestVersions, decide
from nearcast.engine.op_encoding import reject_rows
from nearcast.engine.op_packets import OpShare
from nearcast.storage.subscriptions.rows import SPECIAL, Rows, flat_lists, is_first, is_text, optional_strings
from nearcast.storage.subscriptions.subscription_set import EndLog, SubscriptionSet, Versions


@dataclass(frozen=True)
class Resolved:
    """What the ops of a batch come to; `rows` and `queries` are a worker's share of it."""

    rows: Rows  # new subscriptions
    asks: np.ndarray  # the code of the kind of each
    queries: pa.Table  # the encoded queries of its ops
    ends: EndLog
    deletes: pa.Table
    searches: pa.Table
    rejects: pa.Table
    again: np.ndarray  # keys of the ids that had a subscription before the new one
    replaced: np.ndarray  # those of the batch (seq) whose ids a later op of it has subscribed again
    roles: np.ndarray  # what a worker has to do with each row (`engine.op_packets`)
    counts: dict[str, int] = field(default_factory=dict)

    def places(self, kind: Kind) -> np.ndarray:
        """Where the new subscriptions of a kind are among `rows`."""
        return np.flatnonzero(self.asks == kind.code)

    def of(self, kind: Kind) -> Rows:
        """The new subscriptions of a kind."""
        places = self.places(kind)
        return self.rows if len(places) == len(self.rows) else self.rows.take(places)


def resolve(
    ops: pa.Table, standing: SubscriptionSet, clock: int | None, next_op: int, share: OpShare | None = None
) -> Resolved:
    """New subscriptions, ends, deletions and searches. Op number i of the batch has seq next_op + i.

    Of `ops` only the heads are looked at where the whole queries are given apart, as a worker's share of them: then
    `rows` and `searches` are those of the share, and all else is about the whole batch.
    """
    share = OpShare.all_of(ops) if share is None else share
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
            np.int64(now), np.int64(standing.first_post), NewestVersions(known.seq, known.digest, known.end),
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
        asks=share.ops["asks"].to_numpy()[picked],
        queries=share.ops,
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
    special = special_columns(ops)
    boxes = np.stack([ops[name].to_numpy() for name in ("min_lon", "min_lat", "max_lon", "max_lat")], axis=1)
    return Rows(
        seq=seq, id=ops["id"].to_numpy(), id_text=optional_strings(ops["id_text"]), start=start, end=end, life=life,
        digest=ops["digest"].to_numpy(), home=np.ones(len(ops), np.uint8), kinds=ops["region_kind"].to_numpy(),
        boxes=boxes, shape=shape, shape_offsets=shape_offsets, code=code, code_offsets=code_offsets,
        predicates=optional_strings(ops["predicates"]), columns=optional_strings(ops["columns"]),
        sql=optional_strings(ops["sql"]), **special,
    )  # fmt: skip


def special_columns(ops: pa.Table) -> dict[str, np.ndarray]:
    """The optional columns of Rows, of the kinds that have them (`Kind.columns`); 0 for rows of other kinds."""
    asks, found = ops["asks"].to_numpy(), {}
    having: dict[str, np.ndarray] = {}
    for code in np.unique(asks).tolist():
        for name in kind_coded(code).columns:
            having[name] = having.get(name, np.zeros(len(ops), np.bool_)) | (asks == code)
    place = [ops[name].to_numpy() for name in ("at_lon", "at_lat", "k")]
    for name, mask in having.items():
        if name == "scoring":
            found["words"], found["words_offsets"] = flat_lists(ops["words"])
            numbers = np.zeros((len(ops), SPECIAL[name]))
            numbers[mask, :3] = np.stack(place, axis=1)[mask]
            numbers[mask, 3:] = flat_lists(ops["scoring"])[0].reshape(-1, 4)
        elif name == "points":
            numbers = np.where(mask[:, None], np.stack(place, axis=1).astype(np.float64), 0.0)
        else:
            ticks = [ops["window"].to_numpy(), ops["sync"].to_numpy(), place[2], np.zeros(len(ops), np.int64)]
            numbers = np.where(mask[:, None], np.stack(ticks, axis=1), 0)
        found[name] = numbers
    return found
