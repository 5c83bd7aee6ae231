"""What a run produced or asked for, which job is blamed when a worker dies, and what is written for either."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

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
    """Return the suspect that was present at the most deaths, or `None` if several were present at as many.

    A job that kills its workers is present at each of those deaths, so no other job has seen more.
    """
    found = tuple(suspects)
    most = max((suspect.crashes for suspect in found), default=0)
    foremost = [suspect.job_id for suspect in found if suspect.crashes == most]
    return foremost[0] if len(foremost) == 1 else None


def is_poison(*, crashes: int, blames: int) -> bool:
    """Whether a job has taken down too many workers to be tried again."""
    return blames >= MAX_BLAMES or (crashes >= MAX_CRASHES and blames > 1)


LEAST_SNOOZE: Micros = SECOND
"""The shortest time for which a job may snooze; there is no limit on how often."""

MAX_SNOOZED = 100
"""How many of the latest snoozed attempts of a job are kept, with their logs."""

SNOOZED = "snoozed"
"""The outcome of an attempt that snoozed."""

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
    error_type: str | None = None
    """The dotted name of the exception's class."""
    place: str | None = None
    """Where it comes from: a module and a function."""
    cause: BaseException | None = field(default=None, compare=False, repr=False)
    """What was raised, if that was in this process; for the log only."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The run was stopped on request."""

    reason: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """The job was not run, because it would have started too late."""

    reason: str


@dataclass(frozen=True, slots=True)
class Snoozed:
    """The handler postponed the job; this costs no retry."""

    wait: Micros


@dataclass(frozen=True, slots=True)
class Released:
    """The claim goes back unused; it costs neither an attempt nor a crash."""

    wait: Micros = 0
    until: Instant | None = None
    """When the job is due again, if not after a `wait`."""
    reason: str | None = None


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


_NoSuccess: TypeAlias = Failed | Cancelled | Skipped | Snoozed | Released | Interrupted | Crashed
Outcome: TypeAlias = Succeeded | _NoSuccess


class Settlement(NamedTuple):
    """The exact change to write for a claim."""

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
    error_type: str | None = None
    fingerprint: str | None = None
    """Equal for failures of one task that are of one kind and come from one place."""
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
    """The latest progress of the run, if it was not written yet."""
    logs: tuple[NewLogPart, ...] = ()
    """The lines of the run's log that were not written yet."""
    limited: bool = False
    """Whether the claim held a place under a limit, which others may wait for."""
    fleeting: bool = False
    """Whether its result or error is for callbacks and events only, and not to be stored."""


def is_plain_success(change: Settlement) -> bool:
    """Whether there is nothing to write but the success, and no one to notify."""
    return change.state is State.SUCCEEDED and not (
        change.limited
        or change.calls_back
        or change.fleeting
        or change.new_jobs
        or change.logs
        or change.progress is not None
    )


def leaves_work(change: Settlement) -> bool:
    """Whether a change makes a job fall due soon, so that workers must be notified."""
    if change.new_jobs or change.calls_back:
        return True
    if change.state is not State.PENDING:
        return False
    # Both times are from the same clock.
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
    alike = Settlement(
        token=claim.token,
        state=State.PENDING,
        started_at=started_at,
        failures=claim.failures,
        crashes=claim.crashes,
        blames=claim.blames,
        calls_back=claim.callbacks is not None,
        limited=claim.limited,
        fleeting=claim.failure_ttl == 0,
    )
    ways = _Ways(claim, now, back=alike._replace(ended_at=now), end=alike._replace(finished_at=now))
    return _decide(ways, outcome, policy, rng)


