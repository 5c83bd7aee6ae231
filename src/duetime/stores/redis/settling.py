"""The verbs of a Redis store that write what runs come to, and what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from duetime.errors import StoreUnavailable
from duetime.failpoints import failpoint
from duetime.model.job import Token
from duetime.model.outcome import Settlement, is_plain_success, leaves_work
from duetime.model.reports import LogPart, NewLogPart, Progress
from duetime.model.stored import StoredAttempt
from duetime.stores.base import Hint
from duetime.stores.redis import rows
from duetime.stores.redis.ending import changed
from duetime.stores.redis.part import Part
from duetime.stores.redis.rows import FACTS

_TRIES: Final = 20
"""How often callbacks are made anew because somebody has asked for the end of the job meanwhile."""


class Settling(Part):
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
                "changes": [changed(change, ends.get(change.token.job_id)) for change in waiting],
                "successes": rows.successes(successes),
            }
            hints, several = self._settled_hints(waiting), len(waiting) + len(successes)
            facts, _ = await self._calls.write("settle", FACTS, request, hints=hints, rows=several)
            accepted.update(change.token for change in _at(facts["accepted"], waiting))
            accepted.update(change.token for change in successes)
            accepted.difference_update(change.token for change in _at(facts["refused"], successes))
            waiting, successes = _at(facts["moved"], waiting), []
        raise StoreUnavailable("the cancellation of a job was asked for again and again while it ended")

    async def report(self, progress: Sequence[Progress], logs: Sequence[NewLogPart]) -> None:
        """Write what runs say while they run, fenced."""
        if progress or logs:
            request = {"progress": [rows.progress(said) for said in progress], "logs": rows.log_parts(logs)}
            await self._calls.write("report", FACTS, request, rows=len(progress) + len(logs))

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

    def _settled_hints(self, settlements: Sequence[Settlement]) -> tuple[Hint, ...]:
        if any(map(leaves_work, settlements)):
            return (Hint("jobs"),)
        return (Hint("limits"),) if any(change.limited for change in settlements) else ()


def _at(places: Sequence[int], settlements: Sequence[Settlement]) -> list[Settlement]:
    """Return the ones that the server names by their places, which it counts from one."""
    return [settlements[place - 1] for place in places]
