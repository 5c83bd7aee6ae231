"""Where the dispatcher leaves what came of runs: to be stored, logged, and told to subscribers."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from duetime.model.events import EventKind, kind_of
from duetime.model.job import Claim
from duetime.model.outcome import Outcome, Settlement, Succeeded, succeed
from duetime.model.states import State
from duetime.model.time import Instant
from duetime.runtime.events import Events, WorkerEvents
from duetime.runtime.identity import WorkerIdentity
from duetime.runtime.running.output import OutputWriter
from duetime.runtime.running.run import Run
from duetime.runtime.service import HealthObserver
from duetime.runtime.settling.job_log import JobLog
from duetime.runtime.settling.settler import Settler, StartMarker
from duetime.runtime.store_clock import StoreClock
from duetime.stores.base import JobStore

log = logging.getLogger("duetime.worker")


class Outcomes:
    """The services that write what becomes of jobs, and the log and the events that tell of it."""

    def __init__(
        self,
        store: JobStore,
        health: HealthObserver,
        *,
        identity: WorkerIdentity,
        time: StoreClock,
        events: Events,
        captures_logs: bool,
        quiet: int,
    ) -> None:
        """Successes are logged at the level `quiet`."""
        self.events = WorkerEvents(events, identity, time)
        self.settler = Settler(store, health, on_written=self.events.settled)
        self.marker = StartMarker(store, health)
        self.output = OutputWriter(store, health, captures_logs=captures_logs)
        self.failed = 0
        self._log = JobLog(identity, quiet=quiet, loop=asyncio.get_running_loop())

    def start(self) -> None:
        """Begin to write."""
        for service in (self.settler, self.marker, self.output):
            service.start()

    async def stop(self, *, timeout: float) -> None:
        """Write what is left, but not for longer than the timeout."""
        await self.marker.stop()
        await self.output.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self.settler.drain()
        await self.settler.stop()
        if unwritten := len(self.settler.tokens()):
            log.error(
                "the outcomes of %d run(s) could not be stored before the worker stopped; "
                "others will find these jobs as if the worker had died",
                unwritten,
            )
        self._log.close()

    def put(
        self,
        claim: Claim,
        settlement: Settlement,
        outcome: Outcome,
        *,
        cancelling: bool,
        may_wait: bool = False,
    ) -> None:
        """Have a settlement written; `cancelling`: the job was asked to end, `may_wait`: it need not be written at once."""
        kind: EventKind | None = EventKind.JOB_SUCCEEDED
        if settlement.state is State.SUCCEEDED:
            self._log.succeeded += 1
        else:
            kind = kind_of(settlement, cancelling=cancelling)
            self.failed += settlement.state is State.FAILED
        if self.events.heard:
            self.events.expect(claim, settlement, kind)
        self.settler.put(settlement, may_wait=may_wait)
        if kind is not None and (self._log.each or kind is not EventKind.JOB_SUCCEEDED):
            self._log.tell(kind, claim, settlement, outcome)

    def recorded(self, run: Run, ended_at: Instant) -> None:
        """Tell of a success that a run has recorded itself."""
        if self.events.heard:
            self.events.recorded(run, ended_at)
        self._log.succeeded += 1
        if self._log.each:
            success = Succeeded()
            settlement = succeed(run.claim, success, started_at=run.started_at, now=ended_at)
            self._log.tell(EventKind.JOB_SUCCEEDED, run.claim, settlement, success)
