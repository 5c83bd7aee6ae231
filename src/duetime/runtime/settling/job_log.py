"""Logs what runs came to: each failure and each retry, and successes one by one while they are few."""

from __future__ import annotations

import asyncio
import logging
import sys
import traceback
from collections import Counter
from contextvars import Context
from typing import Any, Final

from duetime.model.events import EventKind
from duetime.model.job import Claim
from duetime.model.outcome import Failed, Interrupted, Outcome, Settlement
from duetime.model.text import one_line, printable, short_list
from duetime.model.time import MINUTE, SECOND, Micros, describe_duration
from duetime.runtime.error_text import handler_frames
from duetime.runtime.identity import WorkerIdentity

log = logging.getLogger("duetime.jobs")

RECORD_FIELDS: Final = ("job_id", "task", "queue", "attempt", "duration", "outcome", "worker")
"""What every record has besides its message; `None` where it stands for many jobs."""
MAX_LINES: Final = 10
"""How many lines of one level are written in a period; further ones are counted, so that failures without end neither
fill a disk nor hold up the jobs."""
PERIOD: Final = 1.0
_LEVELS: Final = {
    EventKind.JOB_FAILED: logging.ERROR,
    EventKind.JOB_RETRYING: logging.WARNING,
    EventKind.JOB_LOST: logging.WARNING,
    EventKind.JOB_INTERRUPTED: logging.WARNING,
}
_OUTCOME_WORDS: Final = {
    EventKind.JOB_SUCCEEDED: "succeeded",
    EventKind.JOB_FAILED: "failed",
    EventKind.JOB_RETRYING: "failed and will be retried",
    EventKind.JOB_LOST: "lost with their worker",
    EventKind.JOB_INTERRUPTED: "interrupted",
    EventKind.JOB_CANCELLED: "cancelled",
    EventKind.JOB_SKIPPED: "skipped",
    EventKind.JOB_SNOOZED: "put off",
}


class JobLog:
    """Logs the runs of one worker, successes at the level `quiet`.

    While many succeed, they share one line a second, and each costs a count and a comparison.
    """

    def __init__(self, identity: WorkerIdentity, *, quiet: int, loop: asyncio.AbstractEventLoop) -> None:
        self.succeeded = 0
        """How many runs have succeeded in this period; counted by the one that ends them."""
        self.each = True
        """Whether each success has a line of its own."""
        self._identity = identity
        self._quiet = quiet
        self._loop = loop
        self._closing: asyncio.TimerHandle | None = None
        self._others: Counter[EventKind] = Counter()
        """What came of runs that did not succeed, in this period."""
        self._begin()

    def tell(self, kind: EventKind, claim: Claim, settlement: Settlement, outcome: Outcome) -> None:
        """Log what a run came to, or count it when this period has had lines enough."""
        if self._closing is None:
            self._close_later()
        level = self._level(kind, outcome)
        if kind is not EventKind.JOB_SUCCEEDED:
            self._others[kind] += 1
            self._calm += level == self._quiet
        lines = self._lines[level]
        if not lines.admits(claim, settlement):
            self.each = self.each and level != self._quiet
            return
        if log.isEnabledFor(level):
            details = None if level == self._quiet else settlement.traceback
            # Without our text of it, formatters would write the exception as they like, without a bound.
            cause = outcome.cause if details is not None and isinstance(outcome, Failed) else None
            self._write(
                level,
                "job %s of %s %s",
                (claim.job_id, printable(claim.task), _describe_run(kind, claim, settlement, outcome)),
                fields=_fields(kind, claim, settlement),
                cause=cause,
                details=details,
            )

    def close(self) -> None:
        """Log what was counted and has no line yet."""
        if self._closing is not None:
            self._closing.cancel()
            self._close()

    def _level(self, kind: EventKind, outcome: Outcome) -> int:
        if kind is EventKind.JOB_CANCELLED and isinstance(outcome, Interrupted):
            # This was not asked for: the worker was stopped, and the task must not run twice.
            return logging.WARNING
        return _LEVELS.get(kind, self._quiet)

    def _close(self) -> None:
        self._closing = None
        counts = self._others + Counter({EventKind.JOB_SUCCEEDED: self.succeeded})
        for level in (logging.ERROR, logging.WARNING):
            self._tell_rest(level, self._lines[level])
        quiet = self.succeeded + self._calm
        if quiet > self._lines[self._quiet].written and log.isEnabledFor(self._quiet):
            parts = ", ".join(
                f"{counts[kind]:,} {word}" for kind, word in _OUTCOME_WORDS.items() if counts[kind]
            )
            self._write(self._quiet, "%s runs ended within a second: %s", (f"{counts.total():,}", parts))
        self.each = quiet <= MAX_LINES
        self._begin()
        if not self.each:
            self._close_later()

    def _close_later(self) -> None:
        # In a context of its own: it is none of the job's that happens to end now.
        self._closing = self._loop.call_later(PERIOD, self._close, context=Context())

    def _tell_rest(self, level: int, lines: _LineBudget) -> None:
        if lines.last is None or not log.isEnabledFor(level):
            return
        claim, settlement = lines.last
        tasks = [f"{printable(task)} {count:,}" for task, count in lines.left_out.most_common()]
        self._write(
            level,
            "%s more %s within a second, without a line each: %s; the last was job %s: %s",
            (
                f"{lines.left_out.total():,}",
                "failed" if level == logging.ERROR else "failed or were interrupted",
                short_list(tasks),
                claim.job_id,
                one_line(settlement.error or settlement.reason or "no reason is known"),
            ),
        )

    def _begin(self) -> None:
        self.succeeded = self._calm = 0
        self._others.clear()
        self._lines = {level: _LineBudget(MAX_LINES) for level in (logging.ERROR, logging.WARNING)}
        self._lines[self._quiet] = _LineBudget(MAX_LINES if self.each else 0)

    def _write(
        self,
        level: int,
        text: str,
        args: tuple[str, ...],
        *,
        fields: dict[str, Any] | None = None,
        cause: BaseException | None = None,
        details: str | None = None,
    ) -> None:
        if cause is not None:
            # Our own frames tell an application nothing, and hold the run for as long as a handler keeps the record.
            cause.with_traceback(handler_frames(cause))
        exc_info = None if cause is None else (type(cause), cause, cause.__traceback__)
        try:
            path, line, function, _ = log.findCaller()
            record = log.makeRecord(log.name, level, path, line, text, args, exc_info, function)
            # Not as `extra`, which raises if a record factory of the application has set one of the names.
            vars(record).update(fields or dict.fromkeys(RECORD_FIELDS), worker=self._identity.worker_id)
            # Formatters take this in place of what they would write of the exception: bounded, and safe for a terminal.
            record.exc_text = None if details is None else _indented(details)
            log.handle(record)
        except Exception:  # noqa: BLE001 - logging that the application has set up must not cost the worker a slot
            if logging.raiseExceptions and sys.stderr is not None:
                traceback.print_exc()