def succeed(claim: Claim, outcome: Succeeded, *, started_at: Instant | None, now: Instant) -> Settlement:
    """Turn a success into the change to write."""
    # By position, because this is done for every job that goes well.
    made = Settlement(
        claim.token,
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
    calls_back, fleeting = claim.callbacks is not None, claim.result_ttl == 0
    if calls_back or fleeting or claim.limited:
        made = made._replace(calls_back=calls_back, fleeting=fleeting, limited=claim.limited)
    return made


def as_stored(made: Settlement) -> Settlement:
    """Leave out what is not to be stored, and say that there was a result."""
    if not made.fleeting:
        return made
    had = made.result is not None or made.result_error is not None
    note = note_on(made.state, 0) if had else None
    return made._replace(result=None, result_error=note, error=None, traceback=None)


def expired(claim: Claim, now: Instant) -> Skipped | None:
    """Return the outcome of a claim whose job expired before it could start; `None` if it has not."""
    late = claim.expires_at is not None and claim.expires_at <= now
    return Skipped(_EXPIRED) if late else None


def recalled(*, started: bool) -> Released | Interrupted:
    """Return the outcome of a claim that is taken away by hand: nothing has happened, unless its run had begun."""
    return Interrupted(reason="released by force") if started else Released()


def cancel_beats(state: State) -> bool:
    """Whether a job that was asked to end is cancelled, with that reason, when its run leads to this state.

    A cancel request beats going back to pending. A run that succeeded, failed for good or was skipped stays so.
    """
    return state in {State.PENDING, State.CANCELLED}


def called_off(made: Settlement, cause: Cancelled) -> Settlement:
    """End a job that would run again, because its run was told to end; its error stays on record."""
    if made.state is State.CANCELLED or not cancel_beats(made.state):
        return made
    return made._replace(
        state=State.CANCELLED,
        reason=cause.reason,
        finished_at=made.ended_at,
        due_at=None,
        attempt=None,
        ended_at=None,
    )


class _Ways(NamedTuple):
    """What can become of a claim: its job goes back to wait, or ends."""

    claim: Claim
    now: Instant
    back: Settlement
    end: Settlement

    def too_late(self, due_at: Instant) -> bool:
        """Whether the job has expired before a next try at that time."""
        return self.claim.expires_at is not None and self.claim.expires_at <= due_at


def _decide(ways: _Ways, outcome: _NoSuccess, policy: RetryPolicy, rng: random.Random) -> Settlement:
    match outcome:
        case Failed():
            made = _decide_failure(ways, outcome, policy, rng)
        case Cancelled():
            made = ways.end._replace(state=State.CANCELLED, reason=outcome.reason)
        case Skipped():
            made = ways.end._replace(state=State.SKIPPED, reason=outcome.reason)
        case Snoozed():
            due_at = ways.now + max(outcome.wait, LEAST_SNOOZE)
            made = ways.back._replace(due_at=due_at, attempt=SNOOZED)
            if ways.too_late(due_at):
                made = ways.end._replace(state=State.SKIPPED, reason=_EXPIRED)
        case Released():
            again_at = ways.now + outcome.wait if outcome.wait else outcome.until
            made = ways.back._replace(due_at=again_at, reason=outcome.reason)
        case Interrupted() if ways.claim.on_crash == "fail":
            made = ways.end._replace(state=State.CANCELLED, reason=outcome.reason)
        case Interrupted():
            # A stop is not the fault of the job: it runs again, unless it asked never to run twice.
            made = ways.back._replace(due_at=ways.now, attempt="interrupted", reason=outcome.reason)
        case Crashed():
            made = _decide_crash(ways, outcome)
    return made


def _decide_failure(ways: _Ways, outcome: Failed, policy: RetryPolicy, rng: random.Random) -> Settlement:
    failures = ways.claim.failures + 1
    allowed = policy.retries if ways.claim.retries is None else ways.claim.retries
    kind = outcome.error_type or outcome.reason
    tried: dict[str, Any] = {
        "error": outcome.error,
        "traceback": outcome.traceback,
        "error_type": outcome.error_type,
        "fingerprint": fingerprint_of(ways.claim.task, kind, outcome.place),
        "failures": failures,
    }
    if outcome.final or failures > allowed:
        return ways.end._replace(state=State.FAILED, reason=outcome.reason, **tried)
    wait, problem = (outcome.wait, "") if outcome.wait is not None else _retry_wait(policy, failures, rng)
    tried["error"] = outcome.error + problem
    due_at = ways.now + wait
    if ways.too_late(due_at):
        return ways.end._replace(state=State.FAILED, reason=_EXPIRED, **tried)
    return ways.back._replace(due_at=due_at, attempt=outcome.reason, **tried)


def fingerprint_of(task: str, kind: str, place: str | None = None) -> str:
    """Return a short text that is the same for failures of a kind, whatever their message and their line."""
    text = "\n".join((task, kind, place or ""))
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=8).hexdigest()


def _retry_wait(policy: RetryPolicy, failures: int, rng: random.Random) -> tuple[Micros, str]:
    """Ask the policy, which may be the user's own code: if it raises, return the usual wait and a note."""
    try:
        wait = policy.delay(failures, rng)
        if type(wait) is int and 0 <= wait <= LONGEST_DURATION:
            return wait, ""
        problem = "gave no whole number of microseconds in range"
    except Exception as error:  # noqa: BLE001 - a run that failed must not go unrecorded
        problem = f"raised {type(error).__name__}"
    return NO_RETRIES.delay(failures, rng), f"\n(its retry policy {problem}; the usual wait is used)"


def _decide_crash(ways: _Ways, outcome: Crashed) -> Settlement:
    """Rescue: an unstarted claim goes back; a started one runs again or fails, as the task chose."""
    claim = ways.claim
    blames = claim.blames + outcome.blamed
    # 0, 1, 4, 16 … 60 seconds, by how many workers it took down.
    wait = min(SECOND * 4 ** (blames - 1), 60 * SECOND) if blames else 0
    if not outcome.started:
        crashes = claim.crashes + (outcome.suspected or outcome.blamed)
        due_at = ways.now + wait if outcome.blamed else None
        return ways.back._replace(due_at=due_at, crashes=crashes, blames=blames)
    crashes = claim.crashes + 1
    error = f"worker {outcome.worker} died while the job ran"
    tried: dict[str, Any] = {"worker": outcome.worker, "crashes": crashes, "blames": blames}
    tried["fingerprint"] = fingerprint_of(claim.task, "crashed")
    poison = outcome.blamed and is_poison(crashes=crashes, blames=blames)
    if poison and claim.on_crash != "fail":
        error = f"{crashes} workers died around this job, {blames} of them with it as the only suspect; it is not tried again"
    if poison or claim.on_crash == "fail" or ways.too_late(ways.now + wait):
        return ways.end._replace(state=State.FAILED, reason="crashed", error=error, **tried)
    return ways.back._replace(due_at=ways.now + wait, attempt="lost", error=error, **tried)
