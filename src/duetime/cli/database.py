"""Commands about the database itself: `duetime migrate`, `doctor`, `prune`, `copy`, `reopen` and `uninstall`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from typing import Any

import click

from duetime.cli.command import (
    PendingAnswer,
    answer_command,
    by_option,
    client_command,
    connected_store,
    database_options,
    dry_run_option,
    option,
)
from duetime.cli.output import Answer, CommandFailure, ExitCode, check_interactive, confirm, say, table_lines
from duetime.errors import CopyRefused, NoSuchFile, StoreError, StoreMoved
from duetime.model.retention import DEFAULT_KEEP_PER_SCHEDULE
from duetime.model.stored.copy import RecordKind
from duetime.model.stored.jobs import LiveWorkers
from duetime.model.text import counted, short_list
from duetime.model.time import parse_duration
from duetime.model.urls import redact, redact_text, scheme_of
from duetime.scheduler.audit import actor_name
from duetime.scheduler.explanations import check_queues, check_schedules
from duetime.scheduler.scheduler import DEFAULT_URL, Scheduler
from duetime.scheduler.transfer.store_copy import (
    CopyProgress,
    CopyReport,
    NamedStore,
    copy_store,
    rehearse_copy,
)
from duetime.stores.base import DoctorCheck, SchemaStatus, Store

_MOST_NAMED = 3
"""How many workers are named."""
_CHECK_HELP = "Change nothing; exit with 1 if something is missing, with 4 if there is no database."


@click.command()
@database_options
@click.option("--sql", is_flag=True, help="Print the statements that are missing and change nothing.")
@click.option("--check", is_flag=True, help=_CHECK_HELP)
@answer_command
async def migrate(*, url: str | None, namespace: str, sql: bool, check: bool) -> Answer:
    """Create or update the tables.

    Any number of processes may do this at once, and a scheduler does it by itself when it opens, unless it was
    made with auto_migrate=False.

    \b
      duetime migrate --url postgresql://me@db.example/app
      duetime migrate --sql > step.sql          for someone else to apply
      duetime migrate --check                   in a deployment, before the new code starts
    """  # noqa: D301
    if sql and check:
        raise click.UsageError("give either --sql or --check, not both")
    apply = not sql and not check
    async with connected_store(url, namespace, make=apply) as store:
        status, missing_sql = await store.schema_status(), await store.pending_sql()
        if apply and status.pending:
            await store.migrate()
    values: dict[str, object] = {"found": status.found, "wanted": status.wanted}
    values |= {"missing": list(status.pending), "applied": apply and bool(status.pending)}
    # Tables that are newer than the code fit as little as older ones.
    unfit = (check and status.found != status.wanted) or status.found > status.wanted
    return Answer(
        values=values | {"sql": missing_sql} if sql else values,
        lines=missing_sql.splitlines() if sql else [_migrate_sentence(status, check=check)],
        code=ExitCode.FAILURE if unfit else ExitCode.OK,
    )


def _migrate_sentence(status: SchemaStatus, *, check: bool) -> str:
    found, wanted = status.found, status.wanted
    if found > wanted:
        return f"the tables are version {found}, this code knows up to {wanted}: upgrade duetime"
    if not status.pending:
        return f"the tables are up to date, version {found}"
    steps = ", ".join(status.pending)
    return f"missing: {steps}; run `duetime migrate`" if check else f"applied: {steps}"


@click.command(short_help="Look for weak settings and schedules that no worker fires.")
@click.argument("database", metavar="[URL]", required=False)
@database_options
@answer_command
async def doctor(*, database: str | None, url: str | None, namespace: str) -> Answer:
    """Look for settings of the database that weaken a promise and for schedules that no worker fires, and say how to mend them.

    \b
      duetime doctor postgresql://me@db.example/app
      duetime doctor --json
    """  # noqa: D301
    code = ExitCode.FAILURE
    try:
        async with connected_store(database or url, namespace) as store:
            checks, status = await store.doctor(), await store.schema_status()
            if status.moved is not None:
                checks.append(DoctorCheck.refused("moved", StoreMoved(status.moved)))
            elif status.found == status.wanted:  # Tables of another version are not looked into.
                checks += [await check_schedules(store), await check_queues(store)]
    except StoreError as error:
        checks, code = [DoctorCheck.refused("database", error)], ExitCode.DATABASE
    return Answer(
        values=[_check_values(check) for check in checks],
        lines=table_lines(("CHECK", "STATE", "FINDING"), (_check_row(check) for check in checks)),
        code=ExitCode.OK if all(check.ok for check in checks) else code,
    )


def _check_values(check: DoctorCheck) -> dict[str, object]:
    fix = None if check.fix is None else redact_text(check.fix)
    return {"name": check.name, "ok": check.ok, "detail": redact_text(check.detail), "fix": fix}


def _check_row(check: DoctorCheck) -> tuple[str, str, str]:
    finding = check.detail if check.ok or check.fix is None else f"{check.detail}. Fix: {check.fix}"
    return check.name, "ok" if check.ok else "FAILED", redact_text(finding)


@click.command(short_help="Remove the records of old jobs.")
@client_command
@option("--older-than", "DURATION", "How long ago they must have ended, such as 30d.", required=True)
@click.option(
    "--keep-per-schedule",
    default=DEFAULT_KEEP_PER_SCHEDULE,
    help="How many of the latest jobs of each schedule stay in any case.",
)
@click.option("--dry-run", is_flag=True, help="Only count what would go.")
async def prune(
    scheduler: Scheduler, *, older_than: timedelta, keep_per_schedule: int, dry_run: bool
) -> Answer:
    """Remove the records of jobs that ended long ago, and say how many there were.

    Workers do the same by themselves after 30 days, unless told otherwise. What has not ended is never removed.

    \b
      duetime prune --older-than 30d --dry-run
      duetime prune --older-than 12h
    """  # noqa: D301
    count = await scheduler.prune(older_than=older_than, keep_per_schedule=keep_per_schedule, dry_run=dry_run)
    line = f"{'would remove' if dry_run else 'removed'} {counted(count, 'job')}"
    return Answer(values={"jobs": count, "dry_run": dry_run}, lines=[line])


@click.command(short_help="Copy everything from one database to another.")
@click.argument("source")
@click.argument("target")
@click.option("--namespace", default="duetime", help="Which Duetime, if the source has several.")
@click.option("--target-namespace", help="Which Duetime in the target; else the same as in the source.")
@click.option("--drain", is_flag=True, help="Have the workers of the source stop first, as after a signal.")
@option("--wait", "DURATION", "How long --drain waits for them.", default="2m")
@by_option
@dry_run_option
@answer_command
async def copy(*, drain: bool, wait: timedelta, by: str | None, dry_run: bool, **named: Any) -> Answer:
    """Copy everything from one database to another of any kind, and compare both.

    Schedules, jobs in any state, tries, logs, results, queues, limits, workers that have ended, and who did what: all
    as they are, ids and times included. SOURCE and TARGET are URLs. The target must be empty, or have the beginning of
    this very copy: after an interruption, run the same command again. The source is left as it is, except for a note at
    the end that the work goes on in the target: after that, no worker starts there and nothing can be enqueued.

    \b
      duetime copy sqlite:///jobs.db postgresql://me@db.example/app --dry-run
      duetime copy sqlite:///jobs.db postgresql://me@db.example/app --drain
    """  # noqa: D301
    async with _open_both(**named, make=not dry_run) as (source, target):
        jobs = sum((await source.store.counts()).values())
        if target is None or dry_run:
            with _progress_bar(jobs) as progress:
                copied = await rehearse_copy(source, target, drain=drain, progress=progress)
        else:
            limit = parse_duration(wait, what="wait") if drain else None
            with _progress_bar(2 * jobs) as progress:
                copied = await copy_store(source, target, drain=limit, who=actor_name(by), progress=progress)
    kinds = {kind: {"records": it.count, "checksum": it.shown} for kind, it in copied.tallies.items()}
    rows = [(kind, str(tally.count), tally.shown) for kind, tally in copied.tallies.items()]
    return Answer(
        values={"dry_run": dry_run, "resumed": copied.resumed, "written": copied.written, "kinds": kinds},
        lines=[*table_lines(("KIND", "RECORDS", "CHECKSUM"), rows), *_copy_lines(copied, dry_run=dry_run)],
    )


@asynccontextmanager
async def _open_both(
    *, source: str, target: str, namespace: str, target_namespace: str | None, make: bool
) -> AsyncGenerator[tuple[NamedStore, NamedStore | None]]:
    """Open both stores; in place of a target without tables there is nothing, unless they are made."""
    # An empty one, as of a variable that is not set, must not stand for the default.
    for url in (source, target):
        scheme_of(url)
    there = target_namespace or namespace
    async with connected_store(source, namespace) as store:
        if (await store.schema_status()).found == 0:
            raise CopyRefused(
                f"{redact(source)} has nothing of {namespace!r} in it; check SOURCE and --namespace"
            )
    async with connected_store(source, namespace, check=True) as first:
        new = True
        with suppress(NoSuchFile):
            async with connected_store(target, there, make=make) as store:
                new = (await store.schema_status()).found == 0
                if new and make:
                    await store.migrate()
        if new and not make:
            yield _named(first, source, namespace), None
            return
        async with connected_store(target, there, check=True) as second:
            yield _named(first, source, namespace), _named(second, target, there)


def _named(store: Store, url: str, namespace: str) -> NamedStore:
    return NamedStore(store, redact(url) if namespace == "duetime" else f"{redact(url)} ({namespace})")


@contextmanager
def _progress_bar(jobs: int) -> Generator[CopyProgress]:
    """Show on a terminal, in jobs, how far the copy is."""
    if not sys.stderr.isatty():
        yield lambda _kind, _count: None
        return
    with click.progressbar(length=jobs, label="jobs", file=sys.stderr) as bar:
        yield lambda kind, count: bar.update(count) if kind is RecordKind.JOBS else None


def _copy_lines(copied: CopyReport, *, dry_run: bool) -> Iterator[str]:
    if dry_run:
        yield "a copy was begun and would go on" if copied.resumed else "all this would be copied"
        return
    before = " in this run, the others before" if copied.resumed else ""
    yield f"source and target are the same; {counted(copied.written, 'record')} written{before}"
    yield "workers and producers are refused on the source from now on; `duetime reopen` would let them in again"


@click.command(short_help="Work again on a database that was copied elsewhere.")
@click.argument("database", metavar="[URL]", required=False)
@database_options
@answer_command
async def reopen(*, database: str | None, url: str | None, namespace: str) -> Answer:
    """Let workers and producers in again after `duetime copy` from this database.

    What waited when it was copied waits in both places, and runs in both if workers run in both. Processes that were
    refused before must be started again.

    \b
      duetime reopen sqlite:///jobs.db
    """  # noqa: D301
    async with connected_store(database or url, namespace) as store:
        moved = (await store.schema_status()).moved
        if moved is not None:
            await store.set_moved(None)
    line = "nothing has kept workers off it" if moved is None else f"open again, though {moved}"
    return Answer(values={"reopened": moved is not None, "moved": moved}, lines=[line])


@click.command(short_help="Remove everything of Duetime from a database.")
@click.argument("database", metavar="[URL]", required=False)
@database_options
@click.option("--force", is_flag=True, help="Also while workers are alive.")
@click.option("--yes", is_flag=True, help="Do it without asking.")
@dry_run_option
@answer_command
def uninstall(
    *, database: str | None, url: str | None, namespace: str, force: bool, yes: bool, dry_run: bool
) -> PendingAnswer:
    """Remove all tables of Duetime from a database, or all its keys, with all jobs and schedules in them.

    Nothing else in the database is touched. On a terminal it is said what would go, and the namespace is asked for;
    elsewhere --yes is needed. While workers are alive it is refused. Stop whatever else uses Duetime there as well: what
    starts after this makes new tables.

    \b
      duetime uninstall --dry-run
      duetime uninstall postgresql://me@db.example/app --namespace billing
    """  # noqa: D301
    where = (url or DEFAULT_URL) if database is None else database
    # An empty one, as of a variable that is not set, must not stand for the default.
    scheme_of(where)
    look_first, refuse = not (yes or dry_run), not (force or dry_run)
    if look_first:
        check_interactive()
        for line in asyncio.run(_uninstall(where, namespace, refuse=refuse, dry_run=True)).lines:
            say(line, err=True)
        confirm(namespace, what="namespace", done="removed")
    return _uninstall(where, namespace, refuse=refuse, dry_run=dry_run)


async def _uninstall(url: str, namespace: str, *, refuse: bool, dry_run: bool) -> Answer:
    """Remove everything, or only tell what there is; `refuse` to while workers are alive."""
    async with connected_store(url, namespace) as store:
        known = await store.workers() if refuse and (await store.schema_status()).found else ()
        if alive := LiveWorkers.of(known).alive:
            named = short_list([f"{worker.id} on {worker.host}" for worker in alive], most=_MOST_NAMED)
            text = f"{counted(len(alive), 'worker')} alive: {named}; stop what runs them, or say --force"
            raise CommandFailure(text, ExitCode.FAILURE)
        gone = await store.uninstall(dry_run=dry_run)
    place = f"{namespace!r} in {redact(url)}"
    verb = "this is what there is of" if dry_run else "removed all of"
    listed = table_lines(("NAME", "COUNT"), ((name, f"{count:,}") for name, count in gone.items()))
    return Answer(
        values={"namespace": namespace, "dry_run": dry_run, "removed": dict(gone)},
        lines=[*listed, f"{verb} {place}"] if gone else [f"there is nothing of {place}"],
    )
