"""Help pages speak of values, not of the functions that read them."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from duetime.cli.program import main


def commands(group: click.Command, *path: str) -> Iterator[tuple[str, click.Command]]:
    yield " ".join(path) or "duetime", group
    if isinstance(group, click.Group):
        for name, command in group.commands.items():
            yield from commands(command, *path, name)


COMMANDS = dict(commands(main))


@pytest.mark.parametrize("name", COMMANDS)
def test_no_option_is_shown_with_the_name_of_the_function_that_reads_it(name: str) -> None:
    context = click.Context(COMMANDS[name])
    for parameter in COMMANDS[name].get_params(context):
        shown = parameter.make_metavar(context)
        assert not shown.startswith("READ_"), f"{parameter.name}: {shown}"


def test_all_commands_are_looked_at() -> None:
    assert {"top", "jobs list", "schedules put"} <= COMMANDS.keys()
