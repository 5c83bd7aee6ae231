"""The program `duetime`."""

from __future__ import annotations

import logging
import sys
import traceback
from typing import Any

import click

from duetime.cli.completion import completion
from duetime.cli.copy import copy
from duetime.cli.cron import cron
from duetime.cli.demo import demo
from duetime.cli.doctor import doctor
from duetime.cli.enqueue import enqueue
from duetime.cli.explain import explain
from duetime.cli.failures import ExitCode, Failure, as_failure
from duetime.cli.jobs import jobs
from duetime.cli.migrate import migrate
from duetime.cli.prune import prune
from duetime.cli.queues import queues
from duetime.cli.reopen import reopen
from duetime.cli.scheduler import scheduler
from duetime.cli.schedules import schedules
from duetime.cli.text import safe_lines
from duetime.cli.top import top
from duetime.cli.worker import worker
from duetime.cli.workers import workers
from duetime.errors import DuetimeError


class Program(click.Group):
    """A group of commands whose failures are one line each."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what the library raises ends it with a message and a code."""
        try:
            return super().invoke(ctx)
        except (DuetimeError, Failure) as error:
            if ctx.params.get("debug"):
                _say_traceback()
            raise (as_failure(error) if isinstance(error, DuetimeError) else error) from None
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


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
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


for command in (
    worker,
    workers,
    scheduler,
    schedules,
    enqueue,
    jobs,
    explain,
    top,
    queues,
    prune,
    migrate,
    copy,
    reopen,
    doctor,
    cron,
    completion,
    demo,
):
    main.add_command(command)
