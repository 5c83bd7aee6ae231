"""Commands to workers: sent, taken and answered."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.model.text import clean_text
from duetime.model.worker import Command, CommandId, NewCommand, WorkerId
from duetime.stores.sql.driver import Query, Script
from duetime.stores.sql.job_control import SqlJobControl
from duetime.stores.sql.records import command_record
from duetime.stores.sql.statements.loader import Statements
from duetime.stores.sql.statements.rows import command_row, encode_batch


def send(sql: Statements, new: Sequence[NewCommand]) -> Script[list[Command]]:
    """Store commands to workers that are alive, and read back which those are."""
    yield Query(sql.send, {"rows": encode_batch(map(command_row, new))})
    return (yield from commands(sql, [command.id for command in new]))


def take_commands(sql: Statements, worker: WorkerId) -> Script[list[Command]]:
    """Hand a worker what it has not answered."""
    found = yield Query(sql.take_commands, {"worker": worker})
    # By the store's clock: ids go by those of whoever sent them.
    return sorted(map(command_record, found), key=lambda command: (command.created_at, command.id))


def finish_command(sql: Statements, command: CommandId, outcome: str) -> Script[None]:
    """Keep what came of a command."""
    yield Query(sql.finish_command, {"id": command, "outcome": clean_text(outcome)})


def commands(sql: Statements, ids: Sequence[CommandId]) -> Script[list[Command]]:
    """Read commands by id, in the order asked."""
    found = yield Query(sql.commands, {"rows": encode_batch((command_id,) for command_id in ids)})
    commands = {row[0]: command_record(row) for row in found}
    return [commands[command_id] for command_id in ids if command_id in commands]


def commands_of(sql: Statements, worker: WorkerId, *, limit: int) -> Script[list[Command]]:
    """Read what a worker was told last."""
    found = yield Query(sql.commands_of, {"worker": worker, "limit": limit})
    return [command_record(row) for row in found]


class SqlCommands(SqlJobControl):
    """A part of `SqlStore`, which has the driver and the statements."""

    async def send(self, commands: Sequence[NewCommand]) -> list[Command]:
        """Tell workers that are alive, and hint them."""
        if not commands:
            return []
        stored = await self._driver.write(lambda: send(self._sql, commands))
        self._hint_workers({command.worker for command in stored})
        return stored

    async def take_commands(self, worker: WorkerId) -> list[Command]:
        """Return what a worker was told and has not answered, oldest first."""
        return await self._driver.write(lambda: take_commands(self._sql, worker), atomic=False)

    async def finish_command(self, command: CommandId, outcome: str) -> None:
        """Record what came of a command."""
        await self._driver.write(lambda: finish_command(self._sql, command, outcome), atomic=False)

    async def commands(self, ids: Sequence[CommandId]) -> list[Command]:
        """Return the commands that exist, in the order asked."""
        return await self._driver.read(lambda: commands(self._sql, ids))

    async def commands_of(self, worker: WorkerId, *, limit: int) -> list[Command]:
        """Return what a worker was told last, newest first."""
        return await self._driver.read(lambda: commands_of(self._sql, worker, limit=limit))
