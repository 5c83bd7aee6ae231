"""The verbs of a Redis store about commands to workers."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.model.command import Command, CommandId, NewCommand
from duetime.model.texts import clean_text
from duetime.model.worker import WorkerId
from duetime.stores.base import Hint
from duetime.stores.redis import rows
from duetime.stores.redis.part import Part
from duetime.stores.redis.rows import FACTS


class Commanding(Part):
    """A part of `RedisStore`."""

    async def send(self, commands: Sequence[NewCommand]) -> list[Command]:
        """Tell workers that are alive, and hint them."""
        if not commands:
            return []
        request = {"commands": [rows.new_command(command) for command in commands]}
        _, found = await self._calls.write("send", FACTS, request)
        stored = [rows.command(row) for row in found]
        for worker in {command.worker for command in stored}:
            self._calls.subscribers.notify(Hint("worker", worker))
        return stored

    async def take_commands(self, worker: WorkerId) -> list[Command]:
        """Return what a worker was told and has not answered, oldest first."""
        _, found = await self._calls.write("take_commands", FACTS, {"worker": worker})
        return [rows.command(row) for row in found]

    async def finish_command(self, command: CommandId, outcome: str) -> None:
        """Record what came of a command."""
        await self._calls.write("finish_command", FACTS, {"id": command, "outcome": clean_text(outcome)})

    async def commands(self, ids: Sequence[CommandId]) -> list[Command]:
        """Return the commands that exist, in the order asked."""
        _, found = await self._calls.read("commands", FACTS, {"ids": ids})
        return [rows.command(row) for row in found]

    async def commands_of(self, worker: WorkerId, *, limit: int) -> list[Command]:
        """Return what a worker was told last, newest first."""
        _, found = await self._calls.read("commands_of", FACTS, {"worker": worker, "limit": limit})
        return [rows.command(row) for row in found]
