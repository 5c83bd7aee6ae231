"""Reasons and limits of any kind: taken, or refused with an error of ours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from duetime import Scheduler
from duetime.errors import InvalidOption
from duetime.testing.conformance.kit import hire

Verb = Callable[[Scheduler, Any], Awaitable[object]]

WITH_REASON: dict[str, Verb] = {
    "cancel": lambda scheduler, reason: scheduler.jobs.cancel("j", reason=reason),
    "cancel many": lambda scheduler, reason: scheduler.jobs.cancel_many(["j"], reason=reason),
    "pause a worker": lambda scheduler, reason: scheduler.workers.pause("w", reason=reason, wait=0),
    "stop a worker": lambda scheduler, reason: scheduler.workers.stop("w", reason=reason, wait=0),
    "stop a job": lambda scheduler, reason: scheduler.workers.stop_job("w", "j", reason=reason, wait=0),
    "pause a queue": lambda scheduler, reason: scheduler.queues.pause("q", reason=reason),
    "purge a queue": lambda scheduler, reason: scheduler.queues.purge("q", confirm="q", reason=reason),
    "pause a schedule": lambda scheduler, reason: scheduler.schedules.pause("s", reason=reason),
}


@pytest.mark.parametrize("verb", WITH_REASON.values(), ids=WITH_REASON)
async def test_a_reason_that_is_no_text_is_refused(verb: Verb) -> None:
    async with Scheduler("sqlite://") as scheduler:
        await hire(scheduler.store, "w")
        for reason in (5, b"x", ["x"]):
            with pytest.raises(InvalidOption, match="reason must be text, not "):
                await verb(scheduler, reason)


async def test_a_cancel_needs_a_reason() -> None:
    async with Scheduler("sqlite://") as scheduler:
        with pytest.raises(InvalidOption, match="reason must be text, not None"):
            await WITH_REASON["cancel"](scheduler, None)


@pytest.mark.parametrize("limit", [-1, 0, "x", 1.5, 1_001])
async def test_a_number_of_commands_that_cannot_be_is_refused(limit: Any) -> None:
    async with Scheduler("sqlite://") as scheduler:
        await hire(scheduler.store, "w")
        with pytest.raises(InvalidOption, match="limit must be a whole number"):
            await scheduler.workers.commands("w", limit=limit)
