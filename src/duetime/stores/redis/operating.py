"""The verbs of a Redis store that change single jobs from outside: cancel, put off, take back."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from duetime.errors import StoreUnavailable
from duetime.model.ids import new_token
from duetime.model.instants import LATEST, Micros
from duetime.model.job import JobId
from duetime.model.outcome import decide, recalled
from duetime.model.retry import NO_RETRIES
from duetime.model.states import State
from duetime.model.stored import StoredJob
from duetime.model.texts import clean_text
from duetime.stores.base import CancelAnswer, Hint, ReleaseAnswer, SnoozeAnswer
from duetime.stores.redis import rows
from duetime.stores.redis.ending import called_off, changed, claim_of
from duetime.stores.redis.part import Part
from duetime.stores.redis.rows import FACTS

_TRIES: Final = 20
"""How often a decision is made anew that others have overtaken."""
_MOST: Final = 1_000
"""How many jobs one call reads or changes."""
_UNDECIDED: Final = "undecided"
_UNTOUCHED: Final = {State.PENDING: ReleaseAnswer.WAITING, State.RUNNING: ReleaseAnswer.STARTED}


class Operating(Part):
    """A part of `RedisStore`."""

    async def get(self, ids: Sequence[JobId]) -> list[StoredJob]:
        """Return the jobs that exist, in the order asked."""
        records: list[StoredJob] = []
        for some in _pieces(ids):
            facts, found = await self._calls.read("get", FACTS, {"ids": some}, rows=len(some))
            records += [rows.job(row, facts["now"]) for row in found]
        return records

    async def cancel(self, ids: Sequence[JobId], *, reason: str) -> Mapping[JobId, CancelAnswer]:
        """Cancel pending jobs, flag claimed ones and hint their workers."""
        answers: dict[JobId, CancelAnswer] = {}
        for some in _pieces(_once(ids)):
            answers |= await self._cancel(some, reason=reason)
        return answers

    async def snooze(self, ids: Sequence[JobId], *, delay: Micros) -> Mapping[JobId, SnoozeAnswer]:
        """Put pending jobs off."""
        answers: dict[JobId, SnoozeAnswer] = {}
        for some in _pieces(_once(ids)):
            request = {"ids": some, "delay": delay, "latest": LATEST}
            facts, _ = await self._calls.write("snooze", FACTS, request)
            answers |= zip(some, map(SnoozeAnswer, facts["answers"]), strict=True)
        return answers

    async def release(self, ids: Sequence[JobId], *, force: bool) -> Mapping[JobId, ReleaseAnswer]:
        """Take claimed jobs away from their workers and hint those."""
        answers: dict[JobId, ReleaseAnswer] = {}
        for some in _pieces(_once(ids)):
            answers |= await self._release(some, force=force)
        return answers

    async def _release(self, ids: Sequence[JobId], *, force: bool) -> Mapping[JobId, ReleaseAnswer]:
        """Take jobs away that are as they were when it was decided what becomes of them."""
        answers = dict.fromkeys(ids, ReleaseAnswer.UNKNOWN)
        waiting = list(answers)
        for _ in range(_TRIES):
            found = {standing.job.id: standing for standing in await self._standing(waiting)}
            answers |= {
                job_id: _UNTOUCHED.get(standing.job.state, ReleaseAnswer.FINISHED)
                for job_id, standing in found.items()
            }
            held = [standing for standing in found.values() if _may_go(standing.job, force=force)]
            if not held:
                return answers
            request = {"changes": [_given_back(standing) for standing in held], "force": force}
            facts, _ = await self._calls.write("release", FACTS, request, hints=[Hint("jobs")])
            moved: list[int] = facts["moved"]
            waiting = [held[place - 1].job.id for place in moved]
            for job in (standing.job for standing in held if standing.job.id not in waiting):
                answers[job.id] = ReleaseAnswer.RELEASED
                self._calls.subscribers.notify(Hint("worker", job.worker or ""))
            if not waiting:
                return answers
        raise StoreUnavailable("jobs that were to be released changed hands again and again")

    async def _cancel(
        self, ids: Sequence[JobId], *, reason: str, waiting_only: bool = False
    ) -> Mapping[JobId, CancelAnswer]:
        """Cancel jobs; those that call others back when it is known whom, which takes a second call."""
        answers: dict[JobId, str] = dict.fromkeys(ids, _UNDECIDED)
        called: dict[JobId, list[dict[str, object]]] = {}
        reason = clean_text(reason)
        for _ in range(_TRIES):
            asked = [job_id for job_id, answer in answers.items() if answer == _UNDECIDED]
            request = {"ids": asked, "reason": reason, "called": called, "waiting_only": waiting_only}
            hints = [Hint("jobs")] if called else []
            facts, undecided = await self._calls.write("cancel", FACTS, request, hints=hints)
            answers |= zip(asked, facts["answers"], strict=True)
            for worker in facts["workers"]:
                self._calls.subscribers.notify(Hint("worker", worker))
            if not undecided:
                return {job_id: CancelAnswer(answer) for job_id, answer in answers.items()}
            for standing in (rows.standing(row, facts["now"]) for row in undecided):
                called[standing.job.id] = called_off(standing, reason=reason)
        raise StoreUnavailable("jobs that were to be cancelled changed again and again")

    async def _standing(self, ids: Sequence[JobId]) -> list[rows.Standing]:
        facts, found = await self._calls.read("standing", FACTS, {"ids": ids})
        return [rows.standing(row, facts["now"]) for row in found]


def _once(ids: Iterable[JobId]) -> list[JobId]:
    return list(dict.fromkeys(ids))


def _pieces(ids: Sequence[JobId]) -> Iterator[Sequence[JobId]]:
    """Yield a list in parts, since one call for all of it might keep the server from everybody else."""
    return (ids[first : first + _MOST] for first in range(0, len(ids), _MOST))


def _may_go(job: StoredJob, *, force: bool) -> bool:
    return job.state is State.RUNNING and (force or job.started_at is None)


def _given_back(standing: rows.Standing) -> dict[str, Any]:
    """Return what to write for a job that is taken away, with the claim that must still hold."""
    job = standing.job
    change = decide(
        claim_of(standing, claim_id=new_token()),
        recalled(started=job.started_at is not None),
        policy=NO_RETRIES,
        started_at=job.started_at,
        now=standing.now,
        rng=random.Random(),
    )
    return changed(change, standing) | {"old_fence": job.fence, "old_claim_id": standing.claim_id}
