"""What a handler can know about the job it runs for."""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from duetime.errors import InvalidOption, NotInJob, TransactionMisused
from duetime.model.headers import read_headers
from duetime.model.job import JobId, split_tags
from duetime.model.outcome import Cancel
from duetime.model.reports import check_fraction, check_note
from duetime.model.time import Duration, Instant, parse_duration, to_datetime
from duetime.runtime.running.run import Run, current_run
from duetime.runtime.running.transaction import JobTransaction
from duetime.stores.base import Store


@dataclass(frozen=True, slots=True, repr=False)
class JobContext:
    """The job that is being run, as its handler sees it; what the handler does not ask for is not worked out."""

    _run: Run

    def __repr__(self) -> str:
        """Name the job and the try."""
        return f"JobContext(id={self.id!r}, task={self.task!r}, attempt={self.attempt})"

    @property
    def id(self) -> JobId:
        """The job's id."""
        return self._run.claim.job_id

    @property
    def task(self) -> str:
        """The name of its task."""
        return self._run.claim.task

    @property
    def attempt(self) -> int:
        """Which try this is, from 1."""
        return self._run.claim.attempt

    @property
    def fence(self) -> int:
        """Rises with every claim of the job: an outside system that has seen a higher one can refuse this run."""
        return self._run.claim.fence

    @property
    def lock_fence(self) -> int | None:
        """Rises with every owner of the lock that the task names: pass it to what you write to; `None` without a lock."""
        return self._run.lock_fence

    @property
    def due_at(self) -> datetime:
        """When it was to start."""
        return to_datetime(self._run.claim.due_at)

    @property
    def started_at(self) -> datetime:
        """When this try started."""
        return to_datetime(self._run.started_at)

    @property
    def deadline(self) -> datetime | None:
        """When the run is stopped for taking too long; `None` without a timeout."""
        run = self._run
        return None if run.timeout is None else to_datetime(run.started_at + run.timeout)

    @property
    def expires_at(self) -> datetime | None:
        """When the job expires, if it has not started by then."""
        return _moment(self._run.claim.expires_at)

    @property
    def queue(self) -> str:
        """The queue that it was in."""
        return self._run.claim.queue

    @property
    def key(self) -> str | None:
        """The key that no other live job of its task has."""
        return self._run.claim.key

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags it was enqueued with."""
        return split_tags(self._run.claim.tags)

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers it was enqueued with, which cannot be changed."""
        return read_headers(self._run.claim.headers)

    @property
    def parent(self) -> JobId | None:
        """The job that this one reruns, or whose callback it is."""
        return self._run.claim.parent

    @property
    def schedule(self) -> str | None:
        """The schedule that made it."""
        return self._run.claim.schedule

    @property
    def occurrence(self) -> datetime | None:
        """Which time of the schedule it stands for; `None` for one that was triggered by hand."""
        return _moment(self._run.claim.occurrence)

    @property
    def cancel_requested(self) -> bool:
        """Whether this run was asked to end: the job was cancelled, or the worker stops."""
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
        if (output := self._run.open_output()) is not None:
            output.set_progress(*said)
        return _AWAIT_OPTIONAL

    def transaction(self, *, timeout: Duration | None = None, tx: object = None) -> JobTransaction:
        """Lend a transaction on the store's database, for `async with`, or `with` in a plain function.

        With `tx`, a SQLAlchemy session or connection of your own to that database, it is that one's transaction.

        What is written in it and the success of the job are committed together at the end of the block, or
        neither is. Past the timeout, usually five seconds, it is rolled back. A job has one, and should open it late.
        """
        length = None if timeout is None else parse_duration(timeout, what="timeout")
        if length == 0:
            raise InvalidOption("timeout must be longer than 0")
        return JobTransaction(self._run, timeout=length, tx=tx)


def check_not_kept_out(store: Store) -> None:
    """Raise `TransactionMisused` where a write would wait for the open transaction of the very job that asks for it."""
    run = current_run.get(None)
    loan = None if run is None else run.loan
    if loan is not None and any(map(loan.keeps_out, store.parts)):
        raise TransactionMisused(
            "while the transaction of this job is open, no one else can write to its database; store the job in it: "
            "task.options(tx=tx).enqueue(...), or enqueue_many(..., tx=tx)"
        )


class _OptionalAwait:
    """Can be awaited, or not."""

    def __await__(self) -> Generator[None, None, None]:
        yield


_AWAIT_OPTIONAL = _OptionalAwait()


def current_job() -> JobContext:
    """Return the job this code runs for; raises `NotInJob` outside of one."""
    run = current_run.get(None)
    if run is None:
        raise NotInJob("no job is running here; current_job() works inside a task that a worker runs")
    return JobContext(run)


def _moment(instant: Instant | None) -> datetime | None:
    return None if instant is None else to_datetime(instant)
