"""Has what came of runs stored, in groups and until it is, logged, and told to subscribers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

from duetime.model.events import EventKind, kind_of
from duetime.model.job import Claim, Token
from duetime.model.outcome import Outcome, Settlement, Succeeded, succeed
from duetime.model.states import State
from duetime.model.text import one_line, short_list
from duetime.model.time import MILLISECOND, SECOND, Instant, Micros
from duetime.runtime.events import Events, WorkerEvents
from duetime.runtime.identity import WorkerIdentity
from duetime.runtime.running.output import OutputWriter
from duetime.runtime.running.run import Run
from duetime.runtime.service import DATABASE_DOWN, Service, ServiceHealth
from duetime.runtime.settling.job_log import JobLog
from duetime.runtime.store_clock import StoreClock, monotonic
from duetime.stores.base import Store

log = logging.getLogger("duetime.worker")

SettledCallback: TypeAlias = Callable[[Sequence[Settlement], frozenset[Token]], None]

_BATCH_SIZE = 1_000
_MAX_BACKLOG = 5_000
_LINGER: Micros = 25 * MILLISECOND
"""How long an outcome that no one waits for may wait for others of a stream, so that they share a commit."""


class Settler(Service):
    """The only writer of outcomes."""

    name = "settler"

    def __init__(
        self, store: Store, health: ServiceHealth, *, on_written: SettledCallback | None = None
    ) -> None:
        """Call `on_written` with every batch and what the store has accepted of it."""
        super().__init__(store, health)
        self._on_written = on_written
        self._waiting: list[Settlement] = []
        self._in_flight: list[Settlement] = []
        self._progress = asyncio.Event()
        self._hurried = False
        self._last_waiting: Micros = -_LINGER
        self.refused = 0

    def put(self, settlement: Settlement, *, may_wait: bool = False) -> None:
        """Take over responsibility for a settlement; one that may wait, and closely follows another, waits for a third."""
        self._waiting.append(settlement)
        if self._hurried:
            # The first one has woken it for the others, too: a round ends only when none are left.
            return
        if may_wait and self._streams():
            self.wakeup.set_after(_LINGER / SECOND)
        else:
            self._hurry()

    def tokens(self) -> set[Token]:
        """Return the claims whose settlements are still to be written."""
        return _tokens(self._waiting) | _tokens(self._in_flight)

    @property
    def full(self) -> bool:
        """Whether the backlog is so deep that slots should stay taken."""
        return len(self._waiting) >= _MAX_BACKLOG

    async def room(self) -> None:
        """Wait until the backlog is short again."""
        while self.full:
            await self._next_batch()

    async def drain(self) -> None:
        """Wait until everything is written."""
        while self._waiting or self._in_flight:
            await self._next_batch()

    async def flush(self) -> None:
        """Wait until what waits now is written, whatever comes meanwhile."""
        waiting = self.tokens()
        while waiting & self.tokens():
            await self._next_batch()

    async def round(self) -> float | None:
        """Write one batch; after a failure the same batch is tried again first."""
        if not self._in_flight:
            self._in_flight, self._waiting = self._waiting[:_BATCH_SIZE], self._waiting[_BATCH_SIZE:]
        # This round has used up what would have woken the next one for those that are left.
        self._hurried = bool(self._waiting)
        if not self._in_flight:
            return None
        accepted = await self._settle(self._in_flight)
        self._report(accepted)
        if self._on_written is not None:
            self._on_written(self._in_flight, accepted)
        self._in_flight = []
        self._progress.set()
        return 0 if self._hurried else None

    async def _next_batch(self) -> None:
        self._hurry()
        self._progress.clear()
        await self._progress.wait()

    def _hurry(self) -> None:
        self._hurried = True
        self.wakeup.set()

    def _streams(self) -> bool:
        """Whether another that may wait has come a moment ago, so that the next one may be expected."""
        before, self._last_waiting = self._last_waiting, monotonic()
        return self._last_waiting - before < _LINGER

    async def _settle(self, batch: list[Settlement]) -> frozenset[Token]:
        try:
            return await self._store.settle(batch)
        except DATABASE_DOWN:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a value does to a driver must stay with that value
            if len(batch) == 1:
                return await self._settle_bare(batch[0], error)
        # One value the database refuses must not hold up its neighbours.
        accepted: frozenset[Token] = frozenset()
        for settlement in batch:
            accepted |= await self._settle([settlement])
        return accepted

    async def _settle_bare(self, settlement: Settlement, error: Exception) -> frozenset[Token]:
        """Write the outcome without the texts that the database refused."""
        log.error(
            "the outcome of job %s could not be stored in full: %s",
            settlement.token.job_id,
            one_line(str(error)),
        )
        bare = settlement._replace(
            result=None,
            result_error="the result could not be stored" if settlement.state is State.SUCCEEDED else None,
            error=None if settlement.error is None else "the error text could not be stored",
            traceback=None,
            progress=None,
            logs=(),
        )
        try:
            return await self._store.settle([bare])
        except DATABASE_DOWN:
            raise
        except Exception:
            # Given up here, so that it does not hold up the others; the claim is found again as a stray.
            log.exception("the outcome of job %s could not be stored at all", settlement.token.job_id)
            return frozenset()

    def _report(self, accepted: frozenset[Token]) -> None:
        if len(accepted) == len(self._in_flight):
            return
        refused = sorted(token.job_id for token in _tokens(self._in_flight) - accepted)
        self.refused += len(refused)
        log.warning(
            "the outcome of %d run(s) was refused, because the claim was lost to another worker: job %s",
            len(refused),
            short_list(refused),
        )


def may_linger(claim: Claim, settlement: Settlement, *, started_at: Instant) -> bool:
    """Whether an outcome may be written a moment later: of a short run at a set time that nothing else waits for."""
    return (
        claim.due_at > claim.claimed_at
        and settlement.state is State.SUCCEEDED
        and (settlement.finished_at or 0) - started_at < _LINGER
        and claim.key is None
        and claim.callbacks is None
        and not settlement.new_jobs
    )


def _tokens(batch: Sequence[Settlement]) -> set[Token]:
    return {settlement.token for settlement in batch}


_MARK_AFTER = 0.1
"""Seconds a run may last before its start is worth a write; shorter ones are told by their settlement."""


class StartMarker(Service):
    """Marks starts in groups; of a claim that is due and not marked, a rescue cannot tell whether it began."""

    name = "start marker"

    def __init__(self, store: Store, health: ServiceHealth) -> None:
        super().__init__(store, health)
        self._fresh: dict[Run, None] = {}
        self._aged: list[Run] = []
        self._asleep = True

    def add(self, run: Run) -> None:
        """Watch a run that was claimed ahead."""
        self._fresh[run] = None
        if self._asleep:
            self._asleep = False
            self.wakeup.set()

    def forget(self, run: Run) -> None:
        """Let go of a run that has ended: most are short, and would pile up here until the next round."""
        self._fresh.pop(run, None)

    async def round(self) -> float | None:
        """Mark what has been running since the last round and still is."""
        lasting = [run for run in self._aged if run.task is not None and not run.task.done()]
        if lasting:
            await self._store.mark_started(
                [run.claim.token for run in lasting], min(run.started_at for run in lasting)
            )
        self._aged, self._fresh = list(self._fresh), {}
        self._asleep = not self._aged
        return None if self._asleep else _MARK_AFTER


class Outcomes:
    """The services that write what becomes of jobs, and the log and the events that tell of it."""

    def __init__(
        self,
        store: Store,
        health: ServiceHealth,
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
        if self.events.events.subscriptions:
            self.events.expect(claim, settlement, kind)
        self.settler.put(settlement, may_wait=may_wait)
        if kind is not None and (self._log.each or kind is not EventKind.JOB_SUCCEEDED):
            self._log.tell(kind, claim, settlement, outcome)

    def recorded(self, run: Run, ended_at: Instant) -> None:
        """Tell of a success that a run has recorded itself."""
        if self.events.events.subscriptions:
            self.events.tell(EventKind.JOB_SUCCEEDED, run.claim, at=ended_at)
        self._log.succeeded += 1
        if self._log.each:
            success = Succeeded()
            settlement = succeed(run.claim, success, started_at=run.started_at, now=ended_at)
            self._log.tell(EventKind.JOB_SUCCEEDED, run.claim, settlement, success)
