"""Workers: registered, their leases renewed, the jobs of the dead rescued, and what they are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final, cast

import msgspec

from duetime.errors import StoreMoved
from duetime.model.job import JobId, Token
from duetime.model.outcome import CrashSuspect
from duetime.model.stored.announced import StoredTask, TaskAnnouncement
from duetime.model.stored.audit import NOTHING_NOTED, Noted
from duetime.model.stored.jobs import with_blanks
from duetime.model.text import clean_text
from duetime.model.time import Instant, Micros
from duetime.model.worker import Command, CommandId, NewCommand, WorkerId, WorkerInfo, WorkerStats
from duetime.stores.base import Hint, OrphanedJob, PeerWorker, Pulse, PulseFindings, PulseQuery, RescueResult
from duetime.stores.base.jobs import blamed_jobs
from duetime.stores.sql.driver import Query, Row, Script
from duetime.stores.sql.enqueue import note
from duetime.stores.sql.records import command_record
from duetime.stores.sql.statements.loader import Statements
from duetime.stores.sql.statements.rows import command_row, encode_batch, read_checked_claim, read_moment
from duetime.stores.sql.verbs import HintingScript, SqlSubject, read, write

_TASK_FIELDS: Final = tuple(StoredTask.__dataclass_fields__)
_DIED: Final = "the worker died before it answered"


class SqlWorkers(SqlSubject):
    """Leases, rescue and commands."""

    async def register(self, worker: WorkerInfo, *, lease: Micros) -> Instant:
        """Add a living worker and return the store's clock; raise `StoreMoved` where the work goes on elsewhere."""
        now = await self._register(worker, lease=lease)
        if not self._driver.single_writer and (moved := await self._where_moved()) is not None:
            # A copy that ended while the worker was being added has not seen it.
            await self.retire(worker.id)
            raise StoreMoved(moved)
        # Others watch its process from now on, to notice when it dies.
        self._driver.hint(Hint("workers"))
        return now

    @write()
    def _register(self, worker: WorkerInfo, *, lease: Micros) -> Script[Instant]:
        values = asdict(worker)
        values |= {"host": clean_text(worker.host), "fires": int(worker.fires), "lease": lease}
        for name in ("queues", "tasks", "declares"):
            values[name] = msgspec.json.encode(values[name]).decode()
        [(now, moved)] = yield Query(self._sql.register, values)
        if moved is not None:
            raise StoreMoved(moved)
        return cast("Instant", now)

    @read()
    def _where_moved(self) -> Script[str | None]:
        [(_, moved)] = yield Query(self._sql.schema_version, {})
        return cast("str | None", moved)

    @write(atomic=False)
    def pulse(
        self, worker: WorkerId, stats: WorkerStats, *, lease: Micros, wants: PulseQuery | None = None
    ) -> Script[Pulse]:
        """Renew the lease of a living worker, look around, and tell what it holds: in one statement if it is nothing."""
        asked = wants or PulseQuery()
        values = asdict(stats) | {
            "worker": worker,
            "lease": lease,
            "last_error": None if stats.last_error is None else clean_text(stats.last_error),
            "queues": encode_batch((queue,) for queue in asked.queues),
            "tasks": encode_batch((task,) for task in asked.tasks),
            "schedules": int(asked.schedules),
            "orphans": int(asked.orphans),
        }
        renewed = yield Query(self._sql.pulse, values)
        if not renewed:
            [(now,)] = yield Query(self._sql.clock, {})
            return Pulse(alive=False, now=now)
        now, watched, commands, limited, workers, newest, lease_ends, holds, *seen, orphans = renewed[0]
        held = (yield Query(self._sql.held_by, {"worker": worker})) if holds else []
        due_at, fires_at, resumes_at = map(read_moment, seen)
        return Pulse(
            alive=True,
            now=now,
            **_held(held),
            commands=bool(commands),
            limited=bool(limited),
            watched_until=read_moment(watched),
            workers=workers,
            newest=read_moment(newest) or 0,
            lease_ends=read_moment(lease_ends),
            sight=None if wants is None else PulseFindings(due_at, fires_at, resumes_at, bool(orphans)),
        )

    @read()
    def attend(self, worker: WorkerId) -> Script[Pulse]:
        """Answer as `pulse` does without renewing anything."""
        [(now, alive, commands, watched)] = yield Query(self._sql.is_alive, {"worker": worker})
        if not alive:
            return Pulse(alive=False, now=now)
        held = yield Query(self._sql.held_by, {"worker": worker})
        until = read_moment(watched)
        return Pulse(alive=True, now=now, **_held(held), commands=bool(commands), watched_until=until)

    @write()
    def retire(self, worker: WorkerId) -> Script[None]:
        """Mark a worker as stopped and drop the commands that it has not answered."""
        yield Query(self._sql.retire, {"worker": worker})
        yield from _drop_commands(self._sql, [(worker,)], "the worker stopped before it answered")

    @read()
    def peers(self, worker: WorkerId, host_key: str | None, *, soon: Micros) -> Script[list[PeerWorker]]:
        """Return the other living workers on the same host, and those elsewhere whose lease ends within `soon`."""
        found = yield Query(self._sql.peers, {"worker": worker, "host_key": host_key, "soon": soon})
        return [PeerWorker(id_, pid, started, bool(near), left) for id_, pid, started, near, left in found]

    @write(rows=len)
    def bury(self, workers: Sequence[WorkerId]) -> Script[list[WorkerId]]:
        """Mark workers as dead, drop their commands, and return those that were alive until now."""
        buried = yield Query(self._sql.bury, {"rows": encode_batch((worker,) for worker in workers)})
        return (yield from _drop_commands(self._sql, buried))

    async def rescue(self, worker: WorkerId, claim_id: str) -> RescueResult:
        """Mark workers dead whose lease is over and take over the jobs of all that are not alive."""
        return await self._rescue(worker, claim_id) if await self._forsaken() else RescueResult([], [])

    @read()
    def _forsaken(self) -> Script[bool]:
        found = yield Query(self._sql.forsaken, {})
        return bool(found[0][0])

    @write(rows=None)
    def _rescue(self, worker: WorkerId, claim_id: str) -> Script[RescueResult]:
        dead = yield from _drop_commands(self._sql, (yield Query(self._sql.expire, {})))
        orphans = yield Query(self._sql.orphans, {})
        if not orphans:
            return RescueResult(dead, [])
        before = {row[0]: row for row in orphans}
        # Judged over all rows of a dead worker, also when another rescuer gets some of them.
        blamed = blamed_jobs(
            (worker, with_blanks(CrashSuspect(job_id, crashes)))
            for job_id, _, worker, started_at, crashes, is_due in orphans
            if worker is not None and (started_at is not None or is_due)
        )
        values = {"worker": worker, "claim_id": claim_id, "rows": encode_batch(row[:2] for row in orphans)}
        adopted = yield Query(self._sql.adopt, values)
        return RescueResult(dead, [_orphan(row, before[row[0]], blamed) for row in adopted])

    @write(rows=len)
    def announce(self, tasks: Sequence[TaskAnnouncement]) -> Script[None]:
        """Store tasks in place of those of the same names; in one order, so that workers do not wait for each other in a circle."""
        listed = sorted(tasks, key=lambda task: task.name)
        values = ((task.name, task.queue, task.options, task.schema) for task in listed)
        yield Query(self._sql.announce, {"rows": encode_batch(values)})

    @read(rows=None)
    def announced(self, names: Sequence[str] | None = None) -> Script[list[StoredTask]]:
        """Return announced tasks by name, all or those of these names."""
        if names is None:
            found = yield Query(self._sql.announced, {})
        else:
            found = yield Query(self._sql.announced_of, {"rows": encode_batch((name,) for name in names)})
        return [StoredTask(**dict(zip(_TASK_FIELDS, row, strict=True))) for row in found]

    @write(rows=len)
    def send(
        self, commands: Sequence[NewCommand], *, noted: Noted = NOTHING_NOTED
    ) -> HintingScript[list[Command]]:
        """Store commands to workers that are alive, hint those, and read back which were stored."""
        yield Query(self._sql.send, {"rows": encode_batch(map(command_row, commands))})
        stored = yield from self._commands([command.id for command in commands])
        yield from note(self._sql, [noted.get(command.id) for command in stored])
        for worker in {command.worker for command in stored}:
            yield Hint("worker", worker)
        return stored

    @write(atomic=False)
    def take_commands(self, worker: WorkerId) -> HintingScript[list[Command]]:
        """Return what a worker was told and has not answered, oldest first."""
        found = yield Query(self._sql.take_commands, {"worker": worker})
        # By the store's clock: ids go by the clocks of those who sent them.
        return sorted(map(command_record, found), key=lambda command: (command.created_at, command.id))

    @write(atomic=False)
    def finish_command(self, command: CommandId, outcome: str) -> HintingScript[None]:
        """Record what came of a command."""
        yield Query(self._sql.finish_command, {"id": command, "outcome": clean_text(outcome)})

    @read(rows=len)
    def commands(self, ids: Sequence[CommandId]) -> Script[list[Command]]:
        """Return the commands that exist, in the order asked."""
        return (yield from self._commands(ids))

    @read()
    def commands_of(self, worker: WorkerId, *, limit: int) -> Script[list[Command]]:
        """Return what a worker was told last, newest first."""
        found = yield Query(self._sql.commands_of, {"worker": worker, "limit": limit})
        return [command_record(row) for row in found]

    def _commands(self, ids: Sequence[CommandId]) -> Script[list[Command]]:
        found = yield Query(self._sql.commands, {"rows": encode_batch((command_id,) for command_id in ids)})
        commands = {row[0]: command_record(row) for row in found}
        return [commands[command_id] for command_id in ids if command_id in commands]


def _drop_commands(sql: Statements, gone: Sequence[Row], reason: str = _DIED) -> Script[list[WorkerId]]:
    """Drop what workers that are gone were told, and return those."""
    if gone:
        yield Query(sql.drop_commands, {"rows": encode_batch(row[:1] for row in gone), "reason": reason})
    return [row[0] for row in gone]


def _held(rows: Sequence[Row]) -> dict[str, Any]:
    """Return what a pulse tells of the claims of a worker."""
    cancelling = frozenset(row[0] for row in rows if row[3])
    return {"held": frozenset(Token(*row[:3]) for row in rows), "cancelling": cancelling}


def _orphan(row: Row, before: Row, blamed: frozenset[JobId]) -> OrphanedJob:
    job_id, _, worker, started_at, _, is_due = before
    claim = read_checked_claim(row)
    return with_blanks(OrphanedJob(claim, worker or "", started_at, job_id in blamed, bool(is_due)))
