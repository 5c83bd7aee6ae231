"""`duetime demo`."""

from __future__ import annotations

import click


@click.command(short_help="Start an example web application.")
@click.option(
    "--port", envvar="PORT", type=int, default=10001, show_default=True, help="Also from the variable PORT."
)
def demo(*, port: int) -> None:
    """Start a web application with schedules and jobs, in four processes on one SQLite file.

    It listens on this machine only, keeps its jobs in duetime-demo.db in this folder, and prints what to try.
    Needs duetime[web].
    """
    from duetime.demo import run

    raise click.exceptions.Exit(run(port))
