"""Workers as a client sees them, once they are gone."""

from __future__ import annotations

import pytest

from duetime import Scheduler
from duetime.errors import WorkerGone
from duetime.testing import FakeClock
from duetime.testing.conformance.kit import LEASE, hire


async def test_a_worker_whose_lease_is_over_is_gone_for_everybody() -> None:
    clock = FakeClock()
    async with Scheduler("sqlite://", clock=clock) as scheduler:

        @scheduler.task(name="greet")
        async def greet() -> None: ...

        await hire(scheduler.store, "w")
        job = await greet.enqueue()
        clock.set(clock.now() + LEASE + 1)
        with pytest.raises(WorkerGone, match=r"w on .* is dead"):
            await scheduler.workers.pause("w")
        assert (await scheduler.workers.get("w")).state == "dead"
        assert "No worker is alive" in str(await scheduler.jobs.explain(job.id))
