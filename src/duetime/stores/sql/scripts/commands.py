"""Commands: sent, taken and answered."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.model.command import Command, CommandId, NewCommand
from duetime.model.texts import clean_text
from duetime.model.worker import WorkerId
from duetime.stores.sql import records, rows
from duetime.stores.sql.driver import Query, Script
from duetime.stores.sql.loader import Statements


def send(sql: Statements, new: Sequence[NewCommand]) -> Script[list[Command]]:
    """Store commands to workers that are alive, and read back which those are."""
    yield Query(sql.send, {"rows": rows.batch(map(rows.new_command, new))})
    return (yield from commands(sql, [command.id for command in new]))


def take_commands(sql: Statements, worker: WorkerId) -> Script[list[Command]]:
    """Hand a worker what it has not answered."""
    found = yield Query(sql.take_commands, {"worker": worker})
    # By the store's clock: ids go by those of whoever sent them.
    return sorted(map(records.command, found), key=lambda command: (command.created_at, command.id))


def finish_command(sql: Statements, command: CommandId, outcome: str) -> Script[None]:
    """Keep what came of a command."""
    yield Query(sql.finish_command, {"id": command, "outcome": clean_text(outcome)})


def commands(sql: Statements, ids: Sequence[CommandId]) -> Script[list[Command]]:
    """Read commands by id, in the order asked."""
    found = yield Query(sql.commands, {"rows": rows.batch((command_id,) for command_id in ids)})
    commands = {row[0]: records.command(row) for row in found}
    return [commands[command_id] for command_id in ids if command_id in commands]


def commands_of(sql: Statements, worker: WorkerId, *, limit: int) -> Script[list[Command]]:
    """Read what a worker was told last."""
    found = yield Query(sql.commands_of, {"worker": worker, "limit": limit})
    return [records.command(row) for row in found]
