"""`duetime top`."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys
from collections.abc import Generator
from datetime import timedelta

import click

from duetime.cli import options
from duetime.cli.database import client
from duetime.cli.text import say_json
from duetime.cli.view import as_values, draw, look

# The other screen of a terminal, without a cursor; the first one comes back as it was.
_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[?25h\x1b[?1049l"
_HOME = "\x1b[H"
_END_OF_LINE = "\x1b[K\n"
_BELOW = "\x1b[J"


@click.command(short_help="Watch queues, workers and jobs live.")
@options.database
@click.option("--every", type=options.duration, default="1s", show_default=True, help="How often to look.")
@click.option("--once", is_flag=True, help="Look once and end, as without a terminal.")
@options.as_json
def top(*, url: str | None, namespace: str, every: timedelta, once: bool, as_json: bool) -> None:
    """Watch queues, workers, running jobs with their progress, and what falls due next, until Ctrl-C.

    \b
      duetime top
      duetime top --once --json
    """  # noqa: D301
    live = sys.stdout.isatty() and not once and not as_json
    with _screen() if live else contextlib.nullcontext(), contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_watch(url, namespace, every=every.total_seconds() if live else None, as_json=as_json))


async def _watch(url: str | None, namespace: str, *, every: float | None, as_json: bool) -> None:
    async with client(url, namespace) as scheduler:
        while True:
            view = await look(scheduler)
            if as_json:
                say_json(as_values(view))
            elif every is None:
                click.echo("\n".join(draw(view, width=shutil.get_terminal_size().columns)))
            else:
                columns, lines = shutil.get_terminal_size()
                seen = list(draw(view, width=columns))[: lines - 1]
                click.echo(_HOME + "".join(line + _END_OF_LINE for line in seen) + _BELOW, nl=False)
            if every is None:
                return
            await asyncio.sleep(every)


@contextlib.contextmanager
def _screen() -> Generator[None]:
    click.echo(_ENTER, nl=False)
    try:
        yield
    finally:
        click.echo(_LEAVE, nl=False)
