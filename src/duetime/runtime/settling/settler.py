"""Has what came of runs stored, in groups and until it is, logged, and told to subscribers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from duetime.errors import StoreError
from duetime.model.events import EventKind, kind_of
from duetime.model.job import Claim, JobId, Token
from duetime.model.outcome import Outcome, Settlement
from duetime.model.states import State
from duetime.model.text import counted, one_line, short_list
from duetime.model.time import MILLISECOND, SECOND, Micros
from duetime.runtime.events import Events, WorkerEvents
from duetime.runtime.running.run import Run, RunOutput, UnwrittenOutput
from duetime.runtime.service import DATABASE_DOWN, Service, WorkerContext
from duetime.runtime.settling.job_log import JobLog
from duetime.runtime.settling.journal import JournalWriter
from duetime.runtime.settling.statistics import RunStatistics
from duetime.runtime.store_clock import monotonic
from duetime.stores.base import Store

log = logging.getLogger("duetime.worker")

_BATCH_SIZE = 1_000
_MAX_BACKLOG = 5_000
_LINGER: Micros = 25 * MILLISECOND
"""How long an outcome that no one waits for may wait for others of a stream, so that they share a commit."""


class Settler(Service):
    """The only writer of outcomes."""

    name = "settler"

    def __init__(
        self, context: WorkerContext, on_written: Callable[[Sequence[Settlement], frozenset[Token]], None]
    ) -> None:
        """Call `on_written` with every batch and what the store has accepted of it."""
        super().__init__(context.store, context.health)
        self._on_written = on_written
        self._waiting: list[Settlement] = []
        self._in_flight: list[Settlement] = []
        self._progress = asyncio.Event()
        self._hurried = False
        self._last_waiting: Micros = -_LINGER

    def put(self, settlement: Settlement, claim: Claim | None = None) -> None:
        """Take over responsibility for a settlement; of its claim, if that is known, it depends how soon it is written.

        One that may linger, and closely follows another, waits for a third.
        """
        self._waiting.append(settlement)
        if self._hurried:
            # The first one has woken it for the others, too: a round ends only when none are left.
            return
        if claim is not None and may_linger(claim, settlement) and self._streams():
            self.wakeup.set_after(_LINGER / SECOND)
        else:
            self._hurry()

    def tokens(self) -> set[Token]:
        """Return the claims whose settlements are still to be written."""
        return {settlement.token for settlement in (*self._waiting, *self._in_flight)}

    @property
    def full(self) -> bool:
        """Whether the backlog is so deep that slots should stay taken."""
        return len(self._waiting) >= _MAX_BACKLOG

    async def room(self) -> None:
        """Wait until the backlog is short again."""
        while self.full:
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
        if refused := sorted(s.token.job_id for s in self._in_flight if s.token not in accepted):
            log.warning(
                "the outcome of %s was refused, as the claim was lost to another worker: job %s",
                counted(len(refused), "run"),
                short_list(refused),
            )
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
        return frozenset[Token]().union(*[await self._settle([settlement]) for settlement in batch])

    async def _settle_bare(self, settlement: Settlement, error: Exception) -> frozenset[Token]:
        """Write the outcome without the texts that the database refused."""
        job_id = settlement.token.job_id
        log.error("the outcome of job %s could not be stored in full: %s", job_id, one_line(str(error)))
        no_result = "the result could not be stored" if settlement.state is State.SUCCEEDED else None
        text = None if settlement.error is None else "the error text could not be stored"
        bare = settlement._replace(
            result=None, result_error=no_result, error=text, traceback=None, progress=None, logs=()
        )
        try:
            return await self._store.settle([bare])
        except DATABASE_DOWN:
            raise
        except Exception:
            # Given up here, so that it does not hold up the others; the claim is found again as a stray.
            log.exception("the outcome of job %s could not be stored at all", job_id)
            return frozenset()


def may_linger(claim: Claim, settlement: Settlement) -> bool:
    """Whether an outcome may be written a moment later: of a short run at a set time that nothing else waits for."""
    return (
        claim.due_at > claim.claimed_at
        and settlement.state is State.SUCCEEDED
        and (settlement.finished_at or 0) - (settlement.started_at or 0) < _LINGER
        and claim.key is None
        and claim.callbacks is None
        and not settlement.new_jobs
    )


_MARK_AFTER: Micros = 100 * MILLISECOND
"""How long a run may last before its start is worth a write; shorter ones are told by their settlement."""


class StartMarker(Service):
    """Marks starts in groups; of a claim that is due and not marked, a rescue cannot tell whether it began."""

    name = "start marker"

    def __init__(self, context: WorkerContext, runs: Mapping[JobId, Run], journal: JournalWriter) -> None:
        super().__init__(context.store, context.health)
        self._journal = journal
        self.asleep = True
        """Whether it has to be woken for the next run that is not marked."""
        self._runs = runs
        self._time = context.time

    async def round(self) -> float | None:
        """Mark what has been running for a while."""
        self.asleep = False
        latest = self._time.now() - _MARK_AFTER
        lasting = [run for run in self._runs.values() if run.unmarked and run.started_at <= latest]
        if lasting:
            first = min(run.started_at for run in lasting)
            await self._store.mark_started([run.claim.token for run in lasting], first)
            for run in lasting:
                run.unmarked = False
                self._journal.note(run.claim.job_id, run.claim.queue, State.RUNNING)
        self.asleep = not any(run.unmarked for run in self._runs.values())
        return None if self.asleep else _MARK_AFTER / SECOND


_FIRST_WRITE_AFTER = 0.1
"""Seconds from the first output to its write; that of runs that end sooner is in their settlement."""
_WRITE_PAUSE = 1.0
"""Seconds between writes."""
_MAX_CHARACTERS = 1_000_000
"""About how many characters are written at once; the rest comes next time."""
_ROW_OVERHEAD = 100


class OutputWriter(Service):
    """Writes the output of runs while they run; sleeps while there is none."""

    name = "reporter"

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context.store, context.health)
        self.captures_logs = context.options.capture_logs
        self._waiting: deque[RunOutput] = deque()
        self._asleep = True
        self._loop = asyncio.get_running_loop()

    def notice(self, output: RunOutput) -> None:
        """Take note that there is something to write; called from any thread."""
        self._waiting.append(output)
        if self._asleep:
            self._asleep = False
            # The loop of a worker that was stopped without this thread may be closed.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.wakeup.set_after, _FIRST_WRITE_AFTER)

    async def round(self) -> float | None:
        """Write what has come since the last round."""
        if await self._write():
            return _WRITE_PAUSE
        self._asleep = True
        # Output that came in this moment has not woken this service.
        return 0 if self._waiting else None

    async def stop(self) -> None:
        """End, and write what is left."""
        await super().stop()
        try:
            await self._write()
        except StoreError as error:
            log.warning(
                "progress and log lines of jobs could not be stored before the worker stopped: %s", error
            )

    async def _write(self) -> bool:
        """Write what waits; return whether there was anything."""
        batch = self._collect()
        if not batch:
            return False
        try:
            await self._store.report(
                [part.progress for _, part in batch if part.progress is not None],
                [line for _, part in batch for line in part.logs],
            )
        except (*DATABASE_DOWN, asyncio.CancelledError):
            for output, _ in batch:
                output.ask_to_be_read()
            batch.clear()
            raise
        finally:
            # Also what the database refused: it must not hold up the output of others.
            for output, part in batch:
                output.written(part)
        return True

    def _collect(self) -> list[tuple[RunOutput, UnwrittenOutput]]:
        """Read what waits, but not more than is good for one write."""
        batch: list[tuple[RunOutput, UnwrittenOutput]] = []
        size = 0
        while self._waiting and size < _MAX_CHARACTERS:
            output = self._waiting.popleft()
            # The rest of a run that has ended is in its settlement.
            if any(part := output.read()):
                batch.append((output, part))
                size += _ROW_OVERHEAD + sum(len(line.text) for line in part.logs)
        return batch


class Outcomes:
    """The services that write what becomes of jobs, and the log and the events that tell of it."""

    def __init__(self, context: WorkerContext, events: Events, *, statistics_store: Store) -> None:
        self.events = WorkerEvents(events, context.identity, context.time)
        self.journal = JournalWriter(context)
        self.settler = Settler(context, on_written=self._written)
        self._claims: list[Claim] = []
        """Those whose settlements are to be written, in the same order."""
        self.statistics = RunStatistics(context, statistics_store)
        self.runs: dict[JobId, Run] = {}
        """What runs in this worker."""
        self.marker = StartMarker(context, self.runs, self.journal)
        self.output = OutputWriter(context)
        self.failed = 0
        quiet = logging.INFO if context.options.dedicated else logging.DEBUG
        self._log = JobLog(context.identity, quiet=quiet, loop=asyncio.get_running_loop())

    def start(self) -> None:
        """Begin to write."""
        for service in (self.settler, self.marker, self.output, self.statistics, self.journal):
            service.start()

    async def stop(self, *, timeout: float) -> None:
        """Write what is left, but not for longer than the timeout."""
        await self.marker.stop()
        await self.output.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self.settler.flush()
        await self.settler.stop()
        await self.journal.stop()
        await self.statistics.stop()
        if unwritten := len(self.settler.tokens()):
            log.error(
                "the outcome of %s could not be stored before the worker stopped; other workers take over",
                counted(unwritten, "run"),
            )
        self._log.close()

    def put(
        self, claim: Claim, settlement: Settlement, outcome: Outcome, *, cancelling: bool, stored: bool
    ) -> None:
        """Have a settlement written, unless it is `stored` by now, and tell of it; `cancelling`: if that was asked for."""
        kind: EventKind | None = EventKind.JOB_SUCCEEDED
        succeeded = settlement.state is State.SUCCEEDED
        if not succeeded:
            kind = kind_of(settlement, cancelling=cancelling or claim.cancel_requested_at is not None)
            self.failed += settlement.state is State.FAILED
        if self.events.events.subscriptions:
            self.events.expect(claim, settlement, kind)
        if stored:
            self._ended([(claim, settlement)])
            self.events.settled([settlement], frozenset({settlement.token}))
        else:
            self._claims.append(claim)
            self.settler.put(settlement, claim)
        if kind is not None:
            self._log.counts[kind] += 1
            if self._log.each or not succeeded or settlement.result_error is not None:
                self._log.tell(kind, claim, settlement, outcome)

    def _written(self, batch: Sequence[Settlement], accepted: frozenset[Token]) -> None:
        claims, self._claims = self._claims[: len(batch)], self._claims[len(batch) :]
        runs = list(zip(claims, batch, strict=True))
        if len(accepted) < len(batch):
            runs = [(claim, change) for claim, change in runs if change.token in accepted]
        self._ended(runs)
        self.events.settled(batch, accepted)

    def _ended(self, runs: Sequence[tuple[Claim, Settlement]]) -> None:
        self.statistics.count(runs)
        self.journal.settled(runs)
