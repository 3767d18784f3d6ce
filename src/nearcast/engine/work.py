"""Work: what one worker does with its packets of a batch. It reads the state before the batch, writes new files and
tells of them in its result.
"""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import chunk
from nearcast.common.kinds import kinds
from nearcast.common.op_schema import BEGINNING
from nearcast.common.post_schema import REJECTS
from nearcast.engine import packets as packing
from nearcast.engine.apply_ops import apply_ops
from nearcast.engine.arrivals import ROUTED, Arrivals, admit
from nearcast.engine.batch import BatchPlan
from nearcast.engine.compaction import compact
from nearcast.engine.keyword_lists import words_of_posts, words_of_searches, write_learned
from nearcast.engine.load_notes import observe, watched
from nearcast.engine.match_results import not_yet_told, once
from nearcast.engine.new_words import new_words
from nearcast.engine.op_packets import unpack_ops
from nearcast.engine.op_resolution import Resolved
from nearcast.engine.roles import Standing
from nearcast.engine.task import Task
from nearcast.engine.task_result import TaskResult
from nearcast.engine.ticks import late_results
from nearcast.partitioning.learned_words import LearnedWords
from nearcast.storage.bundle import bundle_table
from nearcast.storage.files import write_table
from nearcast.storage.manifest import POSTS, RESULTS, SUBSCRIPTIONS, TERMS, WINDOW
from nearcast.storage.manifest import REJECTS as REJECTED
from nearcast.storage.outbox import MATCH, Results
from nearcast.storage.posts.post_segment import Vocabulary, post_fingerprints, write_posts
from nearcast.storage.term_table import TermTable

Tables = Mapping[str, pa.Table]  # what came in packets, by what it is


def work(plan: BatchPlan, worker: int, packets: Iterable[bytes]) -> TaskResult:
    """Ops first, then posts: file new subscriptions and let them catch up, match, store, tell."""
    task = Task(plan, worker, TaskResult(worker))
    tables = decode(task, packets)
    ops = resolved_ops(task, tables)
    standing = list(open_kinds(task, ops))
    results = caught_up(task, ops, standing)
    posts = arrived(task, tables)
    if posts is not None:
        results += matched(task, ops, posts, standing)
        store(task, posts)
    finish(task, standing, results, rejected(task, tables, ops))
    learn(task, ops, posts)
    if plan.settings.merge:
        compact(plan, worker, task.result)
    return task.result


def decode(task: Task, packets: Iterable[bytes]) -> Tables:
    with task.result.timed("decode"):
        return packing.unpack(packets)


def resolved_ops(task: Task, tables: Tables) -> Resolved | None:
    """What the ops of the batch mean, if it has any."""
    if packing.OPS not in tables:
        return None
    return apply_ops(task, *unpack_ops(tables[packing.OPS], tables.get(packing.QUERIES), task.worker))


def open_kinds(task: Task, ops: Resolved | None) -> Iterator[Standing]:
    """The part of each kind that has subscriptions, before the batch or in it."""
    asked = {ref.asks for ref in task.manifest.of(SUBSCRIPTIONS)} | (set() if ops is None else set(np.unique(ops.asks)))
    for kind in kinds():
        if kind.code in asked:
            yield kind.standing.open(task, ops)


def caught_up(task: Task, ops: Resolved | None, standing: list[Standing]) -> list[Results]:
    """What new subscriptions find among the posts already kept."""
    if ops is None or not task.keeps_posts:
        return []
    with task.result.timed("catch up"):
        return not_yet_told(task, [found for part in standing for found in part.catch_up()], ops.again)


def arrived(task: Task, tables: Tables) -> Arrivals | None:
    """The posts that came. What the splits have read counts, also what nobody wanted, and moves the clock."""
    if packing.SEEN in tables:
        seen = tables[packing.SEEN]
        task.result.count(posts=sum(seen["posts"].to_pylist()), dropped=sum(seen["dropped"].to_pylist()))
        task.result.clock = max(seen["latest"].to_pylist())
    if packing.POSTS not in tables:
        return None
    return admit(task, tables[packing.POSTS], tables.get(packing.PRINTS))


