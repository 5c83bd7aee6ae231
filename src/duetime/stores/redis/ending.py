"""What is written for a job that ends or goes back, with what is called back because of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from duetime.model.callbacks import call_back
from duetime.model.job import Claim, NewJob
from duetime.model.outcome import MAX_SNOOZED, SNOOZED, Settlement, as_stored
from duetime.model.states import State
from duetime.model.stored import StoredJob
from duetime.stores.redis import rows


def changed(told: Settlement, standing: rows.Standing | None) -> dict[str, Any]:
    """Name what a settlement says, without what it leaves open, and with what is called back because of it."""
    row = rows.settlement(as_stored(told) if told.fleeting else told)
    new_jobs = list(told.new_jobs)
    if standing is not None:
        row["requested"] = standing.cancel_requested
        new_jobs += called_back(told, standing)
    if new_jobs:
        row["new_jobs"] = [rows.new_job(job) for job in new_jobs]
    if told.attempt == SNOOZED and told.token.fence > MAX_SNOOZED:
        row["trim"] = told.token.fence - MAX_SNOOZED
    return row


def called_back(told: Settlement, standing: rows.Standing) -> list[NewJob]:
    """Return the job to enqueue because of an end, if it is one: what is told of it counts also if it is not stored."""
    called = call_back(_ended(told, standing))
    return [] if called is None else [called]


def _ended(told: Settlement, standing: rows.Standing) -> StoredJob:
    """Return a job as it will be once a settlement is written."""
    stopped = standing.cancel_requested and told.state in {State.PENDING, State.CANCELLED}
    return replace(
        standing.job,
        state=State.CANCELLED if stopped else told.state,
        reason=standing.cancel_reason if stopped else told.reason,
        finished_at=told.finished_at or standing.now,
        failures=told.failures,
        crashes=told.crashes,
        blames=told.blames,
        result=told.result,
        result_error=told.result_error,
        error=told.error,
        traceback=told.traceback,
    )


def called_off(standing: rows.Standing, *, reason: str) -> list[dict[str, object]]:
    """Return what a job that waits calls back when it is cancelled."""
    ended = replace(standing.job, state=State.CANCELLED, reason=reason, finished_at=standing.now)
    new = call_back(ended)
    return [] if new is None else [rows.new_job(new)]


def claim_of(standing: rows.Standing, *, claim_id: str) -> Claim:
    """Return the claim that takes a job away from whoever has it."""
    job = standing.job
    same: dict[str, Any] = {name: getattr(job, name) for name in Claim._fields if name in _SHARED}
    same["fence"] = job.fence + 1
    return Claim(job_id=job.id, claim_id=claim_id, claimed_at=standing.now, **same)


_SHARED = frozenset(StoredJob.__dataclass_fields__)
