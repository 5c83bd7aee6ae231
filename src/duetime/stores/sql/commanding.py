"""The verbs of a SQL store about commands to workers."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.model.command import Command, CommandId, NewCommand
from duetime.model.worker import WorkerId
from duetime.stores.sql import scripts
from duetime.stores.sql.operations import Operations


class Commanding(Operations):
    """A part of `SqlStore`, which has the driver and the statements."""

    async def send(self, commands: Sequence[NewCommand]) -> list[Command]:
        """Tell workers that are alive, and hint them."""
        if not commands:
            return []
        stored = await self._driver.write(lambda: scripts.commands.send(self._sql, commands))
        self._hint_workers({command.worker for command in stored})
        return stored

    async def take_commands(self, worker: WorkerId) -> list[Command]:
        """Return what a worker was told and has not answered, oldest first."""
        return await self._driver.write(
            lambda: scripts.commands.take_commands(self._sql, worker), atomic=False
        )

    async def finish_command(self, command: CommandId, outcome: str) -> None:
        """Record what came of a command."""
        await self._driver.write(
            lambda: scripts.commands.finish_command(self._sql, command, outcome), atomic=False
        )

    async def commands(self, ids: Sequence[CommandId]) -> list[Command]:
        """Return the commands that exist, in the order asked."""
        return await self._driver.read(lambda: scripts.commands.commands(self._sql, ids))

    async def commands_of(self, worker: WorkerId, *, limit: int) -> list[Command]:
        """Return what a worker was told last, newest first."""
        return await self._driver.read(lambda: scripts.commands.commands_of(self._sql, worker, limit=limit))
