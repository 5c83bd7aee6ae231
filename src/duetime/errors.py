"""Every error Duetime raises, in one tree; in brackets the built-in that an error is, too.

DuetimeError
├── ConfigError (ValueError) ── MissingDriver (ImportError)
├── InvalidValue (ValueError)
│   ├── InvalidName  InvalidOption  InvalidDuration  InvalidTime  InvalidCursor  InvalidTransaction  InvalidImport  NotConfirmed
│   ├── InvalidTrigger ── InvalidCron  InvalidZone
│   └── InvalidArguments ── PayloadTooLarge
├── TaskError ── InvalidTask (TypeError)  DuplicateTask (ValueError)  UnknownTask (LookupError)
├── JobError
│   ├── JobNotFound (LookupError)  KeyTaken  JobActive  JobEnded  JobChanged  ClaimLost  TransactionMisused (RuntimeError)
│   └── JobFailed  JobCancelled  JobSkipped  ResultExpired  ResultNotStored  ResultUnreadable
├── ScheduleNotFound (LookupError)  NothingToSkip (LookupError)  ScheduleChanged
├── LockError ── LockNotAcquired (TimeoutError)  LockLost  LockMisused (RuntimeError)
├── TokenNotFound (LookupError)
├── WorkerError ── WorkerNotFound (LookupError)  WorkerGone
├── StoreError
│   ├── StoreUnavailable  SchemaMismatch  StoreMoved  Unsupported
│   └── StoreUnusable ── NoSuchFile  StoreLost
├── CopyError ── CopyRefused  CopyDiffers
└── NotOpen (RuntimeError)  NotInJob (RuntimeError)  BlockingCallInLoop (RuntimeError)  WheelError (RuntimeError)
"""

from __future__ import annotations


class DuetimeError(Exception):
    """The root of all errors raised by Duetime."""


class ConfigError(DuetimeError, ValueError):
    """Settings that cannot work."""


class MissingDriver(ConfigError, ImportError):
    """A database driver, or another package behind an extra, that is not installed."""


class InvalidValue(DuetimeError, ValueError):
    """A value that can never be accepted."""


class InvalidName(InvalidValue):
    """A name with characters or a length that is not allowed."""


class InvalidOption(InvalidValue):
    """An unknown option, or an option out of its range."""


class InvalidDuration(InvalidValue):
    """A length of time that is not one."""


class InvalidTime(InvalidValue):
    """A point in time that is naive or out of range."""


class InvalidCursor(InvalidValue):
    """A cursor that no page has given."""


class InvalidTrigger(InvalidValue):
    """A trigger that cannot be built."""


class InvalidCron(InvalidTrigger):
    """A cron expression that cannot be read or never comes."""


class InvalidZone(InvalidTrigger):
    """A time zone that is not known."""


class InvalidTransaction(InvalidValue):
    """A `tx=` of another database or type, without an open transaction, or closed."""


class InvalidArguments(InvalidValue):
    """Arguments that do not fit the task's signature or are not JSON."""


class PayloadTooLarge(InvalidArguments):
    """Arguments whose JSON is longer than the cap."""


class InvalidImport(InvalidValue):
    """A file of schedules that cannot be imported; `problems` has each of them, with its place."""

    def __init__(self, problems: list[str]) -> None:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__("\n".join([f"{count}; nothing was stored", *problems]))
        self.problems = tuple(problems)


class NotConfirmed(InvalidValue):
    """Something that destroys was asked for without the right confirmation."""


class TaskError(DuetimeError):
    """Something is wrong with a task."""


class InvalidTask(TaskError, TypeError):
    """A function that cannot be registered as a task."""


class DuplicateTask(TaskError, ValueError):
    """A second task under a name that is taken."""


class UnknownTask(TaskError, LookupError):
    """A task name that is not registered here."""


class JobError(DuetimeError):
    """Something is wrong with a job."""


class JobNotFound(JobError, LookupError):
    """No job has this id; it never existed or its record was pruned."""


class KeyTaken(JobError):
    """Another job of the task has the key; nothing of the request was stored."""

    def __init__(self, message: str, *, key: str, job_id: str) -> None:
        super().__init__(message)
        self.key = key
        self.job_id = job_id


