"""What operators do to single jobs: cancel, put off, take back from their workers."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from duetime.model.ids import new_token
from duetime.model.job import Claim, JobId
from duetime.model.outcome import Settlement, decide, recalled
from duetime.model.retry import NO_RETRIES
from duetime.model.states import State
from duetime.model.text import clean_text
from duetime.model.time import LATEST, Instant, Micros
from duetime.model.worker import WorkerId
from duetime.stores.base import CancelAnswer, Hint, ReleaseAnswer, SnoozeAnswer
from duetime.stores.sql.driver import Driver, Query, Script
from duetime.stores.sql.enqueue import insertion
from duetime.stores.sql.settling import callbacks, settle
from duetime.stores.sql.statements.loader import Statements
from duetime.stores.sql.statements.rows import encode_batch, read_checked_claim


class CancelResult(NamedTuple):
    """What became of each job, and the workers to tell."""

    answers: Mapping[JobId, CancelAnswer]
    workers: frozenset[WorkerId]
    called_back: bool
    """Whether callbacks were enqueued."""


def cancel(sql: Statements, ids: Sequence[JobId], *, reason: str) -> Script[CancelResult]:
    """Cancel what is pending, flag what is claimed."""
    listed = encode_batch((job_id,) for job_id in ids)
    changed = yield Query(sql.cancel, {"rows": listed, "reason": clean_text(reason)})
    answers = dict.fromkeys(ids, CancelAnswer.UNKNOWN)
    if len(changed) < len(answers):
        known = yield Query(sql.existing, {"rows": listed})
        answers |= {row[0]: CancelAnswer.FINISHED for row in known}
    for job_id, state, *_ in changed:
        answers[job_id] = CancelAnswer.CANCELLED if state == State.CANCELLED else CancelAnswer.REQUESTED
    workers = frozenset(
        worker for _, state, worker, _ in changed if state == State.RUNNING and worker is not None
    )
    ended = [job_id for job_id, state, _, calls in changed if state == State.CANCELLED and calls is not None]
    called = yield from callbacks(sql, ended)
    if called:
        yield insertion(sql, called)
    return CancelResult(answers, workers, bool(called))


class ReleaseResult(NamedTuple):
    """What became of each job, and the workers to tell."""

    answers: Mapping[JobId, ReleaseAnswer]
    workers: frozenset[WorkerId]


def snooze(sql: Statements, ids: Sequence[JobId], *, delay: Micros) -> Script[Mapping[JobId, SnoozeAnswer]]:
    """Put off what is pending."""
    listed = encode_batch((job_id,) for job_id in ids)
    moved = yield Query(
        sql.snooze, {"rows": listed, "delay": delay, "latest": LATEST, "last": LATEST - delay}
    )
    answers = dict.fromkeys(ids, SnoozeAnswer.UNKNOWN)
    for job_id, state in (yield Query(sql.standing, {"rows": listed})):
        # One that waits and was not moved ran a moment ago.
        answers[job_id] = SnoozeAnswer.FINISHED if State(state).terminal else SnoozeAnswer.RUNNING
    return answers | {row[0]: SnoozeAnswer.SNOOZED for row in moved}


def release(sql: Statements, ids: Sequence[JobId], *, claim_id: str, force: bool) -> Script[ReleaseResult]:
    """Take claims over and settle them as given back, in one transaction."""
    listed = encode_batch((job_id,) for job_id in ids)
    taken = yield Query(sql.reclaim, {"rows": listed, "claim_id": claim_id, "force": int(force)})
    if taken:
        yield from settle(sql, [_given_back(read_checked_claim(row[:-2]), row[-1]) for row in taken])
    answers = dict.fromkeys(ids, ReleaseAnswer.UNKNOWN)
    for job_id, state in (yield Query(sql.standing, {"rows": listed})):
        answers[job_id] = _ANSWER_IF_UNTOUCHED.get(State(state), ReleaseAnswer.FINISHED)
    answers |= {row[0]: ReleaseAnswer.RELEASED for row in taken}
    return ReleaseResult(answers, frozenset(row[-2] for row in taken if row[-2] is not None))


def _given_back(claim: Claim, started_at: Instant | None) -> Settlement:
    return decide(
        claim,
        recalled(started=started_at is not None),
        policy=NO_RETRIES,
        started_at=started_at,
        now=claim.claimed_at,
        rng=random.Random(),
    )


_ANSWER_IF_UNTOUCHED = {State.PENDING: ReleaseAnswer.WAITING, State.RUNNING: ReleaseAnswer.STARTED}


class SqlJobControl:
    """A part of `SqlStore`, which has the driver and the statements."""

    _driver: Driver
    _sql: Statements

    async def cancel(self, ids: Sequence[JobId], *, reason: str) -> Mapping[JobId, CancelAnswer]:
        """Cancel pending jobs, flag claimed ones and hint their workers."""
        cancelled = await self._driver.write(lambda: cancel(self._sql, ids, reason=reason), rows=len(ids))
        self._hint_cancelled(cancelled)
        return cancelled.answers

    async def snooze(self, ids: Sequence[JobId], *, delay: Micros) -> Mapping[JobId, SnoozeAnswer]:
        """Put pending jobs off."""
        return await self._driver.write(lambda: snooze(self._sql, ids, delay=delay), rows=len(ids))

    async def release(self, ids: Sequence[JobId], *, force: bool) -> Mapping[JobId, ReleaseAnswer]:
        """Take claimed jobs away from their workers and hint those."""
        claim_id = new_token()
        released = await self._driver.write(
            lambda: release(self._sql, ids, claim_id=claim_id, force=force), rows=len(ids)
        )
        if released.workers:
            self._hint_workers(released.workers)
            self._driver.hint(Hint("jobs"))
        return released.answers

    def _hint_cancelled(self, cancelled: CancelResult) -> None:
        self._hint_workers(cancelled.workers)
        if cancelled.called_back:
            self._driver.hint(Hint("jobs"))

    def _hint_workers(self, names: Iterable[WorkerId]) -> None:
        for name in names:
            self._driver.hint(Hint("worker", name))