def matched(task: Task, ops: Resolved | None, posts: Arrivals, standing: list[Standing]) -> list[Results]:
    """What the posts bring to subscriptions, each pair once, and posts too late for a report that was sent."""
    found = [found for part in standing for found in part.match(posts)]
    again = task.manifest.counts.get("again", 0) + (0 if ops is None else ops.counts["again"])
    return [once(part) if again else part for part in found] + late_results(task, posts)


def store(task: Task, posts: Arrivals) -> None:
    """Write this worker's posts, and the words in them; with `--keep none` those that windows need."""
    kind, which = POSTS, posts.stored
    if task.plan.settings.keep == "none":
        kind, which = WINDOW, which & posts.marked(*(kind for kind in kinds() if kind.windowed))
    order = posts.in_order(which)
    if not len(order):
        return
    with task.result.timed("store"):
        order = order[np.argsort(posts.leaves[order], kind="stable")]
        kept = posts.table.drop_columns([name for name in ROUTED if name in posts.table.column_names])
        name = task.new_name(kind)
        size, words = write_posts(task.plan.state.path(name), kept, order)
        ts = posts.columns.ts[order]
        task.add(kind, name, len(order), size, min_ts=int(ts.min()), max_ts=int(ts.max()))
        task.result.count(stored=len(order), stored_bytes=size)
    with task.result.timed("words"):
        write_words(task, words, posts)


def write_words(task: Task, words: Vocabulary, posts: Arrivals) -> None:
    """How often words occur, and those that the dictionary does not have yet."""
    real = words.terms != 0
    terms, counts = words.terms[real], words.counts[real]
    name = task.new_name(TERMS)
    table = TermTable(terms, counts, new_words(task.plan, terms, posts.table["text"]))
    task.add(TERMS, name, len(terms), table.write(task.plan.state.path(name)))


def rejected(task: Task, tables: Tables, ops: Resolved | None) -> pa.Table:
    """What could not be taken: of ops that every worker works out, worker 0 tells."""
    rejects = [tables[packing.REJECTS]] if packing.REJECTS in tables else []
    if ops is not None and task.worker == 0:
        rejects.append(ops.rejects)
    return pa.concat_tables([REJECTS.empty_table(), *rejects])


def finish(task: Task, standing: list[Standing], results: list[Results], rejects: pa.Table) -> None:
    """Write what the kinds keep, the results and the rejects."""
    for part in standing:
        part.write()
    write_results(task, [part for part in results if len(part)])
    if len(rejects):
        name = task.new_name(REJECTED)
        task.add(REJECTED, name, len(rejects), write_table(task.plan.state.path(name), rejects, compression="lz4"))
        task.result.count(rejects=len(rejects))


def write_results(task: Task, results: list[Results]) -> None:
    if not results:
        return
    with task.result.timed("write results"):
        whole = Results.concat(results)
        name = task.new_name(RESULTS)
        path = task.plan.state.path(name)
        size = whole.write(path)
        if task.plan.settings.keep == "none":
            prints = {"fingerprints": np.sort(post_fingerprints(whole.posts))}
            size += write_table(path.with_suffix(".index.arrow"), bundle_table(prints))
        ts = chunk(whole.posts["ts"]).to_numpy()
        low, high = (int(ts.min()), int(ts.max())) if len(ts) else (BEGINNING, BEGINNING)
        task.add(RESULTS, name, len(whole), size, min_ts=low, max_ts=high)
        matches = int((whole.table["kind"].to_numpy() == MATCH).sum())
        task.result.count(results=len(whole), matches=matches)


def learn(task: Task, ops: Resolved | None, posts: Arrivals | None) -> None:
    """Note what routing and balancing will go by from the next batch on."""
    plan, result = task.plan, task.result
    learned = [LearnedWords.nothing()]
    if ops is not None and task.worker == 0:
        learned.append(words_of_searches(plan, ops.queries))
    if posts is not None:
        if watched(plan.settings):
            with result.timed("observe"):
                stored = posts.in_order(posts.stored)
                result.segments.append(observe(plan, task.worker, result.counts, posts.columns, stored))
        with result.timed("words"):
            learned.append(words_of_posts(plan, posts.columns, posts.leaves))
    result.segments += write_learned(plan, task.worker, LearnedWords.united(learned))
