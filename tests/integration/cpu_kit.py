"""Tasks in child processes, and what became of their jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from duetime import Scheduler
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from tests.integration.kit import until


def cpu(scheduler: Scheduler, function: Callable[..., Any], **options: Any) -> Any:
    """Make a task whose jobs run in child processes."""
    return scheduler.task(name=function.__name__, cpu=True, **options)(function)


async def read(scheduler: Scheduler, job_id: str) -> StoredJob:
    """Return what is stored of a job."""
    return (await scheduler.store.get([job_id]))[0]


async def reaches(scheduler: Scheduler, job_id: str, state: State) -> StoredJob:
    """Wait until a job is in the state, and return what is stored of it."""

    async def there() -> StoredJob | None:
        record = await read(scheduler, job_id)
        return record if record.state is state else None

    record = await until(there, what=f"the state {state}")
    assert record is not None
    return record
