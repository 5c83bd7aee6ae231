"""What people do to jobs and queues: cancel, delete, edit, release, pause, limit, purge, prune."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from duetime.errors import StoreUnavailable
from duetime.model.ids import new_token
from duetime.model.job import JobEdit, JobId
from duetime.model.limits import UNLIMITED, Gate
from duetime.model.retention import Remains, Retention, is_latest, note_on, outlived
from duetime.model.states import State
from duetime.model.stored.audit import NOTHING_NOTED, AuditEntry, Noted
from duetime.model.stored.jobs import StoredJob
from duetime.model.text import clean_text
from duetime.model.time import DAY, LATEST, Instant
from duetime.stores.base import CancelAnswer, DeleteAnswer, EditAnswer, Hint, PruneResult, ReleaseAnswer
from duetime.stores.base.jobs import given_back
from duetime.stores.redis import messages
from duetime.stores.redis.connection import RedisStorePart
from duetime.stores.redis.runs import callbacks_of_cancelled, claim_that_takes_over, settlement_request

A = TypeVar("A", CancelAnswer, DeleteAnswer, EditAnswer, ReleaseAnswer)
_TRIES: Final = 20
"""How often a decision is made anew that others have overtaken."""
_JOBS_PER_CALL: Final = 1_000
"""How many jobs one call reads, looks at or changes."""
_UNDECIDED: Final = "undecided"
_UNTOUCHED: Final = {State.PENDING: ReleaseAnswer.WAITING, State.RUNNING: ReleaseAnswer.STARTED}


class RedisControl(RedisStorePart):
    """A part of `RedisStore`."""

    async def get(self, ids: Sequence[JobId]) -> list[StoredJob]:
        """Return the jobs that exist, in the order asked."""
        records: list[StoredJob] = []
        for some in _pieces(ids):
            answer = await self._calls.read("get", {"ids": some}, rows=len(some))
            records += [messages.read_job(row, answer.now) for row in answer.rows]
        return records

    async def cancel(
        self, ids: Sequence[JobId], *, reason: str, noted: Noted = NOTHING_NOTED
    ) -> Mapping[JobId, CancelAnswer]:
        """Cancel pending jobs, flag claimed ones and hint their workers."""
        return await _in_pieces(ids, partial(self._cancel, reason=clean_text(reason), noted=noted))

    async def delete(
        self, ids: Sequence[JobId], *, noted: Noted = NOTHING_NOTED
    ) -> Mapping[JobId, DeleteAnswer]:
        """Remove jobs that no worker has."""
        return await _in_pieces(ids, partial(self._delete, noted=noted))

    async def edit(
        self, ids: Sequence[JobId], change: JobEdit, *, noted: Noted = NOTHING_NOTED
    ) -> Mapping[JobId, EditAnswer]:
        """Change pending jobs, and hint the workers."""
        return await _in_pieces(ids, partial(self._edit, change=change, noted=noted))

    async def release(
        self, ids: Sequence[JobId], *, force: bool, noted: Noted = NOTHING_NOTED
    ) -> Mapping[JobId, ReleaseAnswer]:
        """Take claimed jobs away from their workers and hint those."""
        return await _in_pieces(ids, partial(self._release, force=force, noted=noted))

    async def _delete(self, ids: Sequence[JobId], *, noted: Noted) -> Mapping[JobId, DeleteAnswer]:
        request = {"ids": ids, "noted": messages.noted_fields(noted, ids)}
        facts, _ = await self._calls.write("delete", request, rows=len(ids))
        return dict(zip(ids, map(DeleteAnswer, facts["answers"]), strict=True))

    async def _edit(
        self, ids: Sequence[JobId], *, change: JobEdit, noted: Noted
    ) -> Mapping[JobId, EditAnswer]:
        said = messages.noted_fields(noted, ids)
        request = {"ids": ids, "change": change._asdict(), "latest": LATEST, "noted": said}
        facts, _ = await self._calls.write("edit", request, hints=[Hint("jobs")], rows=len(ids))
        return dict(zip(ids, map(EditAnswer, facts["answers"]), strict=True))

    async def _release(
        self, ids: Sequence[JobId], *, force: bool, noted: Noted
    ) -> Mapping[JobId, ReleaseAnswer]:
        """Take jobs away that are as they were when it was decided what becomes of them."""
        answers = dict.fromkeys(ids, ReleaseAnswer.UNKNOWN)
        waiting = list(answers)
        for _ in range(_TRIES):
            found = await self._standing(waiting)
            for job_id, standing in found.items():
                answers[job_id] = _UNTOUCHED.get(standing.job.state, ReleaseAnswer.FINISHED)
            running = [one for one in found.values() if one.job.state is State.RUNNING]
            held = [one for one in running if force or one.job.started_at is None]
            if not held:
                return answers
            said = messages.noted_fields(noted, [one.job.id for one in held])
            changes = [_release_request(standing) for standing in held]
            request = {"changes": changes, "force": force, "noted": said}
            facts, _ = await self._calls.write("release", request, hints=[Hint("jobs")])
            moved: list[int] = facts["moved"]
            waiting = [held[place - 1].job.id for place in moved]
            for job in (standing.job for standing in held if standing.job.id not in waiting):
                answers[job.id] = ReleaseAnswer.RELEASED
                self._calls.subscribers.notify(Hint("worker", job.worker or ""))
            if not waiting:
                return answers
        raise StoreUnavailable("jobs that were to be released changed hands again and again")

    async def _cancel(
        self, ids: Sequence[JobId], *, reason: str, noted: Noted = NOTHING_NOTED, waiting_only: bool = False
    ) -> Mapping[JobId, CancelAnswer]:
        """Cancel jobs; those that call others back when it is known whom, which takes a second call."""
        answers: dict[JobId, str] = dict.fromkeys(ids, _UNDECIDED)
        called: dict[JobId, list[messages.NamedValues]] = {}
        for _ in range(_TRIES):
            asked = [job_id for job_id, answer in answers.items() if answer == _UNDECIDED]
            request = {"ids": asked, "reason": reason, "called": called, "waiting_only": waiting_only}
            request |= {"noted": messages.noted_fields(noted, asked)}
            hints = [Hint("jobs")] if called else []
            facts, undecided = await self._calls.write("cancel", request, hints=hints)
            answers |= zip(asked, facts["answers"], strict=True)
            for worker in facts["workers"]:
                self._calls.subscribers.notify(Hint("worker", worker))
            if not undecided:
                return {job_id: CancelAnswer(answer) for job_id, answer in answers.items()}
            for standing in (messages.read_job_with_claim(row, facts["now"]) for row in undecided):
                called[standing.job.id] = callbacks_of_cancelled(standing, reason=reason)
        raise StoreUnavailable("jobs that were to be cancelled changed again and again")

    async def pause_queue(self, queue: str, *, reason: str | None, entry: AuditEntry | None = None) -> None:
        """Hand out nothing more from a queue."""
        request = {"queue": queue, "reason": reason and clean_text(reason)}
        await self._calls.write("pause_queue", request | _noting(entry))

    async def resume_queue(self, queue: str, *, entry: AuditEntry | None = None) -> None:
        """Hand out jobs of a queue again."""
        await self._calls.write("resume_queue", {"queue": queue} | _noting(entry), hints=[Hint("jobs")])

    async def set_queue_limit(
        self, queue: str, limit: Gate | None, *, entry: AuditEntry | None = None
    ) -> None:
        """Limit a queue, or no longer."""
        request = {"queue": queue, **messages.gate_fields(limit or UNLIMITED)}
        await self._calls.write("set_queue_limit", request | _noting(entry), hints=[Hint("jobs")])

    async def purge(
        self, queue: str, *, before: Instant, reason: str, limit: int, entry: AuditEntry | None = None
    ) -> int:
        """Cancel up to `limit` pending jobs of a queue that were stored before, and return how many."""
        asked: messages.NamedValues = {"queue": queue, "before": before, "after": {}}
        asked |= {"limit": limit, "most": _JOBS_PER_CALL}
        purged = 0
        async for facts, _ in self._walk("purgeable", asked):
            if some := facts["ids"][: limit - purged]:
                # One entry for all: it is kept once, with the first that is cancelled.
                noted = {} if entry is None else dict.fromkeys(some, entry)
                why = clean_text(reason)
                answers = await self._cancel(some, reason=why, noted=noted, waiting_only=True)
                purged += list(answers.values()).count(CancelAnswer.CANCELLED)
            if purged >= limit:
                break
        return purged

    async def prune(self, retention: Retention, *, after: JobId = "", dry_run: bool = False) -> PruneResult:
        """Look at a stretch of jobs behind one, oldest first, and remove what is old."""
        facts, found = await self._calls.read("prunable", {"after": after, "most": _JOBS_PER_CALL})
        now, last = facts["now"], facts.get("last")
        ended = [messages.read_remains(row) for row in found]
        old = [job for job in ended if retention.covers(job, now=now)]
        firsts = await self._first_latest(old, keep=retention.keep_per_schedule)
        gone = [job.id for job in old if not is_latest(job, firsts)]
        if dry_run:
            return PruneResult(len(gone), last)
        if retention.before is not None and not after:
            await self._prune_rest(before=retention.before - DAY)
        spent = outlived(ended, going=frozenset(gone), now=now)
        if not gone and not spent:
            return PruneResult(0, last)
        emptied = [{"id": job.id, "note": note_on(job.state, job.ttl)} for job in spent]
        request = {"gone": gone, "outlived": emptied}
        facts, _ = await self._calls.write("prune", request, rows=len(gone) + len(emptied))
        return PruneResult(facts["gone"], last)

    async def _prune_rest(self, *, before: Instant) -> None:
        """Forget workers that have been gone for long, and what they were told and schedules went through that long ago."""
        more = True
        while more:
            facts, _ = await self._calls.write("prune_rest", {"before": before, "most": _JOBS_PER_CALL})
            more = facts["more"]

    async def _first_latest(self, old: Iterable[Remains], *, keep: int) -> Mapping[str, Instant | None]:
        schedules = sorted({job.schedule for job in old if job.schedule is not None})
        if not keep or not schedules:
            return {}
        _, found = await self._calls.read("first_latest", {"schedules": schedules, "keep": keep})
        return {name: first for name, first in found}  # noqa: C416 - `dict` would not know the types


def _noting(entry: AuditEntry | None) -> messages.NamedValues:
    return {"entry": None if entry is None else messages.entry_fields(entry)}


def _pieces(ids: Sequence[JobId]) -> Iterator[Sequence[JobId]]:
    """Yield a list in parts, since one call for all of it might keep other callers waiting."""
    return (ids[first : first + _JOBS_PER_CALL] for first in range(0, len(ids), _JOBS_PER_CALL))


async def _in_pieces(
    ids: Sequence[JobId], ask: Callable[[Sequence[JobId]], Awaitable[Mapping[JobId, A]]]
) -> dict[JobId, A]:
    """Ask about each job once, some at a time."""
    answers: dict[JobId, A] = {}
    for some in _pieces(list(dict.fromkeys(ids))):
        answers |= await ask(some)
    return answers


def _release_request(standing: messages.JobWithClaim) -> messages.NamedValues:
    """Return what to write for a job that is taken away, with the claim that must still hold."""
    job = standing.job
    change = given_back(claim_that_takes_over(standing, claim_id=new_token()), job.started_at)
    return settlement_request(change, standing) | {"old_fence": job.fence, "old_claim_id": standing.claim_id}
