"""Workers are told what to do through the store: once, with an answer, or with the reason why there is none."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from duetime.model.ids import new_job_id
from duetime.model.time import DAY
from duetime.model.worker import Command, CommandKind, NewCommand, WorkerStats
from duetime.stores.base import Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import LEASE, hire, prune, rescue
from duetime.testing.conformance.suite import StoreSuite


def command(worker: str = "w1", kind: CommandKind = CommandKind.PAUSE, **changes: Any) -> NewCommand:
    """A command with a fresh id."""
    return NewCommand(id=new_job_id(), worker=worker, kind=kind, **changes)


async def send(store: Store, *new: NewCommand) -> list[str]:
    """Send commands and return the ids of those that were accepted."""
    return [stored.id for stored in await store.send(new)]


async def read(store: Store, new: NewCommand) -> Command:
    """Read one command."""
    (found,) = await store.commands([new.id])
    return found


class TestCommands(StoreSuite):
    """`send`, `take_commands`, `finish_command`, `commands` and `commands_of`."""

    @pytest.mark.covers("nothing-to-see")
    async def test_a_command_is_kept_as_it_was_sent(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        new = command(kind=CommandKind.STOP_JOB, job="j1", reason="it's \x00 off")
        (stored,) = await store.send([new])
        assert stored == Command(
            id=new.id,
            worker="w1",
            kind="stop_job",
            job="j1",
            reason="it's \N{REPLACEMENT CHARACTER} off",
            created_at=clock.now(),
            taken_at=None,
            done_at=None,
            outcome=None,
            dropped=False,
        )
        assert await read(store, new) == stored
        assert await store.send([]) == []
        assert await store.commands(["unknown"]) == []

    async def test_the_pulse_tells_that_there_is_something_to_do_until_it_is_done(self, store: Store) -> None:
        await hire(store, "w1", "w2")

        async def waiting(worker: str) -> list[bool]:
            beat = await store.pulse(worker, WorkerStats(), lease=LEASE)
            return [beat.commands, (await store.attend(worker)).commands]

        assert await waiting("w1") == [False, False]
        new = command()
        await send(store, new)
        assert await waiting("w1") == [True, True]
        assert await waiting("w2") == [False, False]
        await store.take_commands("w1")
        assert await waiting("w1") == [True, True]
        await store.finish_command(new.id, "paused")
        assert await waiting("w1") == [False, False]

    async def test_a_worker_takes_its_own_commands_in_the_order_they_were_sent(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1", "w2")
        mine = [command(kind=kind) for kind in CommandKind]
        await send(other, *mine[:3], command("w2"), *mine[3:])
        clock.advance(1)
        taken = await store.take_commands("w1")
        assert [(one.id, one.kind, one.taken_at) for one in taken] == [
            (new.id, new.kind, clock.now()) for new in mine
        ]
        assert len(await store.take_commands("w2")) == 1

    async def test_the_order_of_commands_is_that_of_the_stores_clock(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        first, second = (replace(command(), id=name) for name in ("z", "a"))
        await send(store, first)
        clock.advance(1)
        await send(store, second)
        assert [one.id for one in await store.take_commands("w1")] == ["z", "a"]
        assert [one.id for one in await store.commands_of("w1", limit=2)] == ["a", "z"]

    async def test_a_command_whose_handing_over_was_lost_is_handed_over_again(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        await send(store, command())
        lost = await store.take_commands("w1")
        clock.advance(1)
        assert await store.take_commands("w1") == lost

    async def test_what_came_of_a_command_is_recorded_once(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        new = command()
        await send(store, new)
        await store.take_commands("w1")
        clock.advance(1)
        done_at = clock.now()
        await store.finish_command(new.id, "did \x00 it")
        clock.advance(1)
        await store.finish_command(new.id, "did it again")
        await store.finish_command("unknown", "did what?")
        done = await read(store, new)
        assert (done.outcome, done.done_at, done.dropped) == (
            "did \N{REPLACEMENT CHARACTER} it",
            done_at,
            False,
        )
        assert await store.take_commands("w1") == []

    async def test_sending_again_after_a_lost_answer_stores_nothing_twice(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        new = command()
        first = await store.send([new])
        clock.advance(1)
        assert await store.send([new]) == first
        assert len(await store.take_commands("w1")) == 1

    @pytest.mark.parametrize("end", ["buried", "expired", "expired unnoticed", "retired", "never there"])
    async def test_who_is_gone_cannot_be_told_anything(
        self, store: Store, clock: FakeClock, end: str
    ) -> None:
        await hire(store, "w1")
        if end == "never there":
            gone = "nobody"
        else:
            gone = "w0"
            await hire(store, gone)
            await self._end(store, clock, gone, end)
        refused, accepted = command(gone), command("w1")
        assert await send(store, refused, accepted) == [accepted.id]
        assert await store.commands([refused.id]) == []

    @pytest.mark.parametrize("end", ["buried", "expired", "retired"])
    @pytest.mark.parametrize("taken", [False, True])
    @pytest.mark.covers("commands-answered")
    async def test_commands_of_a_worker_that_goes_are_dropped_with_the_reason(
        self, store: Store, other: Store, clock: FakeClock, end: str, *, taken: bool
    ) -> None:
        await hire(store, "w1", "w2")
        answered, dropped, theirs = command(), command(), command("w2")
        await send(store, answered, dropped, theirs)
        if taken:
            await store.take_commands("w1")
        await store.finish_command(answered.id, "done")
        clock.advance(1)
        await self._end(other, clock, "w1", end)
        record = await read(store, dropped)
        assert (record.dropped, record.done_at) == (True, clock.now())
        assert record.outcome is not None
        assert ("stopped" if end == "retired" else "died") in record.outcome
        assert (await read(store, answered)).outcome == "done"
        assert (await read(store, theirs)).done_at is None
        await store.finish_command(dropped.id, "too late")
        assert await read(store, dropped) == record

    @pytest.mark.covers("commands-answered")
    async def test_a_worker_that_goes_while_it_is_told_something_leaves_nothing_open(
        self, store: Store, other: Store
    ) -> None:
        for number in range(20):
            worker = f"w{number}"
            await hire(store, worker)
            told = [[command(worker)] for _ in range(3)]
            await asyncio.gather(*map(other.send, told), store.retire(worker))
            found = await store.commands([new.id for (new,) in told])
            assert [one for one in found if not one.dropped] == []

    async def test_what_a_worker_was_told_is_listed_newest_first(self, store: Store) -> None:
        await hire(store, "w1", "w2")
        first, second, third = command(), command(), command()
        await send(store, first, command("w2"), second, third)
        assert [one.id for one in await store.commands_of("w1", limit=2)] == [third.id, second.id]
        assert await store.commands_of("nobody", limit=2) == []

    async def test_commands_are_forgotten_with_the_workers_of_their_time(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        old, still_open = command(), command()
        await send(store, old, still_open)
        await store.finish_command(old.id, "done")
        clock.set(clock.now() + 2 * DAY)
        await prune(store, before=clock.now())
        assert [one.id for one in await store.commands([old.id, still_open.id])] == [still_open.id]

    @staticmethod
    async def _end(store: Store, clock: FakeClock, worker: str, how: str) -> None:
        if how == "buried":
            await store.bury([worker])
        elif how == "retired":
            await store.retire(worker)
        else:
            alive = [row.id for row in await store.workers() if row.state == "alive" and row.id != worker]
            clock.set(clock.now() + LEASE + 1)
            for other in alive:
                await store.pulse(other, WorkerStats(), lease=LEASE)
            if how == "expired":
                await rescue(store, alive[0])