class _LineBudget:
    """The lines of one level in a period: the first few are written, the others are counted by task."""

    def __init__(self, room: int) -> None:
        self.written = 0
        self.left_out: Counter[str] = Counter()
        self.last: tuple[Claim, Settlement] | None = None
        self._room = room

    def admits(self, claim: Claim, settlement: Settlement) -> bool:
        """Whether there is room for one more."""
        if self.written < self._room:
            self.written += 1
            return True
        self.left_out[claim.task] += 1
        self.last = claim, settlement
        return False


def _fields(kind: EventKind, claim: Claim, settlement: Settlement) -> dict[str, Any]:
    took = _duration(settlement)
    return {
        "job_id": claim.job_id,
        "task": claim.task,
        "queue": claim.queue,
        "attempt": claim.attempt,
        "duration": None if took is None else took / SECOND,
        "outcome": kind.removeprefix("job."),
    }


def _duration(settlement: Settlement) -> Micros | None:
    """Return how long a run took; None if its worker has died, or it did not start."""
    ended_at = settlement.finished_at or settlement.ended_at
    if settlement.started_at is None or ended_at is None or settlement.worker is not None:
        return None
    return max(0, ended_at - settlement.started_at)


def _describe_run(kind: EventKind, claim: Claim, settlement: Settlement, outcome: Outcome) -> str:
    """Say what came of a run in one line."""
    took = _duration(settlement)
    facts = f"(attempt {claim.attempt})" if took is None else f"(attempt {claim.attempt}, {_seconds(took)})"
    error = one_line(settlement.error or "")
    reason = one_line(settlement.reason or "")
    match kind:
        case EventKind.JOB_FAILED:
            late = "; another try would come after it expires" if reason == "expired" else ""
            story = f"failed {facts}: {error}{late}"
        case EventKind.JOB_RETRYING:
            story = f"failed {facts} and runs again {_describe_wait(settlement)}: {error}"
        case EventKind.JOB_LOST:
            story = f"was lost {facts} and runs again {_describe_wait(settlement)}: {error}"
        case EventKind.JOB_INTERRUPTED:
            story = f"was interrupted {facts} and runs again: {reason}"
        case EventKind.JOB_CANCELLED if isinstance(outcome, Interrupted):
            story = f"was interrupted {facts} and does not run again, as its task asks for: {reason}"
        case EventKind.JOB_CANCELLED:
            story = f"was cancelled {facts}: {reason or error}"
        case EventKind.JOB_SKIPPED:
            story = f"was skipped: {reason}"
        case EventKind.JOB_SNOOZED:
            story = f"was put off {facts} and runs again {_describe_wait(settlement)}"
        case _:
            lost = f"; {one_line(settlement.result_error)}" if settlement.result_error else ""
            story = f"succeeded {facts}{lost}"
    return story


def _describe_wait(settlement: Settlement) -> str:
    wait = (settlement.due_at or 0) - (settlement.ended_at or 0)
    return "at once" if wait <= 0 else f"in {_seconds(wait)}"


def _seconds(length: Micros) -> str:
    short = length < MINUTE
    return f"{length / SECOND:.3g} s" if short else describe_duration(length // SECOND * SECOND)


def _indented(text: str) -> str:
    """Return lines that no terminal obeys, and that cannot be taken for records of their own."""
    return "\n".join(f"  {printable(line.expandtabs())}" for line in text.splitlines())