class JobActive(JobError):
    """What was asked for cannot be done while the job waits or runs."""


class JobEnded(JobError):
    """What was asked for cannot be done any more: the job has ended."""


class JobFailed(JobError):
    """The job ended in failure; `error` and `traceback` are those of the worker."""

    def __init__(self, message: str, *, error: str | None = None, traceback: str | None = None) -> None:
        super().__init__(message)
        self.error = error
        self.traceback = traceback

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text}\n\n{self.traceback}" if self.traceback else text


class JobCancelled(JobError):
    """The job was cancelled before it could finish."""


class JobSkipped(JobError):
    """The job was skipped; the message has the reason."""


class JobChanged(JobError):
    """The job has been changed since it was read, so that the new change was not made."""


class ClaimLost(JobError):
    """The job was given to another worker, or is gone; what this run wanted to write was rolled back."""


class TransactionMisused(JobError, RuntimeError):
    """A handler committed, rolled back or closed the transaction it was lent, asked for a second one, or would wait for it."""


class ResultExpired(JobError):
    """The job succeeded, but its result is not kept (any more)."""


class ResultNotStored(JobError):
    """The job succeeded, but what it returned could not be stored; the message says why."""


class ResultUnreadable(JobError):
    """The job succeeded, but its stored result cannot be read, or does not fit the type that its task returns."""


class ScheduleNotFound(DuetimeError, LookupError):
    """No schedule has this name."""


class NothingToSkip(DuetimeError, LookupError):
    """The schedule has ended or stands still, so that nothing of it is about to run."""


class ScheduleChanged(DuetimeError):
    """The schedule has been changed since it was read, so that the new change was not made."""


class TokenNotFound(DuetimeError, LookupError):
    """No token that is good has this name or id."""


class WorkerError(DuetimeError):
    """Something is wrong with a worker."""


class WorkerNotFound(WorkerError, LookupError):
    """No worker has this id; it never existed or its record was pruned."""


class WorkerGone(WorkerError):
    """The worker has stopped or died, so that it can be told nothing; the message says since when."""


class StoreError(DuetimeError):
    """Something is wrong with the database behind the store."""


class StoreUnavailable(StoreError):
    """The database cannot be reached now; trying again may help."""


class StoreUnusable(StoreError):
    """The database cannot be used as it is; the message says what to change."""


class NoSuchFile(StoreUnusable):
    """There is no SQLite file, and none may be made."""


class StoreLost(StoreUnusable):
    """The SQLite file was deleted or replaced while it was open; only a restart helps."""


class SchemaMismatch(StoreError):
    """The tables are older or newer than this code."""


class StoreMoved(StoreError):
    """Nothing more may begin here: the store was copied, and the work goes on there; `note` says where."""

    def __init__(self, note: str) -> None:
        super().__init__(
            f"{note}, and the work goes on there; change the URL, or run `duetime reopen` to go on here all the same"
        )
        self.note = note


class Unsupported(StoreError):
    """This store does not offer the verb."""


class CopyError(DuetimeError):
    """A store could not be copied to another."""


class CopyRefused(CopyError):
    """A copy that may not begin, or not go on: workers run, or the target is not this copy or is in use."""


class CopyDiffers(CopyError):
    """Source and target are not the same: something has written to one of them since the copy was begun."""


class NotOpen(DuetimeError, RuntimeError):
    """A verb was called while the scheduler was not open."""


class NotInJob(DuetimeError, RuntimeError):
    """The current job was asked for while none is running here."""


class BlockingCallInLoop(DuetimeError, RuntimeError):
    """A blocking verb was called inside a running event loop."""


class WheelError(DuetimeError, RuntimeError):
    """A timer wheel is advanced by two at once: by two drivers, or by one of its own callbacks."""


class LockError(DuetimeError):
    """Something is wrong with a lock."""


class LockNotAcquired(LockError, TimeoutError):
    """The lock was not free in time."""


class LockLost(LockError):
    """The lock was not renewed in time, and may have another owner by now."""


class LockMisused(LockError, RuntimeError):
    """The lock is held by the same task already, or was never acquired."""
