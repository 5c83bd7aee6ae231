"""Assembles the services of a worker, and starts and stops them as one."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from duetime.errors import StoreError, StoreLost
from duetime.model.events import EventKind
from duetime.model.job import JobId, Token
from duetime.model.outcome import Cancelled, Interrupted
from duetime.model.text import counted, short_list
from duetime.model.time import SECOND, Instant, Micros, describe_duration
from duetime.model.worker import WorkerId, WorkerInfo, WorkerStats
from duetime.runtime.claiming.burst import BurstFetcher
from duetime.runtime.claiming.fetcher import Fetcher
from duetime.runtime.events import Events
from duetime.runtime.identity import WorkerIdentity
from duetime.runtime.options import WorkerOptions
from duetime.runtime.pacing import FleetPacing
from duetime.runtime.running.children.process import ChildPool
from duetime.runtime.running.dispatcher import CANCELLED, Dispatcher
from duetime.runtime.running.executor import Executor, Middleware
from duetime.runtime.running.handler import Handler
from duetime.runtime.running.job_locks import JobLocks, MakeJobLock
from duetime.runtime.running.log_capture import run_log_capture
from duetime.runtime.running.slots import Slots
from duetime.runtime.running.threads import ThreadRunner
from duetime.runtime.running.transaction import TransactionLender
from duetime.runtime.service import DATABASE_DOWN, Service, ServiceHealth, WorkerContext
from duetime.runtime.settling.settler import Outcomes
from duetime.runtime.store_clock import StoreClock
from duetime.runtime.upkeep.announcing import TaskAnnouncer
from duetime.runtime.upkeep.commands import AnyTask, describe_stacks
from duetime.runtime.upkeep.firing import Declarations, ScheduleFirer, ScheduleParker
from duetime.runtime.upkeep.hint_listener import ChangeWatch, HintListener
from duetime.runtime.upkeep.janitor import Janitor
from duetime.runtime.upkeep.lease import LeaseTiming, PulseThread
from duetime.runtime.upkeep.queue_watch import QueueWatch
from duetime.stores.base import Hint, Pulse, Store

if TYPE_CHECKING:
    from duetime.runtime.worker_group import WorkerGroup

log = logging.getLogger("duetime.worker")

_HANG_EXIT_CODE = 70

DRAIN_TIMEOUT = 5.0
"""Seconds that cancelled handlers and the last settlements get before stopping gives up on them."""


class Worker:
    """Runs jobs, fires schedules and rescues the jobs of dead workers, until it is stopped."""

    def __init__(
        self,
        store: Store,
        handlers: Mapping[str, Handler],
        options: WorkerOptions,
        *,
        make_lock: MakeJobLock,
        middleware: Sequence[Middleware] = (),
        events: Events | None = None,
        declared: Declarations | None = None,
        where: Callable[[], str] = lambda: "a store",
        lead: Worker | None = None,
        release: str | None = None,
    ) -> None:
        """`make_lock` returns the lock of a name, for tasks that run under one; `where` names the store in the log.

        `release` is the version of the application.

        `lead` works on the last store of a hybrid, and shares its id, slots and children.
        """
        self.options = options
        self.whole: Worker | WorkerGroup = self
        """Who obeys commands, and ends: this worker, or the group that it belongs to."""
        self._lead = lead
        self._release = release
        self._where = where
        self._make_lock = make_lock
        self._middleware = middleware
        self._events = Events() if events is None else events
        self.health = ServiceHealth(self.lose_store)
        self.lost: StoreLost | None = None
        """Why the worker has stopped by itself, if the file of its store was deleted or replaced."""
        self._store = store
        self._handlers = handlers
        self._declared = declared
        self._running = False
        self._ending: asyncio.Task[asyncio.Task[None] | None] | None = None
        self._paused_at: Instant | None = None
        self._paused_reason: str | None = None
        self._ignore_logs: Callable[[], object] | None = None
        self._parker: ScheduleParker | None = None
        self._known: tuple[int, Instant] | None = None
        """How many workers live, and when the last of them was started."""
        self._strays: frozenset[Token] = frozenset()

    @property
    def id(self) -> WorkerId:
        """The worker's present id."""
        return self._identity.info.id

    async def start(self) -> None:
        """Register and begin to work; raises when the store cannot be reached or used."""
        if self.whole is self:
            self.assemble()
        if self.options.dedicated:
            # The collector looks once through what is loaded and stays, which takes some 30 milliseconds, and then leaves it out.
            gc.collect()
            gc.freeze()
        if self._lead is None:
            self.children.start()
        try:
            await self._pulse.start()
        except BaseException:
            if self._lead is None:
                await self.children.close()
            raise
        if self.options.jobs and self._lead is None:
            # Before the services begin, which together ask for as many connections as there are. It is tried again later.
            with contextlib.suppress(*DATABASE_DOWN):
                await self._announcer.announce()
        self._running = True
        self._outcomes.start()
        if self.options.capture_logs:
            self._ignore_logs = run_log_capture.attach(self._loop)
        for service in (*self._listening, *self._intake):
            service.start()
        self._announce(EventKind.WORKER_STARTED)
        declared = 0 if self._declared is None else len(self._declared.names)
        serves = self.options.describe(tasks=len(self._handlers), declared=declared)
        log.info("worker %s started: pid %d, %s, on %s", self.id, os.getpid(), serves, self._where())

    def assemble(self) -> None:
        """Build the services, before any worker of a group is started; they know of each other."""
        self._assemble()
        self._assemble_upkeep()

    async def stop(self) -> asyncio.Task[None] | None:
        """Stop claiming, give unstarted claims back, let running jobs finish for the grace time, then cancel them.

        Threads that do not end keep their claims: then a task is returned that ends, and lets the lease go,
        when they have. A stop that is under way is waited for.
        """
        ending = self._begin_to_stop()
        return None if ending is None else await asyncio.shield(ending)

    @property
    def is_working(self) -> bool:
        """Whether it takes jobs, or would if it were not paused."""
        return self._running and self._ending is None and self.lost is None

    @property
    def used_up(self) -> bool:
        """Whether it has run as many jobs as it was to run."""
        return self.slots.starts == 0

    async def asked_to_stop(self) -> None:
        """Wait until the worker stops by itself: told by a command, or because it has run what it was to run."""
        await self._told_to_stop.wait()

    async def drained(self) -> None:
        """Wait until nothing runs any more, or what does was given up; at once unless it is about to stop."""
        if self._ending is not None:
            await self._drained.wait()

    def hurry(self) -> None:
        """Cut the grace time short."""
        self._hurry.set()

    def attend(self, pulse: Pulse) -> None:
        """Act on lost claims and requests to cancel, and tell each service what the heartbeat has found for it."""
        self._dispatcher.stop_lost(pulse.held, pulse.now)
        self._fetcher.drop_lost(pulse.held, pulse.now)
        self._dispatcher.cancel(pulse.cancelling)
        for job_id in pulse.cancelling:
            if (claim := self._fetcher.take(job_id)) is not None:
                self._dispatcher.settle(claim, CANCELLED)
        self._recall_strays(pulse.held)
        self._outcomes.journal.attend(pulse.watched_until)
        if pulse.workers:
            self._count_workers(pulse.workers, pulse.newest)
        if pulse.lease_ends is not None:
            self._janitor.expect_end_of_lease(pulse.lease_ends - pulse.now)
        if pulse.limited:
            self._fetcher.expect_limited()
        if pulse.sight is not None:
            if pulse.sight.due_at is not None:
                self._fetcher.expect(pulse.sight.due_at - pulse.now)
            self._firer.expect(pulse.sight, pulse.now)
            if pulse.sight.orphans:
                self._janitor.sweep_soon()

    def pause(self, reason: str | None, *, since: Instant) -> int:
        """Claim nothing more and give unstarted claims back; return how many jobs go on."""
        self._paused_at, self._paused_reason = since, reason
        self._fetcher.pause()
        self._announce(EventKind.WORKER_PAUSED, reason=reason)
        return len(self._dispatcher.runs)

    def resume(self) -> bool:
        """Claim again; False when it was not paused."""
        was_paused = self._paused_at is not None
        self._paused_at = self._paused_reason = None
        self._fetcher.resume()
        self._announce(EventKind.WORKER_RESUMED)
        return was_paused

    def ask_to_stop(self, *, now: bool) -> int:
        """Stop as after a signal, `now` without the grace time; return how many jobs still run."""
        if now:
            self.hurry()
        self._told_to_stop.set()
        self._begin_to_stop()
        return len(self._dispatcher.runs)

    def stop_job(self, job_id: JobId, reason: str | None) -> bool:
        """Cancel one job that this worker has; False when it has not."""
        cancelled = CANCELLED if reason is None else Cancelled(reason)
        if (claim := self._fetcher.take(job_id)) is None:
            return self._dispatcher.stop(job_id, cancelled)
        self._dispatcher.settle(claim, cancelled)
        return True

    def release_job(self, job_id: JobId) -> bool:
        """Give one job back that has not started; False when this worker has no such job."""
        return self._fetcher.give_back(job_id)

    def stacks(self) -> str:
        """Show where everything stands; called from the pulse's thread."""
        return describe_stacks(self._loop, self.whole.tasks_of_jobs())

    def tasks_of_jobs(self) -> Mapping[AnyTask, str]:
        """Return what runs in the event loop, and which jobs that are."""
        return {
            run.task: f"job {run.claim.job_id} of {run.claim.task}"
            for run in list(self._dispatcher.runs.values())
            if run.task is not None
        }

    def slot_freed(self) -> None:
        """Look for jobs, because a slot may be free."""
        self._fetcher.slot_freed()

    def look_again(self) -> None:
        """Look whether anything is due."""
        self._fetcher.wakeup.set()

    def nothing_due(self, worker: Worker, ended: int) -> None:  # noqa: ARG002 - it matters to a group
        """Stop, because nothing is due any more."""
        self.ask_to_stop(now=False)

    async def run_out(self) -> None:
        """Claim nothing more, and wait until nothing runs any more."""
        self._fetcher.pause()
        await self._dispatcher.drained()

    def end_after_last(self) -> None:
        """Stop when nothing runs any more, since the last job that may start is about to."""

        async def end() -> None:
            await self.whole.run_out()
            self.whole.ask_to_stop(now=False)

        self._last = self._loop.create_task(end(), name="duetime-last-jobs")

    @property
    def ended(self) -> int:
        """How many runs have ended."""
        return self._dispatcher.done

    def lose_lease(self) -> WorkerInfo:
        """Stop everything, because others may take it over now; return the identity to go on under."""
        self._fetcher.forget_all()
        self._dispatcher.stop_all(Interrupted(reason="the worker lost its lease"))
        if self._parker is not None:
            self._parker.declare_again()
        self._outcomes.events.worker(EventKind.WORKER_LOST)
        return self._identity.renew()

    def lose_store(self, error: StoreLost) -> None:
        """Say so once and stop as after a signal: nothing can be stored any more."""
        if self.lost is None:
            self.lost = error
            log.critical("worker %s stops: %s", self.id, error)
            self.whole.ask_to_stop(now=False)

    def busy(self) -> bool:
        """Whether a thread of the worker is at work."""
        return self._threads.busy

    def stats(self) -> WorkerStats:
        """Tell how the worker fares."""
        return WorkerStats(
            running=len(self._dispatcher.runs),
            done=self._dispatcher.done,
            failed=self._outcomes.failed,
            last_error=self.health.last_error,
            paused_at=self._paused_at,
            paused_reason=self._paused_reason,
        )

    def _recall_strays(self, held: frozenset[Token]) -> None:
        """Take up claims the store has under this worker that it does not know of."""
        strays = frozenset(t for t in self._dispatcher.unknown(held) if not self._fetcher.holds(t))
        # Seen at two pulses, it is not one whose outcome was being written while the store was asked.
        self._janitor.take_strays(self._fetcher.recall(strays & self._strays))
        self._strays = strays

    def _count_workers(self, workers: int, newest: Instant) -> None:
        self._fleet.workers = workers
        self._janitor.count_again()
        before, self._known = self._known, (workers, newest)
        # Workers that came before this one are known at first.
        if self._known != before and (before is not None or newest > self._pulse.registered_at):
            self._janitor.look_soon()

    def _begin_to_stop(self) -> asyncio.Task[asyncio.Task[None] | None] | None:
        if self._running:
            self._running = False
            self._ending = asyncio.create_task(self._end(), name="duetime-stopping-worker")
        return self._ending

    async def _end(self) -> asyncio.Task[None] | None:
        self._fetcher.stopping = True
        self._fetcher.give_back_all()
        for service in self._intake:
            await service.stop()
        self._fetcher.give_back_all()
        await drain_runs(self._dispatcher, grace=self.options.grace, hurry=self._hurry)
        self._drained.set()
        if self._lead is None:
            await self.whole.drained()
            await self.children.close()
        if self._dispatcher.runs:
            return asyncio.create_task(self._sign_off(), name="duetime-lingering-worker")
        await self._sign_off()
        return None

    def _assemble(self) -> None:
        """Build the services; here and not earlier, so that a worker made before a fork is whole after it."""
        self.options = options = self.options.with_queues(self._named_queues())
        handlers: Mapping[str, Handler] = self._handlers if options.jobs else {}
        self._loop = asyncio.get_running_loop()
        self._hurry = asyncio.Event()
        self._drained = asyncio.Event()
        self._told_to_stop = asyncio.Event()
        self._lease = LeaseTiming(length=options.lease)
        self._identity = WorkerIdentity(
            queues=tuple(options.queues) if options.jobs else (),
            slots=options.concurrency if options.jobs else 0,
            tasks=handlers,
            declares=self._declared.names if self._declared and options.schedules else (),
            fires=options.schedules,
            name=options.name,
            worker=None if self._lead is None else self._lead.id,
        )
        self._time = self._timekeeper()
        self._fleet = FleetPacing()
        self._context = context = WorkerContext(
            store=self._store,
            options=options,
            handlers=self._handlers,
            identity=self._identity,
            time=self._time,
            health=self.health,
            fleet=self._fleet,
        )
        self._threads = ThreadRunner()
        self.children: ChildPool = self._make_children() if self._lead is None else self._lead.children
        self.slots = slots = self._make_slots()
        kept_in = (self._lead or self)._store  # noqa: SLF001 - a worker, too
        self._outcomes = Outcomes(context, self._events, statistics_store=kept_in)
        executor = Executor(self._handlers, self._threads, self.children, middleware=self._middleware)
        lender = TransactionLender(context, self._loop) if self._lead is None else None
        self._job_locks = JobLocks(context, self._make_lock, self._outcomes.settler)
        self._dispatcher = Dispatcher(
            context,
            executor=executor,
            outcomes=self._outcomes,
            slots=slots,
            lender=lender,
            locks=self._job_locks,
        )
        self._fetcher = self._make_fetcher()
        self._dispatcher.on_free = self.whole.slot_freed

    def _make_children(self) -> ChildPool:
        handlers: Mapping[str, Handler] = self._handlers if self.options.jobs else {}
        return ChildPool(handlers, max_jobs=self.options.cpu_max_jobs, max_memory=self.options.cpu_max_memory)

    def _make_slots(self) -> Slots:
        options = self.options
        if self._lead is not None:
            slots = self._lead.slots.share()
        else:
            slots = Slots(
                options.concurrency, options.queues, children=options.cpu_children, starts=options.max_jobs
            )
        slots.on_last = self.end_after_last
        return slots

    def _make_fetcher(self) -> Fetcher:
        context, slots, dispatcher = self._context, self.slots, self._dispatcher
        if not self.options.burst:
            return Fetcher(context, slots=slots, dispatcher=dispatcher, watched=self._lease.looks)
        return BurstFetcher(
            context,
            slots=slots,
            dispatcher=dispatcher,
            settler=self._outcomes.settler,
            ready=self._has_looked_around,
            ended=lambda: self.whole.ended,
            on_done=partial(self.whole.nothing_due, self),
        )

    def _has_looked_around(self) -> bool:
        """Whether schedules that were due have fired, and the jobs of dead workers were rescued."""
        fired = not self.options.schedules or (self._firer.rounds_done > 0 and not self._firer.behind)
        return fired and self._janitor.rounds_done > 0

    def _announce(self, kind: EventKind, *, reason: str | None = None) -> None:
        """Tell subscribers, once for all stores that it works on."""
        if self._lead is None:
            self._outcomes.events.worker(kind, reason=reason)

    def _named_queues(self) -> Mapping[str, Sequence[str]]:
        """Return the queues that tasks and declared schedules name, each with what names it."""
        declared: Mapping[str, str] = {} if self._declared is None else self._declared.names
        named: dict[str, dict[str, None]] = {}
        for name, queue in (*((h.name, h.options.queue) for h in self._handlers.values()), *declared.items()):
            named.setdefault(queue, {})[name] = None
        return {queue: tuple(names) for queue, names in named.items()}

    def _timekeeper(self) -> StoreClock:
        return StoreClock()

    def _assemble_upkeep(self) -> None:
        """Build what a worker does apart from jobs: schedules, rescue, the pulse and hints."""
        options, store, health, fleet = self.options, self._store, self.health, self._fleet
        watched = self._lease.looks
        self._firer = ScheduleFirer(store, health, fleet=fleet, handlers=self._handlers, watched=watched)
        self._firer.on_skipped = self._outcomes.statistics.skipped
        self._janitor = Janitor(
            self._context,
            dispatcher=self._dispatcher,
            limits_in_use=lambda: self._fetcher.limited.in_use,
            watched=watched,
        )
        lead = self._lead or self
        self._outcomes.statistics.on_written = lead._janitor.fold_soon  # noqa: SLF001 - a worker, too
        self._announcer = TaskAnnouncer(self._context, release=self._release)
        self._intake: list[Service] = [self._fetcher, self._janitor] if options.jobs else [self._janitor]
        if options.schedules:
            self._intake.append(self._firer)
        if options.schedules and self._declared is not None:
            declared, tasks = self._declared, self._handlers
            self._parker = ScheduleParker(store, health, declared=declared, tasks=tasks, fleet=fleet)
            self._intake.append(self._parker)
        if options.jobs:
            left_out = {
                queue: names for queue, names in self._named_queues().items() if queue not in options.queues
            }
            self._intake.append(QueueWatch(self._context, left_out=left_out))
        if options.jobs and self._lead is None:
            self._intake.append(self._announcer)
        self._pulse = PulseThread(self._context, store=store.sibling(), listener=self, on_hang=self._hang)
        self._changes = ChangeWatch(
            self._context,
            look_for_jobs=lambda: self._fetcher.take_hint(Hint("any")),
            look_for_workers=self._janitor.look_soon,
            look_for_changes=self._look_for_changes,
        )
        self._listening: list[Service] = [HintListener(store, health, self._take_hint), self._changes]

    async def _sign_off(self) -> None:
        await self._dispatcher.drained()
        # Where the store is lost, waiting is in vain.
        timeout = DRAIN_TIMEOUT if self.lost is None else 0
        with contextlib.suppress(TimeoutError, StoreError):
            async with asyncio.timeout(timeout):
                await self._job_locks.close()
        await self._outcomes.stop(timeout=timeout)
        if self._ignore_logs is not None:
            self._ignore_logs()
        self._threads.close()
        # To the last, since someone may cancel a job, or have the worker stop now, while it drains.
        for service in self._listening:
            await service.stop()
        await self._pulse.stop()
        self._announce(EventKind.WORKER_STOPPED)
        await self._events.drain(DRAIN_TIMEOUT)
        done, failed = self._dispatcher.done, self._outcomes.failed
        log.info(
            "worker %s stopped: %s ended, %s failed", self.id, counted(done, "run"), counted(failed, "job")
        )

    def _take_hint(self, hint: Hint) -> None:
        match hint.kind:
            case "jobs" | "limits":
                self._fetcher.take_hint(hint)
            case "schedules":
                self._firer.wakeup.set_after(self._fleet.wait())
            case "worker":
                if hint.name == self.id:
                    self._pulse.ask()
            case "workers":
                self._janitor.look_soon()
            case "any":
                self._changes.take_hint()
            case "lock" | "journal":
                """Who waits for a lock, or watches, listens for it."""

    def _look_for_changes(self) -> None:
        self._firer.wakeup.set()
        self._pulse.ask()

    def _hang(self) -> None:
        """Decide, in the pulse's thread, what to do about a loop that does not come back."""
        if self.options.dedicated:
            log.critical("the event loop hangs; this process ends so that another worker can take its jobs")
            logging.shutdown()
            os._exit(_HANG_EXIT_CODE)
        log.critical("the event loop hangs; the lease will lapse so that another worker can take the jobs")


async def drain_runs(dispatcher: Dispatcher, *, grace: Micros, hurry: asyncio.Event) -> None:
    """Wait for running jobs: for the grace time, or until it is cut short, then, cancelled, a little longer."""
    if dispatcher.runs:
        running = counted(len(dispatcher.runs), "running job")
        log.info("waiting up to %s for %s", describe_duration(grace), running)
    done = asyncio.ensure_future(dispatcher.drained())
    hurried = asyncio.ensure_future(hurry.wait())
    await asyncio.wait({done, hurried}, timeout=grace / SECOND, return_when=asyncio.FIRST_COMPLETED)
    if not done.done():
        dispatcher.stop_all(Interrupted(reason="the worker was stopped before the job ended"))
        await asyncio.wait({done}, timeout=DRAIN_TIMEOUT)
    for waiter in (done, hurried):
        waiter.cancel()
    if dispatcher.runs:
        tasks = short_list([run.claim.task for run in dispatcher.runs.values()])
        log.error(
            "%s did not end; claims are kept until jobs end or this process does: %s",
            counted(len(dispatcher.runs), "job"),
            tasks,
        )
