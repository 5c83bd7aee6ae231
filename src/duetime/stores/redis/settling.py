"""The verbs of a Redis store that write what runs come to, and what they say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from duetime.errors import StoreUnavailable
from duetime.model.callbacks import call_back
from duetime.model.job import NewJob, StoredAttempt, StoredJob, Token
from duetime.model.outcome import MAX_SNOOZED, SNOOZED, Settlement, as_stored
from duetime.model.reports import LogPart, NewLogPart, Progress
from duetime.model.states import State
from duetime.stores.base import Hint
from duetime.stores.redis import rows
from duetime.stores.redis.enqueuing import SOON
from duetime.stores.redis.part import Part
from duetime.stores.redis.rows import FACTS

_TRIES: Final = 20
"""How often callbacks are made anew because somebody has asked for the end of the job meanwhile."""


class Settling(Part):
    """A part of `RedisStore`."""

    async def settle(self, settlements: Sequence[Settlement]) -> frozenset[Token]:
        """Write each change whose fence still holds and return their tokens."""
        accepted: set[Token] = set()
        waiting = list(settlements)
        for _ in range(_TRIES):
            if not waiting:
                return frozenset(accepted)
            ends = await self._ends([change.token for change in waiting if change.calls_back])
            changes = [_change(change, ends.get(change.token.job_id)) for change in waiting]
            facts, _ = await self._calls.write(
                "settle", FACTS, {"changes": changes}, hints=self._settled_hints(waiting)
            )
            accepted |= {waiting[place - 1].token for place in facts["accepted"]}
            waiting = [waiting[place - 1] for place in facts["moved"]]
        raise StoreUnavailable("the cancellation of a job was asked for again and again while it ended")

    async def report(self, progress: Sequence[Progress], logs: Sequence[NewLogPart]) -> None:
        """Write what runs say while they run, fenced."""
        if progress or logs:
            request = {"progress": [rows.progress(said) for said in progress], "logs": rows.log_parts(logs)}
            await self._calls.write("report", FACTS, request)

    async def attempts(self, job_id: str) -> list[StoredAttempt]:
        """Return the tries that ended without ending the job, oldest first."""
        _, found = await self._calls.read("attempts", FACTS, {"id": job_id})
        return sorted(map(rows.attempt, found), key=lambda attempt: attempt.fence)

    async def logs(self, job_id: str, *, after: tuple[int, int] = (0, 0)) -> list[LogPart]:
        """Return what the runs of a job have logged, in order."""
        _, found = await self._calls.read("logs", FACTS, {"id": job_id})
        parts = [
            LogPart(job_id=job_id, fence=fence, attempt=attempt, line=line, text=text)
            for fence, line, (attempt, text) in found
            if (fence, line) > after
        ]
        return sorted(parts, key=lambda part: (part.fence, part.line))

    async def _ends(self, tokens: Sequence[Token]) -> Mapping[str, rows.Standing]:
        """Return what callbacks need to know of jobs that are about to end."""
        if not tokens:
            return {}
        facts, found = await self._calls.read("standing", FACTS, {"ids": [token.job_id for token in tokens]})
        return {standing.job.id: standing for standing in (rows.standing(row, facts["now"]) for row in found)}

    def _settled_hints(self, settlements: Iterable[Settlement]) -> tuple[Hint, ...]:
        soon = self._clock.now() + SOON
        if any(
            (change.state is State.PENDING and (change.due_at or 0) <= soon)
            or change.new_jobs
            or change.calls_back
            for change in settlements
        ):
            return (Hint("jobs"),)
        return (Hint("limits"),) if any(change.limited for change in settlements) else ()


def _change(told: Settlement, standing: rows.Standing | None) -> dict[str, Any]:
    """Name what a settlement says, without what it leaves open, and with what is called back because of it."""
    row = rows.settlement(as_stored(told) if told.fleeting else told)
    new_jobs = list(told.new_jobs)
    if standing is not None:
        row["requested"] = standing.cancel_requested
        new_jobs += _called_back(told, standing)
    if new_jobs:
        row["new_jobs"] = [rows.new_job(job) for job in new_jobs]
    if told.attempt == SNOOZED and told.token.fence > MAX_SNOOZED:
        row["trim"] = told.token.fence - MAX_SNOOZED
    return row


def _called_back(told: Settlement, standing: rows.Standing) -> list[NewJob]:
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
