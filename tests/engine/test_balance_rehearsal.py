"""A decision that is rehearsed beside a batch changes nothing, whatever the strategy."""

from pathlib import Path

import pytest

from nearcast.engine.balance_rehearsal import LEAST, Rehearsal, rehearse
from nearcast.engine.balance_strategies import decide, picked
from nearcast.engine.settings import Settings
from nearcast.storage.directory import StateDirectory
from tests.engine.harness import start, step
from tests.engine.test_balance import plan_of
from tests.engine.test_every_router import random_batches, sample


@pytest.mark.parametrize("router", ["qt", "kdt", "agrid", "quad", "text-frequency", "kd"])
def test_every_strategy_can_be_rehearsed_without_a_trace(router: str, tmp_path: Path) -> None:
    batches, _ = random_batches(12, 3)
    state, settings = StateDirectory(tmp_path), Settings(workers=3, router=router)
    start(state, settings, sample(batches))
    assert rehearse(state, settings, state.newest()) is None  # there are no notes yet
    for batch in batches:
        step(state, settings, batch)
    before = state.newest()
    thread = rehearse(state, settings, before)
    assert thread is not None
    thread.join(60)
    assert not thread.is_alive()
    decide(picked("auto", router), Rehearsal(plan_of(state, settings)), LEAST)  # which tells, if it fails
    assert state.newest() == before
