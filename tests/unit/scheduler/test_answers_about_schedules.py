"""What verbs of schedules answer when there is nothing for them to do."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from duetime import Scheduler, every
from duetime.errors import ScheduleNotFound


def tidy() -> None: ...


@pytest.fixture
async def scheduler(sqlite_url: str) -> AsyncIterator[Scheduler]:
    async with Scheduler(sqlite_url) as opened:
        await opened.schedules.put("nightly", every("1h"), opened.task(tidy))
        yield opened


async def test_a_resume_says_whether_there_was_a_pause(scheduler: Scheduler) -> None:
    assert await scheduler.schedules.resume("nightly") == "unchanged"
    await scheduler.schedules.pause("nightly")
    assert await scheduler.schedules.resume("nightly") == "resumed"


async def test_the_history_of_what_never_was_is_not_found(scheduler: Scheduler) -> None:
    await scheduler.schedules.delete("nightly")
    assert [change.verb for change in await scheduler.schedules.history("nightly")] == ["delete", "put"]
    with pytest.raises(ScheduleNotFound, match="there is no schedule 'weekly'"):
        await scheduler.schedules.history("weekly")


async def test_a_name_that_is_nearly_right_is_offered_the_right_one(scheduler: Scheduler) -> None:
    for verb in (
        scheduler.schedules.get,
        scheduler.schedules.preview,
        scheduler.schedules.explain,
        scheduler.schedules.trigger,
        scheduler.schedules.history,
    ):
        with pytest.raises(ScheduleNotFound, match=r"no schedule 'nightlie'; did you mean nightly\?"):
            await verb("nightlie")
    with pytest.raises(ScheduleNotFound, match="`duetime schedules list` shows those there are"):
        await scheduler.schedules.get("zzz")
