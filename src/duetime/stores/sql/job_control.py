"""What operators do to single jobs: cancel, delete, change, take back from their workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from duetime.model.ids import new_token
from duetime.model.job import JobEdit, JobId
from duetime.model.states import State
from duetime.model.stored.audit import NOTHING_NOTED, Noted
from duetime.model.text import clean_text
from duetime.model.time import LATEST
from duetime.model.worker import WorkerId
from duetime.stores.base import CancelAnswer, DeleteAnswer, EditAnswer, Hint, ReleaseAnswer
from duetime.stores.base.jobs import given_back
from duetime.stores.sql.driver import Query, Script
from duetime.stores.sql.enqueue import insertion, note
from duetime.stores.sql.settling import callbacks, settle
from duetime.stores.sql.statements.loader import Statements
from duetime.stores.sql.statements.rows import encode_batch, read_checked_claim
from duetime.stores.sql.verbs import HintingScript, SqlSubject, write

CancelAnswers: TypeAlias = Mapping[JobId, CancelAnswer]
_ANSWER_IF_UNTOUCHED = {State.PENDING: ReleaseAnswer.WAITING, State.RUNNING: ReleaseAnswer.STARTED}


class SqlJobControl(SqlSubject):
    """What operators do to single jobs."""

    @write(rows=len)
    def cancel(
        self, ids: Sequence[JobId], *, reason: str, noted: Noted = NOTHING_NOTED
    ) -> HintingScript[CancelAnswers]:
        """Cancel pending jobs, flag claimed ones and hint their workers."""
        return (yield from cancel(self._sql, ids, reason=reason, noted=noted))

    @write(rows=len)
    def delete(
        self, ids: Sequence[JobId], *, noted: Noted = NOTHING_NOTED
    ) -> HintingScript[Mapping[JobId, DeleteAnswer]]:
        """Remove jobs that no worker has."""
        gone = yield from delete(self._sql, ids)
        yield from note(self._sql, map(noted.get, gone))
        answers = dict.fromkeys(ids, DeleteAnswer.UNKNOWN)
        if len(gone) < len(answers):
            known = yield Query(self._sql.standing, {"rows": encode_batch((job_id,) for job_id in ids)})
            answers |= {row[0]: DeleteAnswer.RUNNING for row in known}
        return answers | dict.fromkeys(gone, DeleteAnswer.DELETED)

    @write(rows=len)
    def edit(
        self, ids: Sequence[JobId], change: JobEdit, *, noted: Noted = NOTHING_NOTED
    ) -> HintingScript[Mapping[JobId, EditAnswer]]:
        """Change pending jobs, and hint the workers."""
        edits = encode_batch((job_id, *change) for job_id in ids)
        changed = yield Query(self._sql.edit, {"rows": edits, "latest": LATEST})
        yield from note(self._sql, [noted.get(row[0]) for row in changed])
        listed = encode_batch((job_id,) for job_id in ids)
        answers = dict.fromkeys(ids, EditAnswer.UNKNOWN)
        for job_id, state in (yield Query(self._sql.standing, {"rows": listed})):
            waits = state == State.PENDING and change.if_fence is not None
            # One that waits and was not changed ran a moment ago, or was due at another time.
            untouched = EditAnswer.DIFFERENT if waits else EditAnswer.RUNNING
            answers[job_id] = EditAnswer.FINISHED if State(state).terminal else untouched
        if changed:
            yield Hint("jobs")
        return answers | {row[0]: EditAnswer.CHANGED for row in changed}

    @write(rows=len)
    def release(
        self, ids: Sequence[JobId], *, force: bool, noted: Noted = NOTHING_NOTED
    ) -> HintingScript[Mapping[JobId, ReleaseAnswer]]:
        """Take claims over and settle them as given back, in one transaction; hint the workers that held them."""
        listed = encode_batch((job_id,) for job_id in ids)
        values = {"rows": listed, "claim_id": new_token(), "force": int(force)}
        taken = yield Query(self._sql.reclaim, values)
        if taken:
            back = [given_back(read_checked_claim(row[:-2]), row[-1]) for row in taken]
            yield from settle(self._sql, back)
            yield from note(self._sql, [noted.get(row[0]) for row in taken])
        answers = dict.fromkeys(ids, ReleaseAnswer.UNKNOWN)
        for job_id, state in (yield Query(self._sql.standing, {"rows": listed})):
            answers[job_id] = _ANSWER_IF_UNTOUCHED.get(State(state), ReleaseAnswer.FINISHED)
        if workers := {row[-2] for row in taken if row[-2] is not None}:
            yield from worker_hints(workers)
            yield Hint("jobs")
        return answers | {row[0]: ReleaseAnswer.RELEASED for row in taken}


def cancel(
    sql: Statements, ids: Sequence[JobId], *, reason: str, noted: Noted = NOTHING_NOTED
) -> HintingScript[CancelAnswers]:
    """Cancel what is pending, flag what is claimed."""
    listed = encode_batch((job_id,) for job_id in ids)
    changed = yield Query(sql.cancel, {"rows": listed, "reason": clean_text(reason)})
    yield from note(sql, [noted.get(row[0]) for row in changed])
    answers = dict.fromkeys(ids, CancelAnswer.UNKNOWN)
    if len(changed) < len(answers):
        known = yield Query(sql.standing, {"rows": listed})
        answers |= {row[0]: CancelAnswer.FINISHED for row in known}
    workers: set[WorkerId] = set()
    ended: list[JobId] = []
    for job_id, state, worker, calls in changed:
        cancelled = state == State.CANCELLED
        answers[job_id] = CancelAnswer.CANCELLED if cancelled else CancelAnswer.REQUESTED
        if not cancelled and worker is not None:
            workers.add(worker)
        if cancelled and calls is not None:
            ended.append(job_id)
    yield from worker_hints(workers)
    if called := (yield from callbacks(sql, ended)):
        yield insertion(sql, called)
        yield Hint("jobs")
    return answers


def delete(sql: Statements, ids: Iterable[JobId]) -> Script[list[JobId]]:
    """Remove the jobs that no worker has, with their attempts and logs; return which."""
    found = yield Query(sql.delete_jobs, {"rows": encode_batch((job_id,) for job_id in ids)})
    gone: list[JobId] = [row[0] for row in found]
    listed = encode_batch((job_id,) for job_id in gone)
    yield Query(sql.delete_attempts, {"rows": listed})
    yield Query(sql.delete_logs, {"rows": listed})
    return gone


def worker_hints(names: Iterable[WorkerId]) -> HintingScript[None]:
    """Hint workers."""
    for name in names:
        yield Hint("worker", name)
