from __future__ import annotations

from typing import cast

from duetime.model.instants import SECOND
from duetime.runtime.asking import Asking
from duetime.runtime.identity import Identity
from duetime.runtime.timekeeper import Timekeeper, monotonic
from duetime.stores.base import JobStore, NextDue


class Reading:
    """A store whose clock is an hour ahead of this process."""

    async def next_due(self, _queues: object, _tasks: object) -> NextDue:
        return NextDue(now=monotonic() + 3600 * SECOND, due_at=None)


async def test_the_time_is_learnt_from_a_look_at_what_falls_due_and_is_never_ahead_of_the_store() -> None:
    time = Timekeeper()
    asking = Asking(cast("JobStore", Reading()), Identity(queues=(), slots=0), time)
    found = await asking.next_due([], [])
    ahead = time.now() - monotonic()
    assert 3599 * SECOND < ahead <= 3600 * SECOND
    assert found.due_at is None
