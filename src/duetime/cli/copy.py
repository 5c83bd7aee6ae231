"""`duetime copy`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from typing import TypedDict, Unpack

import click

from duetime.cli import options
from duetime.cli.database import connected
from duetime.cli.text import say, say_json, say_table
from duetime.errors import CopyRefused, NoSuchFile
from duetime.model import durations
from duetime.model.urls import redact
from duetime.model.whole import Kind
from duetime.scheduler import copying
from duetime.scheduler.copying import Copied, Place, Progress
from duetime.scheduler.who import who
from duetime.stores.open import open_store


class Named(TypedDict):
    """Which two stores."""

    source: str
    target: str
    namespace: str
    target_namespace: str | None


@click.command()
@click.argument("source")
@click.argument("target")
@click.option("--namespace", default="duetime", show_default=True, help="Which Duetime in the source.")
@click.option("--target-namespace", help="Which Duetime in the target; else called as in the source.")
@click.option("--drain", is_flag=True, help="Have the workers of the source stop first, as after a signal.")
@click.option(
    "--wait",
    type=options.duration,
    default="2m",
    show_default=True,
    metavar="DURATION",
    help="How long --drain waits for them.",
)
@options.by
@options.dry_run
@options.as_json
def copy(
    *,
    drain: bool,
    wait: timedelta,
    by: str | None,
    dry_run: bool,
    as_json: bool,
    **named: Unpack[Named],
) -> None:
    """Copy everything from one database to another of any kind, and compare both.

    Schedules, jobs in any state, tries, logs, results, queues, limits, workers that have ended, and who did what: all
    as they are, ids and times included. SOURCE and TARGET are URLs. The target must be empty, or have the beginning of
    this very copy: after an interruption, run the same command again. Of the source, nothing is changed, but it is noted
    there in the end that the work goes on in the target: no worker starts there any more, and nothing is enqueued.

    \b
      duetime copy sqlite:///jobs.db postgresql://me@db.example/app --dry-run
      duetime copy sqlite:///jobs.db postgresql://me@db.example/app --drain
    """  # noqa: D301

    async def run() -> Copied:
        async with _places(**named, make=not dry_run) as (source, target):
            jobs = sum((await source.store.counts()).values())
            if target is None or dry_run:
                with _bar(jobs) as progress:
                    return await copying.rehearse(source, target, drain=drain, progress=progress)
            patience = durations.parse(wait, what="wait") if drain else None
            with _bar(2 * jobs) as progress:
                return await copying.copy(source, target, drain=patience, who=who(by), progress=progress)

    copied = asyncio.run(run())
    if as_json:
        say_json(_values(copied, dry_run=dry_run))
    else:
        rows = [(kind, str(tally.count), tally.shown) for kind, tally in copied.tallies.items()]
        say_table(("KIND", "RECORDS", "CHECKSUM"), rows)
        say(_sentence(copied, dry_run=dry_run))
        if not dry_run:
            say(
                "workers and producers are refused on the source from now on; `duetime reopen` would let them in again"
            )


@asynccontextmanager
async def _places(
    *, source: str, target: str, namespace: str, target_namespace: str | None, make: bool
) -> AsyncGenerator[tuple[Place, Place | None], None]:
    """Open both stores; in place of a target without tables there is nothing, unless they are made."""
    there = target_namespace or namespace
    async with connected(source, namespace) as store:
        if (await store.schema_status()).found == 0:
            raise CopyRefused(
                f"{redact(source)} has nothing of {namespace!r} in it; check SOURCE and --namespace"
            )
    async with _opened(source, namespace) as first:
        new = True
        with suppress(NoSuchFile):
            async with connected(target, there, make=make) as store:
                new = (await store.schema_status()).found == 0
                if new and make:
                    await store.migrate()
        if new and not make:
            yield first, None
            return
        async with _opened(target, there) as second:
            yield first, second


@asynccontextmanager
async def _opened(url: str, namespace: str) -> AsyncGenerator[Place, None]:
    """Open a store whose tables must fit."""
    store = open_store(url, namespace=namespace, auto_migrate=False)
    await store.open()
    try:
        yield Place(store, redact(url) if namespace == "duetime" else f"{redact(url)} ({namespace})")
    finally:
        await store.close()


@contextmanager
def _bar(jobs: int) -> Generator[Progress, None, None]:
    """Show how far it is, by the jobs that were come past, where somebody looks at standard error."""
    if not sys.stderr.isatty():
        yield lambda _kind, _count: None
        return
    with click.progressbar(length=jobs, label="jobs", file=sys.stderr) as bar:
        yield lambda kind, count: bar.update(count) if kind is Kind.JOBS else None


def _sentence(copied: Copied, *, dry_run: bool) -> str:
    if dry_run:
        return "a copy was begun and would go on" if copied.resumed else "all this would be copied"
    before = " in this run, the others before" if copied.resumed else ""
    return f"source and target are the same; {copied.written} record(s) written{before}"


def _values(copied: Copied, *, dry_run: bool) -> dict[str, object]:
    kinds = {
        kind: {"records": tally.count, "checksum": tally.shown} for kind, tally in copied.tallies.items()
    }
    return {"dry_run": dry_run, "resumed": copied.resumed, "written": copied.written, "kinds": kinds}
