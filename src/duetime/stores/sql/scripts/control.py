"""What operators do to jobs: cancel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from duetime.model.job import JobId
from duetime.model.states import State
from duetime.model.texts import clean_text
from duetime.model.worker import WorkerId
from duetime.stores.base import CancelAnswer
from duetime.stores.sql import rows
from duetime.stores.sql.driver import Query, Script
from duetime.stores.sql.loader import Statements
from duetime.stores.sql.scripts.jobs import callbacks, insertion


class Cancelled(NamedTuple):
    """What became of each job, and the workers to tell."""

    answers: Mapping[JobId, CancelAnswer]
    workers: frozenset[WorkerId]
    called_back: bool
    """Whether callbacks were enqueued."""


def cancel(sql: Statements, ids: Sequence[JobId], *, reason: str) -> Script[Cancelled]:
    """Cancel what is pending, flag what is claimed."""
    listed = rows.batch((job_id,) for job_id in ids)
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
    return Cancelled(answers, workers, bool(called))
