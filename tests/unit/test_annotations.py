from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator

import pytest

import duetime
from duetime.scheduler import lazy

REACHED = ("BlockingScheduler", "Jobs", "Pruning", "Queues", "Schedules", "Workers")
"""Classes whose objects a scheduler hands out."""


def annotated() -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield all that is public and has annotations: what tools such as injectors and generators of documents read."""
    for module, names in ((duetime, duetime.__all__), (lazy, REACHED)):
        for name in names:
            found = getattr(module, name)
            if inspect.isclass(found):
                yield name, found
                yield from ((f"{name}.{own}", function) for own, function in methods(found))
            elif inspect.isfunction(found):
                yield name, found


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
