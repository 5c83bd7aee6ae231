from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from duetime.errors import StoreUnavailable
from duetime.model.job import JobId
from duetime.model.stored.audit import NOTHING_NOTED, Noted
from duetime.model.time import Instant
from duetime.model.worker import Command, CommandId, CommandKind, NewCommand, WorkerId
from duetime.runtime.upkeep.commands import CommandRunner, carry_out


def command(
    kind: str = CommandKind.PAUSE, *, id_: str = "c1", job: str | None = None, reason: str | None = None
) -> Command:
    return Command(
        id=id_,
        worker="w1",
        kind=kind,
        job=job,
        reason=reason,
        created_at=1,
        taken_at=2,
        done_at=None,
        outcome=None,
        dropped=False,
    )


class OpenCommands:
    """Hands out its commands until they are answered."""

    def __init__(self, *commands: Command) -> None:
        self.open = list(commands)
        self.outcomes: dict[CommandId, str] = {}
        self.failing = False

    async def send(self, commands: Sequence[NewCommand], *, noted: Noted = NOTHING_NOTED) -> list[Command]:
        raise NotImplementedError

    async def take_commands(self, worker: WorkerId) -> list[Command]:
        return [one for one in self.open if one.id not in self.outcomes]

    async def finish_command(self, command: CommandId, outcome: str) -> None:
        if self.failing:
            raise StoreUnavailable("away")
        self.outcomes[command] = outcome

    async def commands(self, ids: Sequence[CommandId]) -> list[Command]:
        raise NotImplementedError

    async def commands_of(self, worker: WorkerId, *, limit: int) -> list[Command]:
        raise NotImplementedError


class Worker:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def pause(self, reason: str | None, *, since: Instant) -> int:
        self.told.append(("pause", reason, since))
        return 2

    def resume(self) -> bool:
        self.told.append("resume")
        return len(self.told) == 1

    def ask_to_stop(self, *, now: bool) -> int:
        self.told.append(("stop", now))
        return 1

    def stop_job(self, job_id: JobId, reason: str | None) -> bool:
        self.told.append((job_id, reason))
        return job_id == "mine"

    def release_job(self, job_id: JobId) -> bool:
        self.told.append(("release", job_id))
        return job_id == "mine"

    def stacks(self) -> str:
        raise RuntimeError("too deep")


def carried_out(given: Command, worker: Worker) -> str:
    return carry_out(given, cast("Any", worker))


class Loop:
    """The worker's loop, which comes to what it is given when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[object, Command]] = []

    def call(self, function: object, argument: Command) -> None:
        self.waiting.append((function, argument))

    def run(self) -> None:
        for function, argument in self.waiting:
            assert callable(function)
            function(argument)
        self.waiting.clear()


class Told:
    """A commander with all that it needs."""

    def __init__(self, *commands: Command) -> None:
        self.store = OpenCommands(*commands)
        self.worker = Worker()
        self.loop = Loop()
        self.pokes = 0
        self.commander = CommandRunner(
            self.store, cast("Any", self.worker), in_loop=self.loop.call, on_answer=self._poke
        )

    def _poke(self) -> None:
        self.pokes += 1


@pytest.mark.parametrize(
    ("given", "told", "outcome"),
    [
        (command(reason="r"), [("pause", "r", 2)], "paused; 2 jobs still running"),
        (command("resume"), ["resume"], "resumed"),
        (command("stop"), [("stop", False)], "stopping; 1 job may end within the grace time"),
        (command("stop_now"), [("stop", True)], "stopping; 1 job cancelled"),
        (command("stop_job", job="mine", reason="r"), [("mine", "r")], "job mine is asked to stop"),
        (command("stop_job", job="theirs"), [("theirs", None)], "it does not have job theirs"),
        (command("release_job", job="mine"), [("release", "mine")], "job mine is given back"),
        (command("release_job", job="x"), [("release", "x")], "it does not hold job x unstarted"),
        (
            command("dance"),
            [],
            "this worker does not know the command 'dance'; it may be older than the process that sent it",
        ),
    ],
)
def test_each_kind_of_command_does_what_it_says(given: Command, told: list[object], outcome: str) -> None:
    worker = Worker()
    assert carried_out(given, worker) == outcome
    assert worker.told == told


def test_resuming_a_worker_that_is_not_paused_says_so() -> None:
    worker = Worker()
    carried_out(command("resume"), worker)
    assert carried_out(command("resume"), worker) == "it was not paused"


async def test_a_command_is_carried_out_in_the_loop_and_then_reported() -> None:
    told = Told(command())
    await told.commander.attend("w1")
    assert not told.commander.answered
    assert told.worker.told == []
    told.loop.run()
    assert told.commander.answered
    assert told.pokes == 1
    await told.commander.report(told.commander.answered)
    assert told.store.outcomes == {"c1": "paused; 2 jobs still running"}
    assert not told.commander.answered


@pytest.mark.covers("commands-answered")
async def test_a_command_that_is_handed_over_again_is_not_carried_out_again() -> None:
    told = Told(command())
    await told.commander.attend("w1")
    await told.commander.attend("w1")
    told.loop.run()
    await told.commander.attend("w1")
    told.loop.run()
    assert len(told.worker.told) == 1


async def test_an_answer_that_could_not_be_stored_is_kept_for_the_next_time() -> None:
    told = Told(command(), command("resume", id_="c2"))
    await told.commander.attend("w1")
    told.loop.run()
    told.store.failing = True
    with pytest.raises(StoreUnavailable):
        await told.commander.report(told.commander.answered)
    assert told.commander.answered
    told.store.failing = False
    await told.commander.report(told.commander.answered)
    assert set(told.store.outcomes) == {"c1", "c2"}


async def test_stacks_do_not_wait_for_the_loop_and_a_command_that_fails_is_answered_too() -> None:
    told = Told(command("stacks"))
    await told.commander.attend("w1")
    assert told.loop.waiting == []
    await told.commander.report(told.commander.answered)
    assert told.store.outcomes == {"c1": "it failed: RuntimeError: too deep"}
