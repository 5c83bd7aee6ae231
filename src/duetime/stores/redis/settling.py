"""Writes how runs end and what they report meanwhile, with the jobs that are called back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from duetime.errors import StoreUnavailable
from duetime.failpoints import failpoint
from duetime.model.callbacks import call_back
from duetime.model.job import Claim, NewJob, Token
from duetime.model.outcome import MAX_SNOOZED, SNOOZED, Settlement, as_stored, is_plain_success, leaves_work
from duetime.model.reports import LogPart, NewLogPart, Progress
from duetime.model.states import State
from duetime.model.stored import StoredAttempt, StoredJob
from duetime.stores.base import Hint
from duetime.stores.redis.connection import RedisStorePart
from duetime.stores.redis.rows import (
    ANSWER_DECODER,
    JobWithClaim,
    job_fields,
    log_part_fields,
    progress_fields,
    read_attempt,
    read_job_with_claim,
    settlement_fields,
    success_words,
)


def settlement_request(told: Settlement, standing: JobWithClaim | None) -> dict[str, Any]:
    """Name what a settlement says, without what it leaves open, and with what is called back because of it."""
    row = settlement_fields(as_stored(told) if told.fleeting else told)
    new_jobs = list(told.new_jobs)
    if standing is not None:
        row["requested"] = standing.cancel_requested
        new_jobs += callback_jobs(told, standing)
    if new_jobs:
        row["new_jobs"] = [job_fields(job) for job in new_jobs]
    if told.attempt == SNOOZED and told.token.fence > MAX_SNOOZED:
        row["trim"] = told.token.fence - MAX_SNOOZED
    return row


def callback_jobs(told: Settlement, standing: JobWithClaim) -> list[NewJob]:
    """Return the job to enqueue because of an end, if it is one: what is told of it counts also if it is not stored."""
    called = call_back(_job_as_ended(told, standing))
    return [] if called is None else [called]


def _job_as_ended(told: Settlement, standing: JobWithClaim) -> StoredJob:
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


def callbacks_of_cancelled(standing: JobWithClaim, *, reason: str) -> list[dict[str, object]]:
    """Return what a job that waits calls back when it is cancelled."""
    ended = replace(standing.job, state=State.CANCELLED, reason=reason, finished_at=standing.now)
    new = call_back(ended)
    return [] if new is None else [job_fields(new)]


def claim_that_takes_over(standing: JobWithClaim, *, claim_id: str) -> Claim:
    """Return the claim that takes a job away from whoever has it."""
    job = standing.job
    same: dict[str, Any] = {name: getattr(job, name) for name in Claim._fields if name in _JOB_FIELDS}
    same["fence"] = job.fence + 1
    return Claim(job_id=job.id, claim_id=claim_id, claimed_at=standing.now, **same)


_JOB_FIELDS = frozenset(StoredJob.__dataclass_fields__)

_TRIES: Final = 20
"""How often callbacks are made anew because somebody has asked for the end of the job meanwhile."""


class RedisSettling(RedisStorePart):
    """A part of `RedisStore`."""

    async def settle(self, settlements: Sequence[Settlement]) -> frozenset[Token]:
        """Write each change whose fence still holds and return their tokens."""
        successes: list[Settlement] = []
        waiting: list[Settlement] = []
        for change in settlements:
            plain = is_plain_success(change) and change.result_error is None
            (successes if plain else waiting).append(change)
        accepted: set[Token] = set()
        for _ in range(_TRIES):
            if not waiting and not successes:
                return frozenset(accepted)
            ends = await self._ends([change.token for change in waiting if change.calls_back])
            if ends:
                failpoint("within:settle")
            request = {
                "changes": [settlement_request(change, ends.get(change.token.job_id)) for change in waiting],
                "successes": success_words(successes),
            }
            hints, several = self._settled_hints(waiting), len(waiting) + len(successes)
            facts, _ = await self._calls.write("settle", ANSWER_DECODER, request, hints=hints, rows=several)
            accepted.update(change.token for change in _at_places(facts["accepted"], waiting))
            accepted.update(change.token for change in successes)
            accepted.difference_update(change.token for change in _at_places(facts["refused"], successes))
            waiting, successes = _at_places(facts["moved"], waiting), []
        raise StoreUnavailable("the cancellation of a job was asked for again and again while it ended")

    async def report(self, progress: Sequence[Progress], logs: Sequence[NewLogPart]) -> None:
        """Write what runs say while they run, fenced."""
        if progress or logs:
            request = {
                "progress": [progress_fields(said) for said in progress],
                "logs": log_part_fields(logs),
            }
            await self._calls.write("report", ANSWER_DECODER, request, rows=len(progress) + len(logs))

    async def attempts(self, job_id: str) -> list[StoredAttempt]:
        """Return the tries that ended without ending the job, oldest first."""
        _, found = await self._calls.read("attempts", ANSWER_DECODER, {"id": job_id})
        return sorted(map(read_attempt, found), key=lambda attempt: attempt.fence)

    async def logs(self, job_id: str, *, after: tuple[int, int] = (0, 0)) -> list[LogPart]:
        """Return what the runs of a job have logged, in order."""
        _, found = await self._calls.read("logs", ANSWER_DECODER, {"id": job_id})
        parts = [
            LogPart(job_id=job_id, fence=fence, attempt=attempt, line=line, text=text)
            for fence, line, (attempt, text) in found
            if (fence, line) > after
        ]
        return sorted(parts, key=lambda part: (part.fence, part.line))

    async def _ends(self, tokens: Sequence[Token]) -> Mapping[str, JobWithClaim]:
        """Return what callbacks need to know of jobs that are about to end."""
        if not tokens:
            return {}
        facts, found = await self._calls.read(
            "standing", ANSWER_DECODER, {"ids": [token.job_id for token in tokens]}
        )
        return {
            standing.job.id: standing
            for standing in (read_job_with_claim(row, facts["now"]) for row in found)
        }

    def _settled_hints(self, settlements: Sequence[Settlement]) -> tuple[Hint, ...]:
        if any(map(leaves_work, settlements)):
            return (Hint("jobs"),)
        return (Hint("limits"),) if any(change.limited for change in settlements) else ()


def _at_places(places: Sequence[int], settlements: Sequence[Settlement]) -> list[Settlement]:
    """Return the ones that the server names by their places, which it counts from one."""
    return [settlements[place - 1] for place in places]
