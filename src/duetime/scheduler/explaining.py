"""Explanations as a client reads them: the facts are gathered here, the sentences are the model's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from duetime.model.explain import Facts, explain
from duetime.model.instants import to_datetime
from duetime.model.job import JobId
from duetime.scheduler.lookup import find_job
from duetime.stores.base import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One sentence, and when it happened; `None` for what is so now."""

    at: datetime | None
    text: str

    def __str__(self) -> str:
        when = "now" if self.at is None else self.at.strftime("%Y-%m-%d %H:%M:%S")
        return f"{when:19}  {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What happened to a job, and what it waits for."""

    job_id: JobId
    lines: tuple[Line, ...]

    def __str__(self) -> str:
        return "\n".join(str(line) for line in self.lines)


async def explain_job(store: Store, job_id: JobId) -> Explanation:
    """Gather what the store knows about a job and tell it; raises `JobNotFound`."""
    job = await find_job(store, job_id)
    outlook = await store.outlook(job)
    facts = Facts(
        now=outlook.now,
        job=job,
        attempts=await store.attempts(job_id),
        workers=await store.workers(),
        queue_paused_at=outlook.paused_at,
        queue_paused_reason=outlook.paused_reason,
        limits=outlook.limits,
    )
    lines = tuple(
        Line(at=None if sentence.at is None else to_datetime(sentence.at), text=sentence.text)
        for sentence in explain(facts)
    )
    return Explanation(job_id=job_id, lines=lines)
