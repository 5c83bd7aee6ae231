"""Single jobs moved by hand: put off, or taken away from their workers."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from duetime.model.instants import LATEST, Instant, Micros
from duetime.model.job import Claim, JobId
from duetime.model.outcome import Settlement, decide, recalled
from duetime.model.retry import NO_RETRIES
from duetime.model.states import State
from duetime.model.worker import WorkerId
from duetime.stores.base import ReleaseAnswer, SnoozeAnswer
from duetime.stores.sql import rows
from duetime.stores.sql.driver import Query, Script
from duetime.stores.sql.loader import Statements
from duetime.stores.sql.scripts.jobs import settle


class Released(NamedTuple):
    """What became of each job, and the workers to tell."""

    answers: Mapping[JobId, ReleaseAnswer]
    workers: frozenset[WorkerId]


def snooze(sql: Statements, ids: Sequence[JobId], *, delay: Micros) -> Script[Mapping[JobId, SnoozeAnswer]]:
    """Put off what is pending."""
    listed = rows.batch((job_id,) for job_id in ids)
    moved = yield Query(
        sql.snooze, {"rows": listed, "delay": delay, "latest": LATEST, "last": LATEST - delay}
    )
    answers = dict.fromkeys(ids, SnoozeAnswer.UNKNOWN)
    for job_id, state in (yield Query(sql.standing, {"rows": listed})):
        # One that waits and was not moved ran a moment ago.
        answers[job_id] = SnoozeAnswer.FINISHED if State(state).terminal else SnoozeAnswer.RUNNING
    return answers | {row[0]: SnoozeAnswer.SNOOZED for row in moved}


def release(sql: Statements, ids: Sequence[JobId], *, claim_id: str, force: bool) -> Script[Released]:
    """Take claims over and settle them as given back, in one transaction."""
    listed = rows.batch((job_id,) for job_id in ids)
    taken = yield Query(sql.reclaim, {"rows": listed, "claim_id": claim_id, "force": int(force)})
    if taken:
        yield from settle(sql, [_given_back(rows.checked_claim(row[:-2]), row[-1]) for row in taken])
    answers = dict.fromkeys(ids, ReleaseAnswer.UNKNOWN)
    for job_id, state in (yield Query(sql.standing, {"rows": listed})):
        answers[job_id] = _UNTOUCHED.get(State(state), ReleaseAnswer.FINISHED)
    answers |= {row[0]: ReleaseAnswer.RELEASED for row in taken}
    return Released(answers, frozenset(row[-2] for row in taken if row[-2] is not None))


def _given_back(claim: Claim, started_at: Instant | None) -> Settlement:
    return decide(
        claim,
        recalled(started=started_at is not None),
        policy=NO_RETRIES,
        started_at=started_at,
        now=claim.claimed_at,
        rng=random.Random(),
    )


_UNTOUCHED = {State.PENDING: ReleaseAnswer.WAITING, State.RUNNING: ReleaseAnswer.STARTED}
