"""What a busy month leaves behind: jobs in all states, of tasks, queues and schedules that are common or rare."""

from __future__ import annotations

import json
from dataclasses import replace

from benchmarks import children
from benchmarks.ledger import now
from duetime import Scheduler, every
from duetime.model.states import State
from duetime.model.stored.copy import COLUMNS, RecordKind, WholeRecord
from duetime.model.stored.jobs import StoredJob

MONTH = 30 * 86_400 * 1_000_000
RARE_EVERY = 50_000
"""One job in so many is of the rare task, queue, schedule, key and tag, and only in the older half."""
SCHEDULES = 50
_PART = 100_000
_BATCH = 2_000
_TASKS = 10


def fill(url: str, jobs: int) -> None:
    """Store them, in parts: a process that measures, or makes ready, has five minutes."""
    end = now()
    for first in range(0, jobs, _PART):
        children.run(store_some, url=url, jobs=jobs, first=first, end=end)


async def store_some(*, url: str, jobs: int, first: int, end: int) -> None:
    """In a child: store them as one store is copied to another, the quickest way that all of them have."""
    scheduler = Scheduler(url)

    @scheduler.task(name="task-0")
    async def task() -> None: ...

    async with scheduler:
        for number in range(SCHEDULES):
            await scheduler.schedules.put(schedule_name(number), every("1h"), task)
        for start in range(first, min(first + _PART, jobs), _BATCH):
            numbers = range(start, min(start + _BATCH, jobs))
            records = [_record(stored_job(number, jobs, end)) for number in numbers]
            await scheduler.store.exchange(RecordKind.JOBS, [], records)


def schedule_name(number: int) -> str:
    """Return the name of a schedule; the first one is rare among the jobs."""
    return "rare" if number == 0 else f"schedule-{number}"


def stored_job(number: int, jobs: int, end: int) -> StoredJob:
    """Return one of them, the oldest first."""
    at = end - MONTH + MONTH * number // jobs
    rare = number < jobs // 2 and number % RARE_EVERY == RARE_EVERY // 2
    state = _state(number)
    ended = state.terminal
    scheduled = rare or number % 5 == 0
    job = StoredJob(
        id=f"{at // 1000:012x}7{number % 4096:03x}8{number:015x}",
        task="rare" if rare else f"task-{number % _TASKS}",
        payload=json.dumps({"user_id": number, "message": "x" * 40}),
        queue="rare" if rare else ("default", "default", "mail", "reports")[number % 4],
        priority=5,
        state=state,
        due_at=at if ended or number % 2 else end + number,
        created_at=at,
        started_at=at + 1_000 if ended or state is State.RUNNING else None,
        finished_at=at + 50_000 if ended else None,
        worker="w" if ended or state is State.RUNNING else None,
        fence=int(ended),
        failures=int(state is State.FAILED),
        crashes=0,
        blames=0,
        on_crash="retry",
        retries=None,
        timeout=None,
        result='"done"' if state is State.SUCCEEDED else None,
        result_error=None,
        error="ConnectionError: refused" if state is State.FAILED else None,
        traceback="Traceback ..." * 20 if state is State.FAILED else None,
        reason=None,
        cancel_requested_at=None,
        schedule=None
        if not scheduled
        else "rare"
        if rare
        else schedule_name(1 + number // 5 % (SCHEDULES - 1)),
        occurrence=at if scheduled else None,
        span_first=None,
        span_count=1,
        key=f"key-{number}" if number % 10 == 0 else None,
        tags="|rare|" if rare else "|common|" if number % 3 == 0 else None,
        error_type="ConnectionError" if state is State.FAILED else None,
        fingerprint=f"{number % 7:016x}" if state is State.FAILED else None,
    )
    return replace(job, key="rare") if rare and ended else job


def _state(number: int) -> State:
    match number % 1_000:
        case 0:
            return State.RUNNING if number % 50_000 == 0 else State.SUCCEEDED
        case n if n < 30:
            return State.FAILED
        case n if n < 40:
            return State.CANCELLED
        case n if n < 60:
            return State.PENDING
        case _:
            return State.SUCCEEDED


def _record(job: StoredJob) -> WholeRecord:
    more = {"claim_id": "c", "cancel_reason": None, "keep_key": None, "key_until": None, "key_held": 1}
    row = (more[name] if name in more else getattr(job, name) for name in COLUMNS[RecordKind.JOBS])
    return WholeRecord(tuple(row), ((), ()))
