"""What a handler can know about the job it runs for."""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from duetime.errors import InvalidOption, NotInJob, TransactionMisused
from duetime.model import durations
from duetime.model.durations import Duration
from duetime.model.instants import to_datetime
from duetime.model.job import JobId
from duetime.model.reports import check_fraction, check_note
from duetime.model.signals import Cancel
from duetime.model.terms import split_tags
from duetime.runtime.run import Run
from duetime.runtime.transaction import JobTransaction

# Each run is an asyncio task with a context of its own, so that nothing has to be set back. The run itself is
# kept, and turned into a JobContext only for handlers that ask: most never do.
current: ContextVar[Run] = ContextVar("duetime_current_run")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """The job that is being run, as its handler sees it."""

    id: JobId
    task: str
    attempt: int
    """Which try this is, from 1."""
    fence: int
    """Rises with every claim of the job: an outside system that has seen a higher one can refuse this run."""
    due_at: datetime
    started_at: datetime
    deadline: datetime | None
    """When the run is stopped for taking too long; `None` without a timeout."""
    expires_at: datetime | None
    """When the job stops to matter."""
    queue: str
    key: str | None
    tags: tuple[str, ...]
    parent: JobId | None
    """The job that this one repeats, or whose end it was called for."""
    schedule: str | None
    """The schedule that made it."""
    occurrence: datetime | None
    """Which time of the schedule it stands for; `None` for one that was triggered by hand."""
    _run: Run = field(repr=False, compare=False)

    @property
    def cancel_requested(self) -> bool:
        """Whether this run was asked to end: somebody cancelled the job, or the worker stops."""
        return self._run.stopping is not None

    def check_cancelled(self) -> None:
        """Raise `Cancel` if this run was asked to end; for code that does not `await`, such as plain functions."""
        if (cause := self._run.stopping) is not None:
            raise Cancel(cause.reason)

    @property
    def lateness(self) -> timedelta:
        """How long after its due time this try started."""
        return self.started_at - self.due_at

    @property
    def idempotency_key(self) -> str:
        """The same for every try of the job; pass it to services that know how to do a thing once."""
        return self.id

    def progress(self, fraction: float, note: str = "") -> Awaitable[None]:
        """Say how far the job is, from 0 to 1; a plain call does, and `await` lets other tasks run meanwhile.

        Readers see it within about a second. Only the latest is kept, and nothing of a run that lost its claim.
        """
        said = check_fraction(fraction), check_note(note)
        if (voice := self._run.speak()) is not None:
            voice.tell(*said)
        return _SAID

    def transaction(self, *, timeout: Duration | None = None) -> JobTransaction:
        """Lend a transaction on the store's database, for `async with`, or `with` in a plain function.

        What is written in it and the success of the job are committed together at the end of the block, or
        neither is. Past the timeout, usually five seconds, it is rolled back. A job has one, and should open it late.
        """
        length = None if timeout is None else durations.parse(timeout, what="timeout")
        if length == 0:
            text = "timeout must be longer than 0"
            raise InvalidOption(text)
        return JobTransaction(self._run, timeout=length)


def check_not_kept_out(store: object) -> None:
    """Raise `TransactionMisused` where a write would wait for the open transaction of the very job that asks for it."""
    run = current.get(None)
    loan = None if run is None else run.loan
    if loan is not None and loan.keeps_out(store):
        text = (
            "while the transaction of this job is open, nobody else can write to its database; store the job in it: "
            "task.options(tx=tx).enqueue(...), or enqueue_many(..., tx=tx)"
        )
        raise TransactionMisused(text)


class _Said:
    """Can be awaited, or not."""

    def __await__(self) -> Generator[None, None, None]:
        yield


_SAID = _Said()


def current_job() -> JobContext:
    """Return the job this code runs for; raises `NotInJob` outside of one."""
    run = current.get(None)
    if run is None:
        text = "no job is running here; current_job() works inside a task that a worker runs"
        raise NotInJob(text)
    claim = run.claim
    return JobContext(
        id=claim.job_id,
        task=claim.task,
        attempt=claim.attempt,
        fence=claim.fence,
        due_at=to_datetime(claim.due_at),
        started_at=to_datetime(run.started_at),
        deadline=None if run.timeout is None else to_datetime(run.started_at + run.timeout),
        expires_at=None if claim.expires_at is None else to_datetime(claim.expires_at),
        queue=claim.queue,
        key=claim.key,
        tags=split_tags(claim.tags),
        parent=claim.parent,
        schedule=claim.schedule,
        occurrence=None if claim.occurrence is None else to_datetime(claim.occurrence),
        _run=run,
    )
