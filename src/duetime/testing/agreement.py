"""Whether a store and the model of one show the same, and whether the last step was legal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from duetime.model.job import Claim, JobId
from duetime.model.schedule.occurrences import gives_way
from duetime.model.schedule.record import StoredSchedule
from duetime.model.schedule.runs import ScheduleRuns
from duetime.model.states import LEGAL
from duetime.model.stored.jobs import StoredJob
from duetime.stores.base import NextDue, Store
from duetime.testing.schedule_model import ModelStore

QUEUES = ("a", "b")
TASKS = ("greet", "unknown")
"""The first is what workers know."""
_COUNTED = 2
"""Up to how many runs are counted."""


async def agree(
    store: Store, model: ModelStore, *, before: Mapping[JobId, StoredJob]
) -> Mapping[JobId, StoredJob]:
    """Compare everything that can be read; return the jobs, to be compared with after the next step."""
    records = {record.id: record for record in await store.get(list(model.jobs))}
    assert {key: visible(record) for key, record in records.items()} == {
        key: visible(job.record) for key, job in model.jobs.items()
    }
    assert await store.counts() == model.counts()
    workers = {row.id: (row.state, row.lease_until) for row in await store.workers()}
    for name, lease in model.workers.items():
        lapsed = lease.state == "alive" and lease.until < model.clock.now()
        assert workers[name][0] == ("dead" if lapsed else lease.state)
        assert lease.state != "alive" or workers[name][1] == lease.until
    assert {queue.name for queue in await store.queues() if queue.paused_at is not None} == model.paused
    expected = NextDue(model.clock.now(), model.next_due(QUEUES, TASKS[:1]))
    assert await store.next_due(QUEUES, TASKS[:1]) == expected
    agree_on_schedules(await store.schedules(), model)
    if model.schedules:
        agree_on_runs(await store.runs(list(model.schedules), most=_COUNTED), model)
    check_step(before, records)
    return records


def agree_on_claim(claim: Claim, model: ModelStore) -> None:
    """A claim says what the model knows."""
    record = model.jobs[claim.job_id].record
    for name in ("task", "payload", "queue", "priority", "due_at", "failures", "crashes", "blames"):
        assert getattr(claim, name) == getattr(record, name)
    assert (claim.schedule, claim.occurrence) == (record.schedule, record.occurrence)
    assert claim.cancel_requested == (record.cancel_requested_at is not None)
    assert claim.claimed_at == model.clock.now()


def agree_on_schedules(records: Iterable[StoredSchedule], model: ModelStore) -> None:
    """Schedules are where the model has them; an edit raises `rev`, how far is the store's own affair."""
    found = {record.name: record for record in records}
    assert found.keys() == model.schedules.keys()
    for name, schedule in model.schedules.items():
        record = found[name]
        own: dict[str, Any] = dict.fromkeys(("rev", "created_at", "updated_at", "live", "streak"), 0)
        assert replace(record, **own) == replace(schedule, **own)
        assert record.live == model.live(name)
        assert record.streak == model.streak(name)
        assert record.rev >= schedule.rev
        model.schedules[name] = replace(schedule, rev=record.rev)


def agree_on_runs(found: Mapping[str, ScheduleRuns], model: ModelStore) -> None:
    """Schedules fare as the model has it."""
    assert found.keys() == model.schedules.keys()
    for name, runs in found.items():
        last = None if runs.last is None else runs.last.id
        assert (last, runs.succeeded, runs.failed, runs.at_least) == model.runs(name, most=_COUNTED)


def check_step(before: Mapping[JobId, StoredJob], after: Mapping[JobId, StoredJob]) -> None:
    """No job vanished, moved against the table, lost its fence, changed after its end, or has a twin."""
    assert after.keys() >= before.keys()
    for job_id, old in before.items():
        new = after[job_id]
        assert new.fence >= old.fence
        assert new.state is old.state or new.state in LEGAL[old.state]
        assert place(new) == place(old) or not old.state.terminal
    taken = Counter((job.schedule, job.occurrence) for job in after.values() if job.occurrence is not None)
    assert max(taken.values(), default=1) == 1


def place(record: StoredJob) -> StoredJob:
    """A record without what one of occurrences that have not run gives up when jobs are made for them after all."""
    if not gives_way(record):
        return record
    return replace(record, occurrence=None, span_first=None, span_count=1)


def visible(record: StoredJob) -> StoredJob:
    """What every store must show alike; whether an ended job remembers a request to cancel is its own affair."""
    return replace(record, cancel_requested_at=None) if record.state.terminal else record
