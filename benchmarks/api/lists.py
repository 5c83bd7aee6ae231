"""Questions about many stored jobs, asked over the API one after the other."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from benchmarks.ledger import now, percentile
from duetime import Scheduler
from duetime.web import make_api

_BASE = "http://localhost/api/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request."""

    title: str
    path: str
    values: Mapping[str, Any]


def questions() -> list[Question]:
    """Return what is asked."""

    def some(title: str, **values: Any) -> Question:
        return Question(title=title, path="/jobs", values=values)

    return [
        some("newest"),
        some("newest, 200 a page", limit=200),
        some("of a week ago", until="7d"),
        some("since yesterday", since="1d"),
        *(
            some(f"state={state}", state=state)
            for state in ("running", "pending", "failed", "cancelled", "succeeded")
        ),
        *(some(f"registry={one}", registry=one) for one in ("queued", "scheduled", "active", "failed")),
        some("schedule, common", schedule="schedule-7"),
        some("schedule, rare", schedule="rare"),
        some("key", key="key-10"),
        some("task, common", task="task-3"),
        some("queue, common", queue="mail"),
        some("queue and state", queue="mail", state="pending"),
        some("task, rare", task="rare"),
        some("queue, rare", queue="rare"),
        some("tag, rare", tag="rare"),
        some("kind and state", kind="one_off", state="failed"),
        Question(title="failures", path="/failures", values={}),
        Question(title="queues", path="/queues", values={}),
        Question(title="schedules", path="/schedules", values={}),
        Question(title="audit", path="/audit", values={}),
        Question(title="health of schedules", path="/../../health/schedules", values={}),
    ]


async def ask(*, url: str, rounds: int) -> dict[str, dict[str, float]]:
    """In a child: return the milliseconds that answers took, by question."""
    scheduler = Scheduler(url)
    async with scheduler:
        token = await scheduler.tokens.add(f"benchmark {now()}")
        headers = {"Authorization": f"Bearer {token.secret}"}
        transport = httpx.ASGITransport(make_api(scheduler))
        async with httpx.AsyncClient(transport=transport, headers=headers, base_url=_BASE, timeout=60) as api:
            found: dict[str, dict[str, float]] = {}
            for question in questions():
                times: list[float] = []
                for _ in range(rounds):
                    began = time.perf_counter()
                    response = await api.get(question.path, params=dict(question.values))
                    times.append(1_000 * (time.perf_counter() - began))
                    response.raise_for_status()
                said = response.json()
                found[question.title] = {
                    "p50": percentile(times, 0.5),
                    "p95": percentile(times, 0.95),
                    "items": len(said.get("items", ())),
                    "partial": said.get("partial", False),
                }
            return found
