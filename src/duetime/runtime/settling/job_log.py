"""Logs what runs came to: each failure and each retry, and successes one by one while they are few."""

from __future__ import annotations

import asyncio
import logging
import sys
import traceback
from collections import Counter
from contextvars import Context
from typing import Any, Final, NamedTuple

from duetime.model.events import EventKind
from duetime.model.job import Claim
from duetime.model.outcome import Failed, Interrupted, Outcome, Settlement
from duetime.model.states import State
from duetime.model.text import counted, one_line, printable, short_list
from duetime.model.time import MINUTE, SECOND, Micros, describe_duration
from duetime.runtime.error_text import handler_frames
from duetime.runtime.identity import WorkerIdentity

log = logging.getLogger("duetime.jobs")

RECORD_FIELDS: Final = ("job_id", "task", "queue", "attempt", "duration", "outcome", "worker")
"""What every record has apart from its message; `None` where it stands for many jobs."""
MAX_LINES: Final = 10
"""How many lines of one level are written in a period; further ones are counted, so that failures without end neither
fill a disk nor hold up the jobs."""
PERIOD: Final = 1.0


class _Wording(NamedTuple):
    word: str
    """What the line that stands for many jobs calls it."""
    line: str
    level: int | None = None
    """`None` for the quiet level of the worker."""


_AGAIN: Final = "{facts} and runs again {wait}: {error}"
_WORDINGS: Final = {
    EventKind.JOB_SUCCEEDED: _Wording("succeeded", "succeeded {facts}"),
    EventKind.JOB_FAILED: _Wording("failed", "failed {facts}: {error}", logging.ERROR),
    EventKind.JOB_RETRYING: _Wording("failed and will be retried", f"failed {_AGAIN}", logging.WARNING),
    EventKind.JOB_LOST: _Wording("lost with their worker", f"was lost {_AGAIN}", logging.WARNING),
    EventKind.JOB_INTERRUPTED: _Wording(
        "interrupted", "was interrupted {facts} and runs again: {reason}", logging.WARNING
    ),
    EventKind.JOB_CANCELLED: _Wording("cancelled", "was cancelled {facts}: {reason}"),
    EventKind.JOB_SKIPPED: _Wording("skipped", "was skipped: {reason}"),
    EventKind.JOB_SNOOZED: _Wording("put off", "was put off {facts} and runs again {wait}"),
}
_NOT_RUN_AGAIN: Final = _Wording(
    "cancelled",
    "was interrupted {facts} and does not run again, as its task asks for: {reason}",
    logging.WARNING,
)
"""A job that was stopped with its worker, which no one asked for, and that must not run twice."""
_NO_RESULT: Final = _Wording("succeeded", "succeeded {facts}", logging.ERROR)
"""A job whose result could not be stored, although it was to be kept."""


class _Lines:
    """The lines of one level in a period: the first few are written, the others are counted by task."""

    def __init__(self) -> None:
        self.seen = 0
        self.left_out: Counter[str] = Counter()
        self.last: tuple[Claim, Settlement] | None = None


