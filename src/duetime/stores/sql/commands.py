"""Commands to workers: sent, taken and answered."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.model.text import clean_text
from duetime.model.worker import Command, CommandId, NewCommand, WorkerId
from duetime.stores.base import Hint
from duetime.stores.sql.driver import Query, Script
from duetime.stores.sql.records import command_record
from duetime.stores.sql.statements.rows import command_row, encode_batch
from duetime.stores.sql.verbs import HintingScript, SqlSubject, read, write


class SqlCommands(SqlSubject):
    """What workers are told through the store."""

    @write(rows=len)
    def send(self, commands: Sequence[NewCommand]) -> HintingScript[list[Command]]:
        """Store commands to workers that are alive, hint those, and read back which were stored."""
        yield Query(self._sql.send, {"rows": encode_batch(map(command_row, commands))})
        stored = yield from self._commands([command.id for command in commands])
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
