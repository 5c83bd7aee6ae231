from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from duetime.errors import StoreUnavailable
from duetime.model.worker import WorkerStats
from duetime.runtime import worker_group
from duetime.runtime.options import WorkerOptions
from duetime.runtime.running.slots import Slots
from duetime.runtime.worker import Worker
from duetime.runtime.worker_group import WorkerGroup


class Member:
    """A worker of a group, that notes what it is told."""

    def __init__(self, store: str, *, options: WorkerOptions, **settings: Any) -> None:
        self.name, self.options, self.lead = store, options, settings.get("lead")
        self.slots = Slots(1, {}) if self.lead is None else self.lead.slots.share()
        self.whole: object = None
        self.told: list[str] = []
        self.ended = self.running = 0
        self.refuses = False

    def assemble(self) -> None:
        self.told.append("assemble")

    async def start(self) -> None:
        if self.refuses:
            raise StoreUnavailable("down")
        self.told.append("start")

    async def stop(self) -> None:
        self.told.append("stop")

    def stats(self) -> WorkerStats:
        return WorkerStats(running=self.running, done=self.ended)

    def look_again(self) -> None:
        self.told.append("look again")

    def slot_freed(self) -> None:
        self.told.append("slot freed")

    def ask_to_stop(self, *, now: bool) -> int:
        self.told.append("stop now" if now else "stop")
        return self.running


def group_of(*parts: str) -> tuple[WorkerGroup, list[Member]]:
    """A group, and its workers from near to far."""
    made: list[Member] = []

    def make(store: str, **settings: Any) -> Any:
        made.append(Member(store, **settings))
        return made[-1]

    group = WorkerGroup(cast("Any", parts), make, WorkerOptions())
    return group, sorted(made, key=lambda member: parts.index(member.name))


async def test_all_are_assembled_before_one_is_started_and_the_last_part_leads() -> None:
    group, (near, far) = group_of("near", "far")
    await group.start()
    assert (near.lead, far.lead) == (far, None)
    assert (near.options.schedules, far.options.schedules) == (False, True)
    assert near.told == far.told == ["assemble", "start"]
    assert near.whole is far.whole is group


async def test_where_one_store_cannot_be_used_none_is_left_started() -> None:
    group, (near, far) = group_of("near", "far")
    near.refuses = True
    with pytest.raises(StoreUnavailable):
        await group.start()
    assert (near.told, far.told) == (["assemble"], ["assemble", "start", "stop"])


async def started(*parts: str) -> tuple[WorkerGroup, list[Member]]:
    """A group that has been told nothing since its start."""
    group, members = group_of(*parts)
    await group.start()
    for member in members:
        member.told.clear()
    return group, members


async def test_it_stops_when_all_have_found_nothing_due_since_the_last_run_has_ended() -> None:
    group, (near, far) = await started("near", "far")
    group.nothing_due(cast("Worker", near), 0)
    assert (near.told, far.told) == ([], ["look again"])
    group.nothing_due(cast("Worker", far), 0)
    assert (near.told, far.told) == (["stop"], ["look again", "stop"])


async def test_who_looked_before_a_run_has_ended_elsewhere_looks_again() -> None:
    """That run may have enqueued a job there."""
    group, (near, far) = await started("near", "far")
    group.nothing_due(cast("Worker", near), 0)
    far.ended = 1
    group.nothing_due(cast("Worker", far), 1)
    assert (near.told, far.told) == (["look again"], ["look again"])
    group.nothing_due(cast("Worker", near), 1)
    assert near.told == ["look again", "stop"]


async def test_a_look_counts_from_when_it_began() -> None:
    group, (near, far) = await started("near", "far")
    group.nothing_due(cast("Worker", far), 0)
    far.ended = 1
    group.nothing_due(cast("Worker", near), 0)
    assert "stop" not in [*near.told, *far.told]


async def test_while_a_job_runs_it_does_not_stop() -> None:
    group, (near, far) = await started("near", "far")
    group.nothing_due(cast("Worker", near), 0)
    far.running = 1
    group.nothing_due(cast("Worker", far), 0)
    assert "stop" not in [*near.told, *far.told]


async def test_of_a_free_slot_each_is_told_first_by_turns() -> None:
    group, members = await started("near", "far")
    order: list[str] = []
    for member in members:
        member.slot_freed = lambda name=member.name: order.append(name)  # type: ignore[method-assign, misc]
    group.slot_freed()
    group.slot_freed()
    assert order in (["near", "far", "far", "near"], ["far", "near", "near", "far"])


async def test_a_slot_is_kept_for_a_moment_for_the_one_who_is_next_in_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_group, "_PATIENCE", 0)
    group, (near, far) = await started("near", "far")
    far.slots.line_up()
    near.slots.line_up()
    group.slot_freed()
    assert near.slots.free == 0
    near.told.clear()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert near.slots.free == 1, "the other store does not answer"
    assert "slot freed" in near.told


async def test_it_reports_how_all_fare_together() -> None:
    group, (near, far) = await started("near", "far")
    near.ended, near.running, far.ended, far.running = 1, 2, 3, 4
    assert (group.stats().done, group.stats().running, group.ended) == (4, 6, 4)
    assert group.ask_to_stop(now=True) == 6
    async with asyncio.timeout(5):
        await group.asked_to_stop()
