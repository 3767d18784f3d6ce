"""What ops mean, given the state: DESIGN's *Meaning* of subscribing, repeating, replacing and ending.

A pure function of the state before the batch and of the ops in their order, so every worker works it out alike.
"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from nearcast.index.posts import chunk
from nearcast.index.rows import Rows, is_text, optional_strings
from nearcast.index.subscriptions import EndLog, SubscriptionSet
from nearcast.kernels.hashing import hash_strings
from nearcast.kernels.lookup import digests
from nearcast.kernels.match import row_ends
from nearcast.kernels.mix import id_keys
from nearcast.kernels.register import file_codes
from nearcast.model.ops import BEGINNING, DELETE, NEVER, SEARCH, SUBSCRIBE, UNSUBSCRIBE
from nearcast.model.posts import REJECTS
from nearcast.pipeline.encode_ops import reject_rows


@dataclass(frozen=True)
class Resolved:
    rows: Rows
    ends: EndLog
    deletes: pa.Table
    searches: pa.Table
    rejects: pa.Table
    again: np.ndarray  # keys of the ids that had a subscription before the new one
    counts: dict[str, int] = field(default_factory=dict)


def resolve(
    ops: pa.Table,
    standing: SubscriptionSet,
    clock: int | None,
    next_op: int,
    frequencies: tuple[np.ndarray, np.ndarray],
) -> Resolved:
    """New subscriptions, ends, deletions and searches. Op number i of the batch has seq next_op + i."""
    ops = ops.combine_chunks()
    kinds = ops["op"].to_numpy()
    about = np.flatnonzero((kinds == SUBSCRIBE) | (kinds == UNSUBSCRIBE))
    now = BEGINNING if clock is None else clock
    ids = chunk(ops["id"]).to_numpy()
    keys = id_keys(ids, is_text(chunk(ops["id_text"]), len(ops)))[about]
    given = chunk(ops["ts"])
    timed = given.is_valid().to_numpy(zero_copy_only=False)[about]
    moment = np.where(timed, given.fill_null(0).to_numpy()[about], now)
    digest = _digests(ops)[about]
    since, until, life = (ops[name].to_numpy()[about] for name in ("since", "until", "life"))
    subscribing = kinds[about] == SUBSCRIBE

    distinct, which = np.unique(keys, return_inverse=True)
    known = standing.newest(distinct)
    seq_now, digest_now, end_now = known.seq, known.digest, known.end
    new, start = np.zeros(len(about), np.bool_), np.empty(len(about), np.int64)
    unknown = np.zeros(len(about), np.bool_)
    ended: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    again: list[np.ndarray] = []
    counts = dict.fromkeys(("subscribed", "repeated", "replaced", "unsubscribed", "again"), 0)
    for turn in _turns(which):  # the first op of each id, then the second of each, and so on
        at = which[turn]
        stands = (seq_now[at] >= 0) & (end_now[at] > now)
        same = subscribing[turn] & stands & (digest_now[at] == digest[turn])
        replaces = subscribing[turn] & stands & ~same
        ends = ~subscribing[turn] & stands
        unknown[turn] = ~subscribing[turn] & ~stands
        when = np.where(replaces, np.maximum(moment[turn], now), moment[turn])
        stop = replaces | ends
        ended.append((distinct[at[stop]], seq_now[at[stop]], when[stop]))
        end_now[at[stop]] = np.minimum(end_now[at[stop]], when[stop])
        fresh = subscribing[turn] & ~same
        known_before = fresh & (seq_now[at] >= 0)
        again.append(distinct[at[known_before]])
        counts["again"] += int(known_before.sum())
        new[turn] = fresh
        start[turn] = when
        seq_now[at[fresh]] = next_op + about[turn[fresh]]
        digest_now[at[fresh]] = digest[turn[fresh]]
        begins = np.maximum(when, since[turn])
        end_now[at[fresh]] = row_ends(begins, until[turn], life[turn], standing.first_post)[fresh]
        counts["repeated"] += int(same.sum())
        counts["replaced"] += int(replaces.sum())
        counts["unsubscribed"] += int(ends.sum())
    counts["subscribed"] = int(new.sum()) - counts["replaced"]
    picked = about[new]
    rows = _rows(ops.take(pa.array(picked)), next_op + picked, start[new], digest[new], since[new], frequencies)
    gone = EndLog(*(np.concatenate(parts) for parts in zip(*ended, strict=True))) if ended else EndLog.empty()
    strangers = about[unknown]
    rejects = REJECTS.empty_table()
    if len(strangers):
        shown = ops.select(["id", "id_text", "ts"])
        rejects = reject_rows(shown, strangers, ["unsubscribe: no such subscription stands"] * len(strangers))
    return Resolved(
        rows=rows,
        ends=gone,
        deletes=ops.filter(pa.array(kinds == DELETE)).select(["id", "id_text"]),
        searches=ops.filter(pa.array(kinds == SEARCH)).select(["id", "id_text", "sql"]),
        rejects=rejects,
        again=np.concatenate([np.empty(0, np.uint64), *again]),
        counts={**counts, "deleted": int((kinds == DELETE).sum()), "searched": int((kinds == SEARCH).sum())},
    )


def _turns(which: np.ndarray) -> list[np.ndarray]:
    """Positions grouped so that each group has every value at most once, and a value's positions come in order."""
    if not len(which):
        return []
    order = np.argsort(which, kind="stable")
    ordered = which[order]
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    turn = np.arange(len(which)) - np.repeat(first, np.diff(np.append(first, len(which))))
    if not turn.any():
        return [np.arange(len(which))]
    return [np.sort(order[turn == k]) for k in range(turn.max() + 1)]


