"""`duetime completion`."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

_SHELLS = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command(short_help="Print what a shell needs to complete commands.")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, /, *, shell: str) -> None:
    """Print a script that lets a shell complete commands and options.

    \b
      eval "$(duetime completion bash)"                    # in ~/.bashrc; zsh likewise
      duetime completion fish | source                     # in config.fish
    """  # noqa: D301
    program = ctx.find_root().command
    click.echo(_SHELLS[shell](program, {}, "duetime", "_DUETIME_COMPLETE").source())
