"""Claims and doubles for the worker's services."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from duetime.model.job import Claim, Token
from duetime.model.outcome import Settlement
from duetime.model.reports import NewLogPart, Progress
from duetime.model.states import State
from duetime.model.time import Instant, Micros
from duetime.runtime.identity import WorkerIdentity
from duetime.runtime.options import WorkerOptions
from duetime.runtime.pacing import FleetPacing
from duetime.runtime.service import ServiceHealth, WorkerContext
from duetime.runtime.store_clock import StoreClock
from duetime.stores.base import Store

CLAIM = Claim(
    job_id="job",
    fence=1,
    claim_id="claim",
    task="task",
    payload="{}",
    queue="default",
    priority=5,
    due_at=1_000,
    claimed_at=1_000,
    failures=0,
    crashes=0,
    blames=0,
    on_crash="retry",
    retries=None,
    timeout=None,
    schedule=None,
    occurrence=None,
    cancel_requested_at=None,
)


def claim(job_id: str = "job", **changes: Any) -> Claim:
    """Return a claim like any other, but for the changes."""
    return CLAIM._replace(job_id=job_id, **changes)


def settlement(job_id: str = "job", **changes: Any) -> Settlement:
    """Return the settlement of a success, but for the changes."""
    values: dict[str, Any] = {"state": State.SUCCEEDED, "started_at": 1, "finished_at": 2, **changes}
    return Settlement(token=Token(job_id, 1, "claim"), **values)


class StillTime(StoreClock):
    """A store's clock that moves when the test says so; timers fire as soon as the loop runs."""

    def __init__(self, now: Instant = 0) -> None:
        super().__init__()
        self.instant = now

    def now(self) -> Instant:
        return self.instant

    def until(self, instant: Instant) -> float:
        return 0


class NoHealth(ServiceHealth):
    """Notes what a service reports of itself."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[str] = []

    def failed(self, service: str, error: BaseException) -> None:
        self.events.append(f"{service}: {type(error).__name__}")

    def recovered(self, service: str) -> None:
        self.events.append(f"{service}: recovered")


class SettlingStore:
    """Takes settlements, unless an error is due first."""

    def __init__(self, *errors: BaseException | None) -> None:
        self.batches: list[list[Settlement]] = []
        self.errors = list(errors)
        self.refuses: set[str] = set()
        self.marked: list[tuple[list[str], Micros]] = []
        self.reported: list[str] = []

    async def settle(self, settlements: Sequence[Settlement]) -> frozenset[Token]:
        self.batches.append(list(settlements))
        if self.errors and (error := self.errors.pop(0)) is not None:
            raise error
        return frozenset(s.token for s in settlements if s.token.job_id not in self.refuses)

    async def report(self, progress: Sequence[Progress], logs: Sequence[NewLogPart]) -> None:
        self.reported += [part.text for part in logs]

    async def mark_started(self, tokens: Sequence[Token], started_at: Instant) -> None:
        self.marked.append(([token.job_id for token in tokens], started_at))


def context_of(store: object, **changes: Any) -> WorkerContext:
    """Return what the services of a worker share, but for the changes."""
    options: WorkerOptions = changes.get("options") or WorkerOptions()
    values: dict[str, Any] = {
        "options": options,
        "handlers": {},
        "identity": WorkerIdentity(queues=tuple(options.queues), slots=2),
        "time": StillTime(),
        "health": NoHealth(),
        "fleet": FleetPacing(),
    }
    return WorkerContext(store=cast("Store", store), **values | changes)