def _lists(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    lists = chunk(column)
    offsets = lists.offsets.to_numpy()
    return lists.values.to_numpy()[offsets[0] : offsets[-1]], (offsets - offsets[0]).astype(np.uint32)


def _digests(ops: pa.Table) -> np.ndarray:
    """A hash of what each query means, taken before its words are ordered by frequency."""
    shape, shape_offsets = _lists(ops["shape"])
    code, code_offsets = _lists(ops["code"])
    numbers = [ops[name].to_numpy().view(np.uint64) for name in ("min_lon", "min_lat", "max_lon", "max_lat")]
    numbers += [ops[name].to_numpy().view(np.uint64) for name in ("since", "until", "life")]
    numbers.append(ops["region_kind"].to_numpy().astype(np.uint64))
    extra = np.zeros(len(ops), np.uint64)
    for salt, name in enumerate(("predicates", "columns")):
        texts = chunk(ops[name]).fill_null("")
        data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
        offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
        extra = extra * np.uint64(31) + hash_strings(data, offsets.astype(np.int64)).view(np.uint64) + np.uint64(salt)
    return digests(np.stack(numbers, axis=1), shape, shape_offsets, code, code_offsets, extra)


def _rows(
    ops: pa.Table,
    seq: np.ndarray,
    start: np.ndarray,
    digest: np.ndarray,
    since: np.ndarray,
    frequencies: tuple[np.ndarray, np.ndarray],
) -> Rows:
    shape, shape_offsets = _lists(ops["shape"])
    code, code_offsets = _lists(ops["code"])
    start = np.maximum(start, since)
    life = ops["life"].to_numpy().copy()
    end = ops["until"].to_numpy().copy()
    counted = (life != NEVER) & (start != BEGINNING)  # FOR counts from the recorded start
    end[counted] = np.minimum(
        end[counted], start[counted] + np.minimum(life[counted], NEVER - np.maximum(start[counted], 0))
    )
    life[counted] = NEVER
    boxes = np.stack([ops[name].to_numpy() for name in ("min_lon", "min_lat", "max_lon", "max_lat")], axis=1)
    return Rows(
        seq=seq, id=ops["id"].to_numpy(), id_text=optional_strings(ops["id_text"]), start=start, end=end, life=life,
        digest=digest, home=np.ones(len(ops), np.uint8), kinds=ops["region_kind"].to_numpy(), boxes=boxes,
        shape=shape, shape_offsets=shape_offsets, code=file_codes(code, code_offsets, *frequencies),
        code_offsets=code_offsets, predicates=optional_strings(ops["predicates"]),
        columns=optional_strings(ops["columns"]), sql=optional_strings(ops["sql"]),
    )  # fmt: skip
