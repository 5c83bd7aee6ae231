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


@pytest.mark.parametrize("name", [name for name, one in COMMANDS.items() if isinstance(one, click.Group)])
def test_no_command_is_listed_with_half_a_sentence(name: str) -> None:
    group = COMMANDS[name]
    assert isinstance(group, click.Group)
    room = 78 - 6 - max(map(len, group.commands))  # On a terminal of 80 columns.
    cut = [one.name for one in group.commands.values() if one.get_short_help_str(room).endswith("...")]
    assert cut == [], "give them a short_help"


def test_all_commands_are_looked_at() -> None:
    assert {"top", "jobs list", "schedules put"} <= COMMANDS.keys()