class JobLog:
    """Logs the runs of one worker, successes at the level `quiet`.

    While many succeed, they share one line a second, and each costs a count and a comparison.
    """

    def __init__(self, identity: WorkerIdentity, *, quiet: int, loop: asyncio.AbstractEventLoop) -> None:
        self.counts = dict.fromkeys(EventKind, 0)
        """What came of runs in this period; counted by the one that ends them."""
        self.each = True
        """Whether each success has a line of its own."""
        self._identity = identity
        self._quiet = quiet
        self._loop = loop
        self._closing: asyncio.TimerHandle | None = None
        self._begin()

    def tell(self, kind: EventKind, claim: Claim, settlement: Settlement, outcome: Outcome) -> None:
        """Log what a run came to, or leave it to the line that stands for many when this period has had lines enough."""
        if self._closing is None:
            self._close_later()
        wording = _WORDINGS[kind]
        if kind is EventKind.JOB_CANCELLED and isinstance(outcome, Interrupted):
            wording = _NOT_RUN_AGAIN
        elif settlement.result_error is not None and not settlement.fleeting:
            wording = _NO_RESULT
        level = wording.level or self._quiet
        lines = self._lines[level]
        lines.seen += 1
        if wording.level is None and (not self.each or lines.seen > MAX_LINES):
            self.each = False
        elif lines.seen > MAX_LINES:
            lines.left_out[claim.task] += 1
            lines.last = claim, settlement
        elif log.isEnabledFor(level):
            took = _duration(settlement)
            details = None if wording.level is None else settlement.traceback
            # Without our text of it, formatters would write the exception as they like, without a bound.
            cause = outcome.cause if details is not None and isinstance(outcome, Failed) else None
            args = claim.job_id, printable(claim.task), _describe_run(wording, claim, settlement, took)
            fields = _fields(kind, claim, took)
            self._write(level, "job %s of %s %s", args, fields=fields, cause=cause, details=details)

    def close(self) -> None:
        """Log what was counted and has no line yet."""
        if self._closing is not None:
            self._closing.cancel()
            self._close()

    def _close(self) -> None:
        self._closing = None
        self._tell_rest(logging.ERROR, "failed or lost their results")
        self._tell_rest(logging.WARNING, "failed or were interrupted")
        ended = sum(self.counts.values())
        quiet = ended - self._lines[logging.ERROR].seen - self._lines[logging.WARNING].seen
        if quiet and not self.each and log.isEnabledFor(self._quiet):
            words = {kind: wording.word for kind, wording in _WORDINGS.items() if self.counts[kind]}
            parts = ", ".join(f"{self.counts[kind]:,} {word}" for kind, word in words.items())
            self._write(self._quiet, "%s ended within a second: %s", (counted(ended, "run"), parts))
        self.each = quiet <= MAX_LINES
        self._begin()
        if not self.each:
            self._close_later()

    def _close_later(self) -> None:
        # In a context of its own: it is none of the job's that happens to end now.
        self._closing = self._loop.call_later(PERIOD, self._close, context=Context())

    def _tell_rest(self, level: int, what: str) -> None:
        lines = self._lines[level]
        if lines.last is None or not log.isEnabledFor(level):
            return
        claim, settlement = lines.last
        left_out = f"{lines.left_out.total():,}"
        tasks = short_list([f"{printable(task)} {count:,}" for task, count in lines.left_out.most_common()])
        why = one_line(
            settlement.error or settlement.reason or settlement.result_error or "no reason is known"
        )
        text = "%s more %s within a second, without a line each: %s; the last was job %s: %s"
        self._write(level, text, (left_out, what, tasks, claim.job_id, why))

    def _begin(self) -> None:
        self.counts = dict.fromkeys(EventKind, 0)
        self._lines = {level: _Lines() for level in (logging.ERROR, logging.WARNING, self._quiet)}

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
            vars(record).update(fields or dict.fromkeys(RECORD_FIELDS), worker=self._identity.info.id)
            # Formatters take this in place of what they would write of the exception: bounded, and safe for a terminal.
            record.exc_text = None if details is None else _indented(details)
            log.handle(record)
        except Exception:  # noqa: BLE001 - logging that the application has set up must not cost the worker a slot
            if logging.raiseExceptions and sys.stderr is not None:
                traceback.print_exc()


def _fields(kind: EventKind, claim: Claim, took: Micros | None) -> dict[str, Any]:
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


def _describe_run(wording: _Wording, claim: Claim, settlement: Settlement, took: Micros | None) -> str:
    """Say what came of a run in one line."""
    error, reason = one_line(settlement.error or ""), one_line(settlement.reason or "")
    length = (settlement.due_at or 0) - (settlement.ended_at or 0)
    wait = "at once" if length <= 0 else f"in {_seconds(length)}"
    facts = f"(attempt {claim.attempt}" + (")" if took is None else f", {_seconds(took)})")
    line = wording.line.format(facts=facts, error=error, reason=reason or error, wait=wait)
    if settlement.state is State.FAILED and reason == "expired":
        line += "; another try would come after it expires"
    return line if settlement.result_error is None else f"{line}; {one_line(settlement.result_error)}"


def _seconds(length: Micros) -> str:
    short = length < MINUTE
    return f"{length / SECOND:.3g} s" if short else describe_duration(length // SECOND * SECOND)


def _indented(text: str) -> str:
    """Return lines that no terminal obeys, and that cannot be taken for records of their own."""
    return "\n".join(f"  {printable(line.expandtabs())}" for line in text.splitlines())
