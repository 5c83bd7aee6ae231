"""The program `duetime`: its commands, and how their errors are shown."""

from __future__ import annotations

import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

from duetime.cli.audit import audit
from duetime.cli.command import json_option, option
from duetime.cli.database import copy, doctor, migrate, prune, reopen, uninstall
from duetime.cli.jobs import enqueue, explain, jobs
from duetime.cli.locks import locks
from duetime.cli.output import Answer, CommandFailure, ExitCode, exit_code_of, safe_lines, table_lines
from duetime.cli.queues import queues
from duetime.cli.schedules import schedules, upcoming_values
from duetime.cli.stats import stats
from duetime.cli.tasks import tasks
from duetime.cli.tokens import api, tokens
from duetime.cli.top import top
from duetime.cli.workers import scheduler, worker, workers
from duetime.errors import DuetimeError
from duetime.model.time import from_datetime
from duetime.model.triggers.cron import Cron, cron as read_cron
from duetime.model.triggers.preview import Upcoming, preview

_MOST_TIMES = 1_000
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
    click.echo(_SHELLS[shell](ctx.find_root().command, {}, "duetime", "_DUETIME_COMPLETE").source())


@click.command(short_help="Start an example web application.")
@click.option("--port", envvar="PORT", type=int, default=10001, help="Also from the variable PORT.")
def demo(*, port: int) -> None:
    """Start a web application with schedules and jobs, in four processes on one SQLite file.

    It listens on this machine only, keeps its jobs in duetime-demo.db in this folder, and prints what to try.
    Needs duetime[web].
    """
    from duetime.demo import run

    raise click.exceptions.Exit(run(port))


@click.command(short_help="Say a cron expression in words and list its next times.")
@click.argument("expression")
@click.option("--tz", default="UTC", help="The zone of its times, by IANA name.")
@click.option("--count", default=10, type=click.IntRange(1, _MOST_TIMES), help="How many times.")
@option("--after", "MOMENT", "List what comes after this; else from now on.")
@click.option("--name", default="", show_default=False, help="The schedule's name, from which H is drawn.")
@json_option
def cron(*, expression: str, tz: str, count: int, after: datetime | None, name: str, as_json: bool) -> None:
    """Say a cron expression in words and list its next times, with a note where the clock changes.

    It needs no database.

    \b
      duetime cron "*/5 9-17 * * MON-FRI" --tz Europe/Riga
      duetime cron "30 2 * * *" --tz Europe/Berlin --after 2026-03-28T00:00:00Z --count 3
      duetime cron "H 3 * * *" --name nightly
    """  # noqa: D301
    rule = read_cron(expression, tz=tz, seed=name)
    moment = datetime.now(UTC).replace(microsecond=0) if after is None else after
    is_unnamed = isinstance(rule, Cron) and rule.is_unnamed
    found = [] if is_unnamed else preview(rule, after=from_datetime(moment, what="--after"), count=count)
    times = table_lines(("LOCAL", "UTC", "NOTE"), (_time_row(one) for one in found))
    upcoming = [upcoming_values(one) for one in found]
    values = {"expression": expression, "tz": rule.tz, "text": rule.describe(), "upcoming": upcoming}
    below = ["give the name with --name to see its times"] if is_unnamed else ["", *times]
    Answer(values=values, lines=(rule.describe(), *below)).print(as_json=as_json)


def _time_row(one: Upcoming) -> tuple[str, ...]:
    utc = one.at.replace(tzinfo=None)
    return f"{one.local:%a} {one.local.isoformat(' ')}", utc.isoformat(" "), one.note or ""


class Program(click.Group):
    """A group of commands whose failures are one line each."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what the library raises ends it with a message and a code."""
        try:
            return super().invoke(ctx)
        except (DuetimeError, CommandFailure) as error:
            if ctx.params.get("debug"):
                _say_traceback()
            if isinstance(error, CommandFailure):
                raise
            raise CommandFailure(str(error), exit_code_of(error)) from None
        except click.ClickException as error:
            # Of the command line itself: it repeats words, and one of them may be a URL.
            vars(error)["message"] = safe_lines(error.message)
            raise

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program; an unexpected error is shown as safely as the others."""
        try:
            return super().main(*args, **kwargs)
        except Exception:  # noqa: BLE001 -- it ends the program
            _say_traceback()
            sys.exit(ExitCode.FAILURE)


def _say_traceback() -> None:
    click.echo(safe_lines(traceback.format_exc()), err=True)


_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}


@click.group(cls=Program, context_settings=_SETTINGS)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="duetime", prog_name="duetime", message="%(prog)s %(version)s")
def main(*, debug: bool) -> None:
    """Run Python functions when they are due, from a queue in your database.

    Given a file jobs.py with `scheduler = Scheduler()` and a task `send_email`:

    \b
      duetime worker jobs:scheduler                       run what is due, until stopped
      duetime enqueue jobs:scheduler jobs.send_email user_id=1 message=hi --delay 10s
      duetime jobs list                                   see what became of it
      duetime demo                                        try all this without writing anything

    \b
    The database is that of the scheduler, or for commands without MODULE:OBJECT:
      --url, else $DUETIME_URL, else sqlite:///duetime.db in this folder.

    \b
    Exit codes:
      0  done
      1  it failed, or something was found wrong
      2  the command, a name or a value is not right
      3  there is no such job, schedule, task or worker
      4  the database cannot be reached or used
    """  # noqa: D301 - \b is click's own mark for text that keeps its lines
    del debug  # Read by `Program`.
    # Warnings about the database belong to those who stay: a worker logs them, `doctor` explains them.
    logging.getLogger("duetime").addHandler(logging.NullHandler())


_ON_JOBS = (
    worker,
    workers,
    scheduler,
    schedules,
    enqueue,
    jobs,
    explain,
    top,
    queues,
    locks,
    tasks,
    stats,
    audit,
    tokens,
    api,
)
_ON_DATABASES = (prune, migrate, copy, reopen, uninstall, doctor)

for command in (*_ON_JOBS, *_ON_DATABASES, cron, completion, demo):
    main.add_command(command)
