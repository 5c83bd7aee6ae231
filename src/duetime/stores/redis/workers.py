"""Workers: registration, heartbeats, the rescue of what dead ones had, and commands to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Final

from duetime.errors import StoreMoved
from duetime.model.job import Token
from duetime.model.outcome import CrashSuspect
from duetime.model.stored.announced import StoredTask, TaskAnnouncement
from duetime.model.stored.audit import NOTHING_NOTED, Noted
from duetime.model.text import clean_text
from duetime.model.time import Instant, Micros
from duetime.model.worker import Command, CommandId, NewCommand, WorkerId, WorkerInfo, WorkerStats
from duetime.stores.base import Hint, OrphanedJob, PeerWorker, Pulse, PulseFindings, PulseQuery, RescueResult
from duetime.stores.base.jobs import blamed_jobs
from duetime.stores.redis.connection import RedisStorePart
from duetime.stores.redis.messages import (
    ServerAnswer,
    command_fields,
    noted_fields,
    read_record,
    worker_fields,
)
from duetime.stores.redis.runs import read_rescued_jobs

_RESCUED_PER_CALL: Final = 1_000
"""How many jobs one call takes over, if no dead worker had more."""
_RECONSIDERED_PER_CALL: Final = 100
"""How many jobs one call looks at that could not be read before."""


class RedisWorkers(RedisStorePart):
    """A part of `RedisStore`."""

    async def register(self, worker: WorkerInfo, *, lease: Micros) -> Instant:
        """Add a living worker and return the store's clock; raises `StoreMoved` where the work goes on elsewhere."""
        request = {"worker": worker_fields(worker), "lease": lease}
        # Others watch its process from now on, to be there when it dies.
        answer = await self._calls.write("register", request, hints=[Hint("workers")])
        if "moved" in answer.facts:
            raise StoreMoved(answer.facts["moved"])
        return answer.now

    async def pulse(
        self, worker: WorkerId, stats: WorkerStats, *, lease: Micros, wants: PulseQuery | None = None
    ) -> Pulse:
        """Renew the lease of a living worker and look around on the way; a dead one stays dead."""
        said = {name: value for name, value in asdict(stats).items() if value is not None}
        request = {"worker": worker, "lease": lease, "stats": said, "wants": wants and asdict(wants)}
        pulse = _read_pulse(answer := await self._calls.write("pulse", request))
        if wants is None:
            return pulse
        due_at, fires_at, resumes_at = map(answer.facts.get, ("due_at", "fires_at", "resumes_at"))
        orphans = answer.facts.get("orphans", False)
        return replace(pulse, sight=PulseFindings(due_at, fires_at, resumes_at, orphans))

    async def attend(self, worker: WorkerId) -> Pulse:
        """Answer as `pulse` does without renewing anything."""
        return _read_pulse(await self._calls.read("attend", {"worker": worker}))

    async def retire(self, worker: WorkerId) -> None:
        """Mark a worker as stopped."""
        await self._calls.write("retire", {"worker": worker})

    async def peers(self, worker: WorkerId, host_key: str | None, *, soon: Micros) -> list[PeerWorker]:
        """Return the other living workers on the same host, and those elsewhere whose lease ends within `soon`."""
        request = {"worker": worker, "host_key": host_key, "soon": soon}
        return [PeerWorker(*row) for row in (await self._calls.read("peers", request)).rows]

    async def bury(self, workers: Sequence[WorkerId]) -> list[WorkerId]:
        """Mark living workers as dead and return those that were alive until now."""
        if not workers:
            return []
        facts, _ = await self._calls.write("bury", {"workers": workers})
        return list(facts["dead"])

    async def rescue(self, worker: WorkerId, claim_id: str) -> RescueResult:
        """Mark workers dead whose lease is over and take over the jobs of all that are not alive."""
        found, _ = await self._calls.read("forsaken")
        if found["aside"]:
            await self._calls.write("reconsider", {"most": _RECONSIDERED_PER_CALL})
        request = {"worker": worker, "claim_id": claim_id, "most": _RESCUED_PER_CALL}
        dead: list[WorkerId] = []
        adopted: list[OrphanedJob] = []
        more: bool = found["orphans"]
        while more:
            answer = await self._calls.write("rescue", request)
            dead += answer.facts["dead"]
            adopted += read_rescued_jobs(answer)
            more = answer.facts["more"]
        blamed = blamed_jobs(
            (job.worker, CrashSuspect(job.claim.job_id, job.claim.crashes))
            for job in adopted
            if job.worker and (job.started_at is not None or job.suspected)
        )
        return RescueResult(dead, [job._replace(blamed=job.claim.job_id in blamed) for job in adopted])

    async def announce(self, tasks: Sequence[TaskAnnouncement]) -> None:
        """Store tasks in place of those of the same names."""
        if tasks:
            await self._calls.write("announce", {"tasks": [asdict(task) for task in tasks]})

    async def announced(self, names: Sequence[str] | None = None) -> list[StoredTask]:
        """Return announced tasks by name, all or those of these names."""
        _, found = await self._calls.read("announced", {"names": names})
        return [read_record(StoredTask, row) for row in found]

    async def send(self, commands: Sequence[NewCommand], *, noted: Noted = NOTHING_NOTED) -> list[Command]:
        """Tell workers that are alive, and hint them."""
        if not commands:
            return []
        said = noted_fields(noted, [command.id for command in commands])
        request = {"commands": [command_fields(command) for command in commands], "noted": said}
        _, found = await self._calls.write("send", request)
        stored = [read_record(Command, row) for row in found]
        for worker in {command.worker for command in stored}:
            self._calls.subscribers.notify(Hint("worker", worker))
        return stored

    async def take_commands(self, worker: WorkerId) -> list[Command]:
        """Return what a worker was told and has not answered, oldest first."""
        _, found = await self._calls.write("take_commands", {"worker": worker})
        return [read_record(Command, row) for row in found]

    async def finish_command(self, command: CommandId, outcome: str) -> None:
        """Record what came of a command."""
        await self._calls.write("finish_command", {"id": command, "outcome": clean_text(outcome)})

    async def commands(self, ids: Sequence[CommandId]) -> list[Command]:
        """Return the commands that exist, in the order asked."""
        return [read_record(Command, row) for row in (await self._calls.read("commands", {"ids": ids})).rows]

    async def commands_of(self, worker: WorkerId, *, limit: int) -> list[Command]:
        """Return what a worker was told last, newest first."""
        _, found = await self._calls.read("commands_of", {"worker": worker, "limit": limit})
        return [read_record(Command, row) for row in found]


def _read_pulse(answer: ServerAnswer) -> Pulse:
    facts, held = answer
    if not facts["alive"]:
        return Pulse(alive=False, now=answer.now)
    return Pulse(
        alive=True,
        now=answer.now,
        held=frozenset(Token(*row[:3]) for row in held),
        cancelling=frozenset(row[0] for row in held if row[3] is not None),
        commands=facts["commands"],
        limited=facts.get("limited", False),
        watched_until=facts.get("watched_until"),
        workers=facts.get("workers", 0),
        newest=facts.get("newest", 0),
        lease_ends=facts.get("lease_ends"),
    )
