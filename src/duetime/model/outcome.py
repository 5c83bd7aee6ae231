"""What one run produced or asked for, which job is blamed when a worker dies, and the decision what to write for it."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from duetime.model.job import SOON, Claim, JobId, NewJob, Token
from duetime.model.reports import NewLogPart, Progress
from duetime.model.retention import note_on
from duetime.model.retry import NO_RETRIES, RetryPolicy
from duetime.model.states import State
from duetime.model.time import LONGEST_DURATION, SECOND, Duration, Instant, Micros, parse_duration


class Cancel(Exception):
    """The job ends here, cancelled."""

    def __init__(self, reason: str = "cancelled by its handler") -> None:
        super().__init__(reason)
        self.reason = reason


class Snooze(Exception):
    """The job runs again after a while; this costs it no retry."""

    def __init__(self, delay: Duration) -> None:
        super().__init__(delay)
        self.delay: Micros = parse_duration(delay, what="delay")


class Retry(Exception):
    """The run has failed; the job is tried again, if it has retries left, after `delay` or the usual wait."""

    def __init__(self, delay: Duration | None = None, reason: str | None = None) -> None:
        super().__init__(delay, reason)
        self.delay: Micros | None = None if delay is None else parse_duration(delay, what="delay")
        self.reason = reason

    def __str__(self) -> str:
        return "the handler asked for another try" if self.reason is None else self.reason


Signal: TypeAlias = Cancel | Snooze | Retry

MAX_BLAMES: Final = 3
"""How many workers a job may take down as the only suspect before it is given up."""
MAX_CRASHES: Final = 4
"""How many in all, if it was the only suspect for at least two of them."""


class CrashSuspect(NamedTuple):
    """A job that was started in a worker when it died, or may have been: it was due, and its start not yet noted."""

    job_id: JobId
    crashes: int
    """How many workers had died around it before."""


def blamed_job(suspects: Iterable[CrashSuspect]) -> JobId | None:
    """Return the suspect that has been around the most deaths, or `None` when several have been around as many.

    A job that kills its workers is around each of those deaths, so no other job has seen more of them.
    """
    found = tuple(suspects)
    most = max((suspect.crashes for suspect in found), default=0)
    foremost = [suspect.job_id for suspect in found if suspect.crashes == most]
    return foremost[0] if len(foremost) == 1 else None


def is_poison(*, crashes: int, blames: int) -> bool:
    """Whether a job has taken down too many workers to be tried again."""
    return blames >= MAX_BLAMES or (crashes >= MAX_CRASHES and blames > 1)


LEAST_SNOOZE: Micros = SECOND
"""How soon a job may be back that puts itself off: without end, if it likes."""

MAX_SNOOZED = 100
"""How many claims back the tries that were put off, and their logs, are kept."""

SNOOZED = "snoozed"
"""What the attempt of a job that was put off is called."""

_EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The handler returned."""

    result: str | None = None
    result_error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The handler raised, took too long, or could not be called."""

    error: str
    traceback: str | None = None
    reason: str = "error"
    final: bool = False
    """Whether trying again cannot help, as with a row that cannot be decoded."""
    wait: Micros | None = None
    """How long to wait before the next try; `None` leaves it to the task's policy."""
    cause: BaseException | None = field(default=None, compare=False, repr=False)
    """What was raised, if that was in this process; for the log only."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The run was stopped on request."""

    reason: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """The run was not made, because it would come too late."""

    reason: str


@dataclass(frozen=True, slots=True)
class Snoozed:
    """The handler put the job off; it costs no retry."""

    wait: Micros


@dataclass(frozen=True, slots=True)
class Released:
    """The claim goes back unused; it costs neither an attempt nor a crash."""

    wait: Micros = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """The worker stopped before the handler ended."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashed:
    """The worker that held the claim died."""

    worker: str
    started: bool
    blamed: bool
    """Whether this job was the only suspect."""
    suspected: bool = False
    """Whether it may have been started although the store does not know of it."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The run has recorded its own end, so nothing is left to write."""


_NoSuccess: TypeAlias = Failed | Cancelled | Skipped | Snoozed | Released | Interrupted | Crashed
Outcome: TypeAlias = Succeeded | _NoSuccess


class Settlement(NamedTuple):
    """The exact change to write for a claim; a tuple for the reason a claim is one."""

    token: Token
    state: State
    started_at: Instant | None
    finished_at: Instant | None = None
    due_at: Instant | None = None
    """The next due time of a job that goes back to pending; `None` keeps the old one."""
    failures: int = 0
    crashes: int = 0
    blames: int = 0
    result: str | None = None
    result_error: str | None = None
    error: str | None = None
    traceback: str | None = None
    reason: str | None = None
    attempt: str | None = None
    """The outcome for a row of its own, when the try ends without ending the job."""
    ended_at: Instant | None = None
    worker: str | None = None
    """Whose try it was, when another worker writes it down."""
    new_jobs: tuple[NewJob, ...] = ()
    """Jobs that are enqueued in the same transaction."""
    calls_back: bool = False
    """Whether its callbacks are to be enqueued in the same transaction, if it has ended."""
    progress: Progress | None = None
    """What the run said last about how far it is, if that was not written yet."""
    logs: tuple[NewLogPart, ...] = ()
    """The lines of the run's log that were not written yet."""
    limited: bool = False
    """Whether the claim held a place under a limit, which others may wait for."""
    fleeting: bool = False
    """Whether its result or error is for callbacks and events only, and not to be stored."""


