"""What is stored before anything is measured."""

from __future__ import annotations

import asyncio

from benchmarks import children
from benchmarks.ledger import now
from benchmarks.places.base import Place
from benchmarks.subject import TICK, Subject
from duetime.model.ids import new_job_id
from duetime.model.job import NewJob
from duetime.model.states import State

_FIRST_FUTURE = 86_400 * 1_000_000
"""Jobs for later are due from a day ahead, one per second."""
_PAST = 1_000


def prepare(empty: Place, filled: Place, future: int) -> None:
    """Make both places ready to be measured on."""
    for place, count in ((empty, 0), (filled, future)):
        children.run(fill, url=place.url, future=count)
        place.keep()


def fill(*, url: str, future: int) -> None:
    """Make the tables and store jobs for later."""
    asyncio.run(fill_all(url, future))


async def fill_all(url: str, future: int) -> None:
    """Do the same in an event loop that runs already."""
    subject = Subject(url)
    first = now() + _FIRST_FUTURE
    async with subject.scheduler as scheduler:
        # No store in use is empty: PostgreSQL plans for a table without a page as if it stayed so.
        past = [NewJob(id=new_job_id(), task=TICK, payload="{}", state=State.SKIPPED) for _ in range(_PAST)]
        await scheduler.store.enqueue(past)
        await subject.enqueue_many(future, batch=5_000, due_at=lambda n: first + n * 1_000_000)
