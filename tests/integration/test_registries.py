"""A job is always somewhere, and only there, whatever dies between two steps of its life."""

from __future__ import annotations

import pytest

from duetime import QueueRecord, Registry, Scheduler, State
from tests.integration.kit import Fleet, until


async def places(scheduler: Scheduler) -> dict[str, int]:
    """The registries that have a job in them."""
    (queue,) = await scheduler.queues.list()
    return {name: count for name in Registry if (count := counted(queue, name))}


def counted(queue: QueueRecord, name: Registry) -> int:
    count: int = getattr(queue, name)
    return count


@pytest.mark.covers("in-no-registry")
@pytest.mark.parametrize("failpoint", ["before:claim", "after:claim", "before:settle", "after:settle"])
async def test_a_job_is_in_one_registry_wherever_its_worker_dies(fleet: Fleet, failpoint: str) -> None:
    app = fleet.app()
    async with app.scheduler:
        job = await app.note.enqueue()
        assert await places(app.scheduler) == {"queued": 1}
        victim = fleet.launch(failpoint=f"{failpoint}:kill", lease="1s")
        await until(lambda: victim.ended, what="the end of the worker")
        assert list((await places(app.scheduler)).values()) == [1]
        await fleet.start(lease="1s")
        ended = (await fleet.ended(app.scheduler.store, [job.id]))[job.id]
        assert ended.state is State.SUCCEEDED
        assert await places(app.scheduler) == {"finished": 1}
