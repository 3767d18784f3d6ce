"""What all compaction does with segments: takes those that are its worker's, and tells what it puts in their place."""

from nearcast.engine.batch import BatchPlan
from nearcast.engine.task_result import TaskResult
from nearcast.storage.manifest import SegmentRef


class Rewriting:
    def __init__(self, plan: BatchPlan, worker: int, result: TaskResult) -> None:
        self.plan = plan
        self.worker = worker
        self.result = result
        self.manifest = plan.manifest

    def mine(self, kind: str) -> list[SegmentRef]:
        """Segments that are this worker's to rewrite and that this task has not rewritten yet."""
        workers = self.plan.settings.workers
        gone = set(self.result.gone)
        return [s for s in self.manifest.of(kind) if s.owner % workers == self.worker and s.name not in gone]

    def replace(self, old: list[SegmentRef], new: list[SegmentRef]) -> None:
        self.result.gone += [ref.name for ref in old]
        self.result.segments += new
        self.result.count(merges=1, merged_rows=sum(ref.rows for ref in new))

    def ref(self, kind: str, name: str, rows: int, size: int, old: list[SegmentRef], **facts: int | None) -> SegmentRef:
        same = {ref.facts.get("layout") for ref in old} == {self.plan.layout}
        shared = {"layout": self.plan.layout} if same else {}
        bounds = min(ref.min_ts for ref in old), max(ref.max_ts for ref in old)
        return SegmentRef(kind, name, rows, size, self.plan.batch, self.worker, *bounds, facts={**shared, **facts})

    def name(self, kind: str) -> str:
        return self.plan.state.new_name(kind, self.plan.batch, self.worker)