_MORE: Final = Settlement._fields.index("error")
_NOTHING_MORE: Final = tuple(Settlement._field_defaults[name] for name in Settlement._fields[_MORE:])


def is_plain_success(change: Settlement) -> bool:
    """Whether there is nothing to write but that a run went well, and nobody to tell; asked for every job."""
    return change[1] is State.SUCCEEDED and change[_MORE:] == _NOTHING_MORE


def leaves_work(change: Settlement) -> bool:
    """Whether a job falls due soon because of a change, so that workers are to be told."""
    if change.new_jobs or change.calls_back:
        return True
    if change.state is not State.PENDING:
        return False
    # Both times are of one clock: the change was decided at the end of the run.
    return change.due_at is None or change.due_at - (change.ended_at or 0) <= SOON


def decide(
    claim: Claim,
    outcome: Outcome,
    *,
    policy: RetryPolicy,
    started_at: Instant | None,
    now: Instant,
    rng: random.Random,
) -> Settlement:
    """Turn the outcome of a run into the change to write."""
    if isinstance(outcome, Succeeded):
        return succeed(claim, outcome, started_at=started_at, now=now)
    made = _decide(_Change(claim, started_at, now), outcome, policy, rng)
    if claim.failure_ttl == 0:
        made = made._replace(fleeting=True)
    return made if claim.callbacks is None else made._replace(calls_back=True)


def succeed(claim: Claim, outcome: Succeeded, *, started_at: Instant | None, now: Instant) -> Settlement:
    """Turn a success into the change to write: by position, because this is done for every job that goes well."""
    made = Settlement(
        Token(claim.job_id, claim.fence, claim.claim_id),
        State.SUCCEEDED,
        started_at,
        now,
        None,
        claim.failures,
        claim.crashes,
        claim.blames,
        outcome.result,
        outcome.result_error,
    )
    if claim.gate is not None or claim.queue_limited:
        made = made._replace(limited=True)
    if claim.result_ttl == 0:
        made = made._replace(fleeting=True)
    return made if claim.callbacks is None else made._replace(calls_back=True)


def as_stored(made: Settlement) -> Settlement:
    """Leave out what is not to be stored; that there was a result can be told."""
    if not made.fleeting:
        return made
    note = made.result_error if made.result is None else note_on(made.state, 0)
    return made._replace(result=None, result_error=note, error=None, traceback=None)


def expired(claim: Claim, now: Instant) -> Skipped | None:
    """Tell a claim whose job has stopped to matter before it could start."""
    late = claim.expires_at is not None and claim.expires_at <= now
    return Skipped(_EXPIRED) if late else None


def recalled(*, started: bool) -> Released | Interrupted:
    """Tell what it means when a claim is taken away by hand: nothing, unless its run had begun."""
    return Interrupted(reason="released by force") if started else Released()


def called_off(made: Settlement, cause: Cancelled) -> Settlement:
    """End a job that would run again, because its run was told to end; what it came to stays on record."""
    if made.state is not State.PENDING:
        return made
    return made._replace(
        state=State.CANCELLED,
        reason=cause.reason,
        finished_at=made.ended_at,
        due_at=None,
        attempt=None,
        ended_at=None,
    )


def crash_backoff(blames: int) -> Micros:
    """Return the wait before a job that took its worker down is tried again: 0, 1, 4, 16 … 60 seconds."""
    return 0 if blames == 0 else min(SECOND * 4 ** (blames - 1), 60 * SECOND)


class _Change(NamedTuple):
    """Builds settlements for one claim, carrying its counters along."""

    claim: Claim
    started_at: Instant | None
    now: Instant

    def too_late(self, due_at: Instant) -> bool:
        """Whether a next try at that time would come after the job stops to matter."""
        return self.claim.expires_at is not None and self.claim.expires_at <= due_at

    def end(
        self,
        state: State,
        *,
        error: str | None = None,
        traceback: str | None = None,
        reason: str | None = None,
        failures: int = 0,
        crashes: int = 0,
        blames: int = 0,
        worker: str | None = None,
    ) -> Settlement:
        claim = self.claim
        return Settlement(
            token=claim.token,
            state=state,
            started_at=self.started_at,
            finished_at=self.now,
            failures=claim.failures + failures,
            crashes=claim.crashes + crashes,
            blames=claim.blames + blames,
            error=error,
            traceback=traceback,
            reason=reason,
            worker=worker,
            limited=claim.limited,
        )

    def put_back(
        self,
        *,
        due_at: Instant | None,
        attempt: str | None = None,
        error: str | None = None,
        traceback: str | None = None,
        reason: str | None = None,
        worker: str | None = None,
        failures: int = 0,
        crashes: int = 0,
        blames: int = 0,
    ) -> Settlement:
        claim = self.claim
        return Settlement(
            token=claim.token,
            state=State.PENDING,
            started_at=self.started_at,
            due_at=due_at,
            failures=claim.failures + failures,
            crashes=claim.crashes + crashes,
            blames=claim.blames + blames,
            error=error,
            traceback=traceback,
            reason=reason,
            attempt=attempt,
            ended_at=self.now,
            worker=worker,
            limited=claim.limited,
        )


