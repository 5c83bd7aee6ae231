"""Starts claims in slots and turns what comes of them into settlements."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final

from duetime.model.events import EventKind
from duetime.model.job import Claim, JobId, Token
from duetime.model.outcome import (
    Cancelled,
    Interrupted,
    Outcome,
    Released,
    Settlement,
    Succeeded,
    called_off,
    decide,
    expired,
    succeed,
)
from duetime.model.retry import NO_RETRIES
from duetime.model.states import State
from duetime.model.text import one_line
from duetime.model.time import SECOND, Instant
from duetime.runtime.running.call_outcome import masked_outcome, outcome_of_error, undecodable_outcome
from duetime.runtime.running.executor import Executor
from duetime.runtime.running.job_locks import JobLocks
from duetime.runtime.running.run import Run, StopCause
from duetime.runtime.running.slots import RunSpeed, Slots
from duetime.runtime.running.transaction import TransactionLender
from duetime.runtime.service import WorkerContext
from duetime.runtime.settling.settler import Outcomes

log = logging.getLogger("duetime.worker")

CANCELLED: Final = Cancelled("cancelled on request")
"""The store puts the reason that was given with the request in its place."""
_SUSPECT_CRASHES = 2
"""How many workers must have died around a job before it is set apart; one may well be a reboot."""
_RUNS_PER_YIELD = 64
"""After how many runs other threads are let in: Python by itself hands its lock on every five milliseconds at most, and
a thread that writes needs it for a moment before and after each statement."""


class Dispatcher:
    """Keeps the runs of this worker; dispatch never waits for execution."""

    def __init__(
        self,
        context: WorkerContext,
        *,
        executor: Executor,
        outcomes: Outcomes,
        slots: Slots,
        lender: TransactionLender | None,
        locks: JobLocks,
    ) -> None:
        self.runs = outcomes.runs
        self.on_free: Callable[[], object] = lambda: None
        """Called when slots are free again, once for those that come free together."""
        self.done = 0
        self.speed = RunSpeed()
        self._handlers = context.handlers
        self._executor = executor
        self._outcomes = outcomes
        self._events = outcomes.events.events
        self._loop = asyncio.get_running_loop()
        self._slots = slots
        self._time = context.time
        self._lender = lender
        self._locks = locks
        self._rng = random.Random()
        self._cancelled: frozenset[JobId] = frozenset()
        self._freeing = False

    def start_all(self, claims: Iterable[Claim], *, unmarked: bool = False) -> Sequence[Claim]:
        """Begin claims, all at one instant, or end those that are no longer wanted; return those that found no slot.

        `unmarked`: the store holds them as unstarted.
        """
        now = self._time.now()
        return [claim for claim in claims if not self._start(claim, now, unmarked=unmarked)]

    def _start(self, claim: Claim, now: Instant, *, unmarked: bool) -> bool:
        # The store's clock may be ahead of what is known of it here.
        now = max(claim.claimed_at, now)
        if (unwanted := self._unwanted(claim, now)) is not None:
            self.settle(claim, unwanted)
            return True
        if not self._slots.take(claim):
            return False
        run = Run(claim, now, reader=self._outcomes.output, lender=self._lender)
        self.runs[claim.job_id] = run
        run.task = self._loop.create_task(self._run(run), name=claim.task)
        if self._events.subscriptions and self._handlers[claim.task].options.lock is None:
            self._outcomes.events.tell(EventKind.JOB_STARTED, claim, at=now)
        if not unmarked:
            self._outcomes.journal.note(claim.job_id, claim.queue, State.RUNNING)
        else:
            run.unmarked = True
            if self._outcomes.marker.asleep:
                self._outcomes.marker.wakeup.set()
        return True

    def _unwanted(self, claim: Claim, now: Instant) -> Outcome | None:
        """Tell what becomes of a claim that is not to be started."""
        if claim.problem is not None:
            return undecodable_outcome(claim.problem)
        if claim.cancel_requested_at is not None or claim.job_id in self._cancelled:
            return CANCELLED
        if claim.expires_at is not None and (late := expired(claim, now)) is not None:
            return late
        if claim.job_id in self.runs or claim.task not in self._handlers:
            # An earlier run of it, whose claim was lost, has not ended yet in its thread.
            return Released(wait=SECOND)
        if _suspected(claim) and any(_suspected(run.claim) for run in self.runs.values()):
            # Suspects run one at a time, so that the next crash names its cause.
            return Released(wait=SECOND)
        return None

    def settle(self, claim: Claim, outcome: Outcome, *, started_at: Instant | None = None) -> None:
        """Decide what an outcome means and hand it to the settler; a job whose row cannot be read ends."""
        if claim.problem is not None:
            outcome = undecodable_outcome(claim.problem)
        settlement = self._settlement(claim, outcome, started_at=started_at)
        cancelling = claim.job_id in self._cancelled
        self._outcomes.put(claim, settlement, outcome, cancelling=cancelling, stored=False)

    def _settlement(self, claim: Claim, outcome: Outcome, *, started_at: Instant | None) -> Settlement:
        """Decide what an outcome means."""
        now = max(self._time.now(), started_at or claim.claimed_at)
        if isinstance(outcome, Succeeded):
            return succeed(claim, outcome, started_at=started_at, now=now)
        handler = self._handlers.get(claim.task)
        policy = NO_RETRIES if handler is None else handler.options.retry
        return decide(claim, outcome, policy=policy, started_at=started_at, now=now, rng=self._rng)

    def cancel(self, ids: frozenset[JobId]) -> None:
        """Ask runs to end, each with the grace time of its task; what has not arrived here yet will not start."""
        self._cancelled = ids
        for job_id in ids:
            self.stop(job_id, CANCELLED)

    def stop(self, job_id: JobId, cause: StopCause) -> bool:
        """Ask a run to end, with the grace time of its task; False when there is none."""
        run = self.runs.get(job_id)
        if run is not None:
            run.stop(cause, grace=self._handlers[run.claim.task].options.cancel_grace)
        return run is not None

    def stop_all(self, cause: StopCause) -> None:
        """Ask every run to end, also those that were asked before."""
        for run in list(self.runs.values()):
            run.stop(cause, again=True)

    def stop_lost(self, held: frozenset[Token], asked_at: Instant) -> None:
        """Stop runs whose claim the store no longer has."""
        for run in list(self.runs.values()):
            # A claim that was being committed while the store was asked is not in its answer yet.
            recent = run.claim.claimed_at >= asked_at - SECOND
            if run.claim.token not in held and not recent and not run.settling:
                run.stop(Interrupted(reason="the claim was lost"), again=not run.cancelled)

    def unknown(self, tokens: Iterable[Token]) -> set[Token]:
        """Return those of the claims that do not run here and have no outcome that is about to be written."""
        running = {run.claim.token for run in self.runs.values()}
        return {*tokens} - running - self._outcomes.settler.tokens()

    async def drained(self) -> None:
        """Wait until nothing runs."""
        while tasks := [run.task for run in self.runs.values() if run.task and not run.task.done()]:
            await asyncio.wait(tasks)

    async def _run(self, run: Run) -> None:
        # Not since it was started: of a thousand that start together, the last begins after all the others have run.
        begun_at = self._time.now()
        if _suspected(run.claim):
            # Suspects that were claimed together with it go back first: if the worker dies, it is the only one.
            await self._outcomes.settler.flush()
        outcome: Outcome | None = None
        try:
            bare = self._handlers[run.claim.task].options.lock is None
            outcome = run.stopping or await (
                self._executor.execute(run) if bare else self._execute_locked(run)
            )
            ended_at = self._end(run, outcome)
        except Exception as error:  # noqa: BLE001 - a defect of ours must not cost a slot
            ended_at = self._end_broken(run, error)
        if self._outcomes.settler.full:
            await self._outcomes.settler.room()
        if not isinstance(outcome, Released):
            self.speed.add(run.claim.task, begun_at=begun_at, ended_at=ended_at)
            self.done += 1
        if not self.done % _RUNS_PER_YIELD:
            time.sleep(0)  # noqa: ASYNC251 - it waits for nothing, and hands on the lock
        del self.runs[run.claim.job_id]
        # The task's context has the run, and the exception of an outcome, since Python 3.12, this frame: circles that
        # only the garbage collector would break, for every job.
        run.task = outcome = None
        self._slots.give_back(run.claim)
        if not self._freeing:
            # Once for all runs that end in this turn of the loop: what is started now begins in the next one anyway.
            self._freeing = True
            self._loop.call_soon(self._freed)

    def _execute_locked(self, run: Run) -> Coroutine[Any, Any, Outcome]:
        """Call a handler under the lock of its task; only then the run has started."""

        async def call() -> Outcome:
            if self._events.subscriptions:
                self._outcomes.events.tell(EventKind.JOB_STARTED, run.claim, at=run.started_at)
            return await self._executor.execute(run)

        return self._locks.execute(run, self._handlers[run.claim.task], call)

    def _freed(self) -> None:
        self._freeing = False
        self.on_free()

    def _end(self, run: Run, outcome: Outcome) -> Instant:
        run.reader = None
        stored = isinstance(run.verdict, Succeeded)
        if run.verdict is not None:
            if stored and not isinstance(outcome, Succeeded):
                _warn_of_lost_outcome(run.claim, outcome)
            outcome = run.verdict
        elif run.stopping is not None and isinstance(outcome, Cancelled):
            # Only the cause of the stop tells whether the job ends or is tried again elsewhere.
            outcome = run.stopping
        if run.secrets:
            outcome = masked_outcome(outcome, run.secrets)
        settlement = self._settlement(run.claim, outcome, started_at=run.started_at)
        if isinstance(run.stopping, Cancelled):
            settlement = called_off(settlement, run.stopping)
        if run.output is not None and stored:
            run.output.close()
        elif run.output is not None:
            left = run.output.take_rest()
            settlement = settlement._replace(progress=left.progress, logs=left.logs)
        cancelling = run.claim.job_id in self._cancelled
        self._outcomes.put(run.claim, settlement, outcome, cancelling=cancelling, stored=stored)
        return settlement.finished_at or settlement.ended_at or run.started_at

    def _end_broken(self, run: Run, error: Exception) -> Instant:
        """Fail the job; if not even that can be done, its claim is given back as one that is not known here."""
        log.error("job %s of %s broke down", run.claim.job_id, run.claim.task, exc_info=error)
        try:
            return self._end(run, outcome_of_error(error))
        except Exception:
            log.exception("the end of job %s cannot be recorded", run.claim.job_id)
            return run.started_at


def _suspected(claim: Claim) -> bool:
    return claim.crashes >= _SUSPECT_CRASHES


def _warn_of_lost_outcome(claim: Claim, outcome: Outcome) -> None:
    log.warning(
        "job %s of %s was done when its transaction was committed; what came after changes nothing: %s",
        claim.job_id,
        claim.task,
        one_line(getattr(outcome, "error", None) or str(outcome)),
    )
