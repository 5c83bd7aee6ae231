"""What becomes of requests with unique keys; loaded only where a job has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from duetime.errors import KeyTaken
from duetime.model.job import JobId, Key, KeyDecision, KeyHolder, NewJob, decide_key
from duetime.model.states import State
from duetime.model.time import Instant
from duetime.stores.redis.rows import job_fields


class ArgumentsMismatch(NamedTuple):
    """A request that is served by a job with other arguments."""

    job: NewJob
    served_by: JobId


class KeyHolders(NamedTuple):
    """What a look has found: the time, and who answers for each request that somebody answers for."""

    now: Instant
    holders: Mapping[JobId, KeyHolder]


@dataclass(slots=True)
class EnqueuePlan:
    """What to do about a batch of requests, as if they came one after another."""

    ids: dict[JobId, JobId] = field(default_factory=dict[str, str])
    """The id of each request's job, by the id that was made for it."""
    steps: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    keys: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Who must still have the keys."""
    clashes: list[ArgumentsMismatch] = field(default_factory=list[ArgumentsMismatch])
    _held: dict[tuple[str, str], KeyHolder] = field(default_factory=dict[tuple[str, str], KeyHolder])

    def consider(self, job: NewJob, seen: KeyHolders) -> None:
        """Decide about the next request; raises `KeyTaken` for one that insists on its own job."""
        key = job.key
        if key is None:
            self._add(job)
            return
        found = seen.holders.get(job.id)
        self.keys.append(_expected_holder(job, key, found))
        if found is not None and found.id == job.id:
            self.ids[job.id] = job.id
            return
        holder = self._held.get((job.task, key.value), found)
        verdict = None if holder is None else decide_key(key, holder, now=seen.now)
        if holder is None or verdict is None:
            self._hold(job, key)
        elif verdict is KeyDecision.REFUSE:
            raise _key_taken(job, key, holder)
        elif verdict is KeyDecision.JOIN:
            self.ids[job.id] = holder.id
            if job.payload != holder.payload:
                self.clashes.append(ArgumentsMismatch(job, holder.id))
        elif verdict is KeyDecision.REPLACE:
            self.steps.append({"verb": "replace", "id": holder.id, "job": job_fields(job)})
            self.ids[job.id] = holder.id
            self._held[job.task, key.value] = holder._replace(payload=job.payload)
        else:
            self.steps.append({"verb": "free", "id": holder.id})
            self._hold(job, key)

    def stored(self, jobs: Sequence[NewJob], ids: Sequence[JobId]) -> list[JobId]:
        """Return where requests are stored, given what came of the steps."""
        placed = {step["id"]: job_id for step, job_id in zip(self.steps, ids, strict=True)} | self.ids
        return [placed[job.id] for job in jobs]

    def _hold(self, job: NewJob, key: Key) -> None:
        self._add(job)
        self._held[job.task, key.value] = KeyHolder(job.id, job.state, job.payload, None, key.keep, None)

    def _add(self, job: NewJob) -> None:
        self.steps.append({"verb": "add", "id": job.id, "job": job_fields(job)})


def plan_enqueue(jobs: Sequence[NewJob], seen: KeyHolders) -> EnqueuePlan:
    """Decide about requests in their order."""
    made = EnqueuePlan()
    for job in {job.id: job for job in jobs}.values():
        made.consider(job, seen)
    return made


def read_key_holders(now: Instant, found: Sequence[tuple[JobId, Sequence[Any]]]) -> KeyHolders:
    """Read what a look has found."""
    return KeyHolders(
        now, {asked: KeyHolder(id_, State(state), *rest) for asked, (id_, state, *rest) in found}
    )


def _expected_holder(job: NewJob, key: Key, holder: KeyHolder | None) -> dict[str, Any]:
    asked = {"id": job.id, "task": job.task, "unique_key": key.value}
    return asked if holder is None else asked | {"holder": holder.id, "state": holder.state}


def _key_taken(job: NewJob, key: Key, holder: KeyHolder) -> KeyTaken:
    text = f"{job.task} has the job {holder.id} ({holder.state}) under the key {key.value!r} already"
    return KeyTaken(text, key=key.value, job_id=holder.id)
