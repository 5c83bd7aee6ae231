"""A worker in a process of its own that runs until told to finish, and then shows its ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks import children
from benchmarks.ledger import Entry, checked
from benchmarks.places import Place
from benchmarks.subject import Subject
from duetime.model.states import State


class Working:
    """The worker process, seen from the outside."""

    def __init__(self, child: children.Child) -> None:
        self._child = child

    @property
    def pid(self) -> int:
        """The process to look at."""
        return self._child.pid

    def finish(self, *, expected: int) -> list[Entry]:
        """Wait until so many jobs ran, stop the worker and return what it noted, checked."""
        return checked(self.noted(expected=expected), expected=expected)

    def noted(self, *, expected: int) -> list[Entry]:
        """Wait until so many jobs ran, stop the worker and return what it noted."""
        answer = self._child.finish(f"{expected}\n")
        if answer["succeeded"] != expected:
            raise AssertionError(f"{expected} jobs ran, the store has {answer['succeeded']} as succeeded")
        return [Entry(*entry) for entry in answer["ran"]]


@contextmanager
def working(place: Place, *, concurrency: int = 100) -> Iterator[Working]:
    """Start a worker process and wait until it is idle."""
    with children.started(worker, url=place.url, concurrency=concurrency) as child:
        child.wait_ready()
        yield Working(child)


async def worker(*, url: str, concurrency: int) -> dict[str, Any]:
    """Work until told how many jobs there will have been."""
    subject = Subject(url)
    async with subject.scheduler:
        async with subject.scheduler.worker(concurrency=concurrency, dedicated=True):
            expected = int(await asyncio.to_thread(children.ready_then_wait))
            await subject.until_ran(expected, within=60)
        counts = await subject.scheduler.store.counts()
    succeeded = sum(n for (_, state), n in counts.items() if state is State.SUCCEEDED)
    return {"ran": subject.ran, "succeeded": succeeded}
