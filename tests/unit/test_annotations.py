from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator

import pytest

import duetime
from duetime.scheduler.job_handle import BlockingHandle
from duetime.scheduler.jobs import Jobs, Pruning
from duetime.scheduler.queues import Queues
from duetime.scheduler.schedules import Schedules
from duetime.scheduler.sync import (
    BlockingJobs,
    BlockingPruning,
    BlockingQueues,
    BlockingScheduler,
    BlockingSchedules,
    BlockingWorkers,
)
from duetime.scheduler.workers import Workers

REACHED = (
    *(Jobs, Pruning, Queues, Schedules, Workers, BlockingHandle, BlockingScheduler),
    *(BlockingJobs, BlockingPruning, BlockingQueues, BlockingSchedules, BlockingWorkers),
)
"""Classes whose objects a scheduler hands out."""


def annotated() -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield all that is public and has annotations: what tools such as injectors and generators of documents read."""
    for found in (*(getattr(duetime, name) for name in duetime.__all__), *REACHED):
        if inspect.isclass(found):
            yield found.__name__, found
            yield from ((f"{found.__name__}.{own}", function) for own, function in methods(found))
        elif inspect.isfunction(found):
            yield found.__name__, found


def methods(owner: type) -> Iterator[tuple[str, Callable[..., object]]]:
    for name, found in vars(owner).items():
        wrapped = next(
            (getattr(found, at) for at in ("func", "fget", "__func__") if hasattr(found, at)), found
        )
        if inspect.isfunction(wrapped) and (name.startswith("__") or not name.startswith("_")):
            yield name, wrapped


ANNOTATED = dict(annotated())


@pytest.mark.parametrize("name", ANNOTATED)
def test_the_annotations_of_what_is_public_can_be_read_at_run_time(name: str) -> None:
    typing.get_type_hints(ANNOTATED[name])


def test_there_is_much_that_is_public() -> None:
    assert len(ANNOTATED) > 150
    assert {"Scheduler.jobs", "Scheduler.worker", "JobHandle.record", "Jobs.list"} <= ANNOTATED.keys()