def _decide(change: _Change, outcome: _NoSuccess, policy: RetryPolicy, rng: random.Random) -> Settlement:
    match outcome:
        case Failed():
            made = _decide_failure(change, outcome, policy, rng)
        case Cancelled():
            made = change.end(State.CANCELLED, reason=outcome.reason)
        case Skipped():
            made = change.end(State.SKIPPED, reason=outcome.reason)
        case Snoozed():
            made = _decide_snooze(change, outcome)
        case Released():
            made = change.put_back(due_at=None if outcome.wait == 0 else change.now + outcome.wait)
        case Interrupted():
            made = _decide_interruption(change, outcome)
        case Crashed():
            made = _decide_crash(change, outcome)
    return made


def _decide_failure(change: _Change, outcome: Failed, policy: RetryPolicy, rng: random.Random) -> Settlement:
    claim = change.claim
    failures = claim.failures + 1
    allowed = policy.retries if claim.retries is None else claim.retries
    fail = partial(change.end, State.FAILED, traceback=outcome.traceback, failures=1)
    if outcome.final or failures > allowed:
        return fail(error=outcome.error, reason=outcome.reason)
    wait, problem = (outcome.wait, "") if outcome.wait is not None else _retry_wait(policy, failures, rng)
    error = outcome.error + problem
    if change.too_late(change.now + wait):
        return fail(error=error, reason=_EXPIRED)
    return change.put_back(
        due_at=change.now + wait,
        attempt=outcome.reason,
        error=error,
        traceback=outcome.traceback,
        failures=1,
    )


def _retry_wait(policy: RetryPolicy, failures: int, rng: random.Random) -> tuple[Micros, str]:
    """Ask the policy, which may be the user's own code: if it raises, the usual wait serves, with a note."""
    try:
        wait = policy.delay(failures, rng)
    except Exception as problem:  # noqa: BLE001 - a run that failed must not go unrecorded
        note = f"\n(its retry policy raised {type(problem).__name__}; the usual wait is used)"
        return NO_RETRIES.delay(failures, rng), note
    if type(wait) is not int or not 0 <= wait <= LONGEST_DURATION:
        note = "\n(its retry policy gave no whole number of microseconds in range; the usual wait is used)"
        return NO_RETRIES.delay(failures, rng), note
    return wait, ""


def _decide_snooze(change: _Change, outcome: Snoozed) -> Settlement:
    due_at = change.now + max(outcome.wait, LEAST_SNOOZE)
    if change.too_late(due_at):
        return change.end(State.SKIPPED, reason=_EXPIRED)
    return change.put_back(due_at=due_at, attempt=SNOOZED)


def _decide_interruption(change: _Change, outcome: Interrupted) -> Settlement:
    """A stop is nobody's fault: the job runs again, unless it asked never to run twice."""
    if change.claim.on_crash == "fail":
        return change.end(State.CANCELLED, reason=outcome.reason)
    return change.put_back(due_at=change.now, attempt="interrupted", reason=outcome.reason)


def _decide_crash(change: _Change, outcome: Crashed) -> Settlement:
    """Rescue: an unstarted claim goes back; a started one runs again or fails, as the task chose."""
    blames = change.claim.blames + outcome.blamed
    if not outcome.started:
        wait = crash_backoff(blames) if outcome.blamed else 0
        return change.put_back(
            due_at=change.now + wait if wait else None,
            crashes=int(outcome.suspected or outcome.blamed),
            blames=int(outcome.blamed),
        )
    end = partial(
        change.end,
        State.FAILED,
        reason="crashed",
        worker=outcome.worker,
        crashes=1,
        blames=int(outcome.blamed),
    )
    text = f"worker {outcome.worker} died while the job ran"
    if change.claim.on_crash == "fail":
        return end(error=text)
    crashes = change.claim.crashes + 1
    if outcome.blamed and is_poison(crashes=crashes, blames=blames):
        return end(
            error=f"{crashes} workers died around this job, {blames} of them with it as the only suspect; it is not "
            "tried again"
        )
    due_at = change.now + crash_backoff(blames)
    if change.too_late(due_at):
        return end(error=text)
    return change.put_back(
        due_at=due_at,
        attempt="lost",
        error=text,
        worker=outcome.worker,
        crashes=1,
        blames=int(outcome.blamed),
    )
