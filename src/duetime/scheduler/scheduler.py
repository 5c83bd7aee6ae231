"""The public object."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cached_property, partial
from typing import Any, ParamSpec, Self, TypeGuard, TypeVar, Unpack, cast, overload

from duetime.errors import InvalidArguments, InvalidTask, NotOpen, StoreMoved
from duetime.locks.base import DEFAULT_TTL, DistributedLock
from duetime.locks.open import open_lock, place_of, stored_locks
from duetime.locks.stored import StoredLocks
from duetime.model.ids import GivenId, own_id
from duetime.model.job import JobId
from duetime.model.schedule.options import ScheduleOptionValues, schedule_options
from duetime.model.task import JobOptionValues, TaskOptions, TaskOptionValues, job_options, task_options
from duetime.model.text import check_name, check_namespace, counted, shown
from duetime.model.time import Clock, Duration, SystemClock, parse_duration
from duetime.model.triggers.base import Trigger
from duetime.runtime.events import Events
from duetime.runtime.options import worker_options
from duetime.runtime.running.context import check_not_kept_out
from duetime.runtime.running.executor import Middleware, check_middleware
from duetime.runtime.running.handler import Handler
from duetime.runtime.running.run import current_run
from duetime.runtime.running.surroundings import GivenSurrounding, as_surrounding
from duetime.runtime.running.transaction import JobTransaction
from duetime.runtime.upkeep.firing import Declarations
from duetime.runtime.worker import Worker
from duetime.runtime.worker_group import WorkerGroup
from duetime.scheduler.announced import AnnouncedTasks, find_handler
from duetime.scheduler.audit import Audit
from duetime.scheduler.enqueue_hooks import EnqueueHook, check_hook, show_to
from duetime.scheduler.job_class import Job, ScheduleDecorator, job_base, task_of
from duetime.scheduler.job_handle import JobHandle
from duetime.scheduler.jobs import Jobs, Pruning
from duetime.scheduler.lookup import check_not_moved
from duetime.scheduler.processes.portal import BlockingPortal
from duetime.scheduler.processes.shutdown import on_stop_signal
from duetime.scheduler.processes.supervisor import supervise
from duetime.scheduler.processes.worker_process import (
    WorkerSettings,
    check_can_run,
    configure_logging,
    open_worker,
    run_until_stopped,
)
from duetime.scheduler.queues import Queues
from duetime.scheduler.registry import ScheduleDefinition, SchedulerRegistry, TriggerPolicy
from duetime.scheduler.schedule_changes import declare_schedules
from duetime.scheduler.schedules import Schedules
from duetime.scheduler.stats import Stats
from duetime.scheduler.sync import BlockingScheduler
from duetime.scheduler.task import (
    AnyFunction,
    AsyncTask,
    Call,
    Calls,
    Request,
    SyncTask,
    Task,
    TaskDecorator,
    call_arguments,
    checked_calls,
)
from duetime.scheduler.tokens import Tokens
from duetime.scheduler.web import AsgiApp, make_web_app
from duetime.scheduler.workers import Workers
from duetime.stores.base.protocols import Store
from duetime.stores.open import open_store

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound=Middleware)
H = TypeVar("H", bound=EnqueueHook)
A = TypeVar("A", bound=GivenSurrounding)

log = logging.getLogger("duetime.store")

DEFAULT_URL = "sqlite:///duetime.db"


class Scheduler:
    """Registers tasks and schedules, enqueues jobs, and makes workers that run them."""

    def __init__(
        self,
        url: str | None = None,
        *,
        namespace: str = "duetime",
        auto_migrate: bool = True,
        clock: Clock | None = None,
        shortest_interval: Duration = "1s",
        locks: str | None = None,
        release: str | None = None,
    ) -> None:
        """Use the database at `url`, else at $DUETIME_URL, else the file duetime.db in this folder.

        A schedule that would come more often than once in `shortest_interval` is refused. `locks` is where `lock()` keeps
        locks, if not in this database: another one, or a folder. `release` is the version of your application, else
        $DUETIME_RELEASE: statistics show when its first worker came.
        """
        self.url = url or os.environ.get("DUETIME_URL") or DEFAULT_URL
        self.namespace = check_namespace(namespace)
        named = release or os.environ.get("DUETIME_RELEASE")
        self.release = None if named is None else check_name(named, what="release")
        self.auto_migrate = auto_migrate
        self.clock = clock
        self.make_store()  # A URL that cannot work is refused here, not at the first use.
        self.lock_url = locks
        if locks is not None:
            open_lock(locks, "any", namespace=namespace)
        self.after_enqueue: Callable[[Sequence[JobId]], Awaitable[None]] | None = None
        """What to await with the ids of new jobs, once stored, before their handles are returned; for tests."""
        self.make_worker: type[Worker] = Worker
        """What its workers are; tests have another kind."""
        self.events = Events()
        """What the workers of this process do, for those who subscribe."""
        self._registry = SchedulerRegistry()
        self.tasks: Mapping[str, Handler] = self._registry.handlers
        """The registered tasks by name."""
        self.dependency_overrides: dict[Callable[..., Any], Callable[..., Any]] = {}
        """What runs call in place of which dependency; for tests, as that of a FastAPI app."""
        self._registry.overrides.providers.append(self)
        self.wrapping: Sequence[Middleware] = self._registry.middleware
        """The registered middleware, outermost first."""
        self._store: Store | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0
        self._users = 0
        self._opening = asyncio.Lock()
        self._pace = TriggerPolicy(shortest=parse_duration(shortest_interval, what="shortest_interval"))
        self.portal = BlockingPortal(
            current_loop=lambda: self._loop if self._pid == os.getpid() else None,
            open_=self.open,
            close=self.close,
        )

    def __repr__(self) -> str:
        return f"<Scheduler {self.namespace} with {counted(len(self.tasks), 'task')}>"

    @cached_property
    def jobs(self) -> Jobs:
        """Reads, cancels, changes, reruns and deletes jobs."""
        return Jobs(self._opened, client=self, tasks=self._registry.handlers)

    @cached_property
    def schedules(self) -> Schedules:
        """Reads and changes schedules, and says what is to come."""
        return Schedules(self._opened, client=self, registry=self._registry, pace=self._pace)

    @cached_property
    def queues(self) -> Queues:
        """Counts, pauses, limits and empties queues."""
        return Queues(self._opened)

    @cached_property
    def workers(self) -> Workers:
        """Shows workers, and sends them commands."""
        return Workers(self._opened)

    @cached_property
    def announced(self) -> AnnouncedTasks:
        """Shows the tasks that workers have announced."""
        return AnnouncedTasks(self._opened)

    @cached_property
    def audit(self) -> Audit:
        """Tells who did what."""
        return Audit(self._opened)

    @cached_property
    def stats(self) -> Stats:
        """Tells how tasks, queues and schedules have fared over time."""
        return Stats(self._opened, self.jobs)

    @cached_property
    def tokens(self) -> Tokens:
        """Makes, lists and revokes the tokens by which programs and people use the HTTP API."""
        return Tokens(self._opened)

    @cached_property
    def locks(self) -> StoredLocks:
        """Shows who holds which lock, and releases what was left behind."""
        if self.lock_url is not None:
            return stored_locks(self.lock_url, namespace=self.namespace)
        return StoredLocks(place_of(self.url, namespace=self.namespace), self._make_sibling)

    def lock(
        self, name: str, *, ttl: Duration = DEFAULT_TTL, timeout: Duration | None = None
    ) -> DistributedLock:
        """Return a lock that one task, thread or process holds at a time: `async with scheduler.lock("reindex"):`.

        `ttl` is how long it stays locked if its owner falls silent; while the block runs it is renewed. `timeout` is how long the
        block waits for it, `None` for ever.
        """
        if self.lock_url is not None:
            return open_lock(self.lock_url, name, ttl=ttl, timeout=timeout, namespace=self.namespace)
        return self.locks.lock(name, ttl=ttl, timeout=timeout)

    @cached_property
    def prune(self) -> Pruning:
        """Removes what is old."""
        return Pruning(self._opened)

    @cached_property
    def sync(self) -> BlockingScheduler:
        """The same verbs for callers without an event loop."""
        return BlockingScheduler(
            self,
            jobs=self.jobs,
            schedules=self.schedules,
            queues=self.queues,
            workers=self.workers,
            announced=self.announced,
            audit=self.audit,
            stats=self.stats,
            tokens=self.tokens,
            prune=self.prune,
            lock=self.lock,
        )

    @cached_property
    def Job(self) -> type[Job]:  # noqa: N802 - it is a class
        """The base of this scheduler's tasks that are written as classes."""
        return job_base(self)

    @overload
    def task(  # type: ignore[overload-overlap]  # a coroutine function is both; the first match is meant
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncTask[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> SyncTask[P, R]: ...
    @overload
    def task(self, /, *, name: str | None = None, **values: Unpack[TaskOptionValues]) -> TaskDecorator: ...
    def task(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        **values: Unpack[TaskOptionValues],
    ) -> Any:
        """Register a function as a task, under `name` or its module and qualified name."""
        add = partial(self.add_task, name=name, options=task_options(values, owner=self))
        return add if function is None else add(function)

    def schedule(
        self,
        trigger: Trigger,
        *,
        name: str | None = None,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
        **values: Unpack[ScheduleOptionValues],
    ) -> ScheduleDecorator:
        """Run a function, a task or a job class whenever the trigger says so; stacked, each needs a name."""
        self._pace.check(trigger, name=name or "", now=(self.clock or SystemClock()).now())
        options = schedule_options(values, owner=self)

        def decorate(decorated: Any) -> Any:
            task = self._task_of(decorated)
            chosen = check_name(task.name if name is None else name, what="schedule name")
            try:
                payload = task.handler.arguments.encode(*call_arguments(args, kwargs))
            except InvalidArguments as error:
                raise InvalidArguments(f"{error}; a schedule takes them as args= or kwargs=") from None
            self._registry.add_schedule(ScheduleDefinition(chosen, task.handler, trigger, payload, options))
            return decorated if isinstance(decorated, type) else task

        return decorate

    async def enqueue(self, call: Call[R], /, *, tx: object | None = None) -> JobHandle[R]:
        """Store one request that `task.call(...)` made."""
        if not isinstance(call, Call):
            raise InvalidArguments(f"enqueue takes a call: enqueue(task.call(...)), not {shown(call)}")
        special = call.entry is not None or self.after_enqueue is not None or self._registry.enqueue_hooks
        if tx is not None or special:
            return (await self.enqueue_many([call], tx=tx))[0]
        store = self._opened()
        if store.moved is not None:
            raise StoreMoved(store.moved)
        if current_run.get(None) is not None:
            check_not_kept_out(store)
        [job_id] = await store.enqueue([call.job])
        return JobHandle(job_id, call.job.task, self._opened, call.decode, call.job.id)

    async def enqueue_by_name(
        self,
        task: str,
        arguments: Mapping[str, object] | None = None,
        /,
        *,
        job_id: GivenId | None = None,
        **values: Unpack[JobOptionValues],
    ) -> JobHandle[Any]:
        """Store a job of a task that is registered here or that workers have announced; raises `UnknownTask`.

        Of one that was only announced, the names of the arguments and their outermost types are checked here. With
        `job_id`, a UUID of version 7 that was made today, it is stored once, however often it is asked for.
        """
        options, kwargs = job_options(values, owner=self), call_arguments(None, arguments).kwargs
        handler = await find_handler(self._opened(), self.tasks, task)
        call = Request[..., Any](handler, self, options).prepared((), kwargs)
        if job_id is not None:
            call = call._replace(job=call.job._replace(id=own_id(job_id)))
        return await self.enqueue(call, tx=options.tx)

    async def enqueue_many(self, calls: Calls, /, *, tx: object | None = None) -> list[JobHandle[Any]]:
        """Store all requests or none, in one go; with `tx`, in that transaction of the caller's own."""
        return await self._enqueue_many(self._shown(calls), tx)

    async def _enqueue_many(self, calls: Sequence[Call[Any]], tx: object | None) -> list[JobHandle[Any]]:
        store = self._opened()
        check_not_moved(store)
        if tx is None:
            check_not_kept_out(store)
        entries = [call.entry for call in calls if call.entry is not None]
        ids = await store.enqueue([call.job for call in calls], tx=_own(tx), entries=entries)
        handles = self._handles(ids, calls)
        if self.after_enqueue is not None and tx is None:
            await self.after_enqueue([handle.id for handle in handles if not handle.existing])
        return handles

    def enqueue_many_blocking(self, calls: Calls, /, *, tx: object = None) -> list[JobHandle[Any]]:
        """Store all requests or none for a caller without an event loop; with `tx`, in the thread that has it open."""
        calls = self._shown(calls)
        jobs = [call.job for call in calls]
        if tx is not None:
            store = self.portal.run(self._introduced())
            check_not_moved(store)
            return self._handles(store.enqueue_blocking_in(_own(tx), jobs), calls)
        self.portal.reach()
        if (reached := self._store) is not None and self.after_enqueue is None:
            check_not_kept_out(reached)
            check_not_moved(reached)
            entries = [call.entry for call in calls if call.entry is not None]
            ids = reached.enqueue_blocking(jobs, entries=entries)
            if ids is not None:
                return self._handles(ids, calls)
        return self.portal.run(self._enqueue_many(calls, None))

    def _shown(self, calls: Calls) -> list[Call[Any]]:
        """Return calls that are known to be such, once every function that sees requests has seen them."""
        found, hooks = checked_calls(calls), self._registry.enqueue_hooks
        return show_to(hooks, found) if hooks else found

    def worker(self, **settings: Unpack[WorkerSettings]) -> AbstractAsyncContextManager[Worker | WorkerGroup]:
        """Return a worker for `async with`; it opens the scheduler if need be."""
        return open_worker(self, worker_options(**settings))

    def middleware(self, function: M, /) -> M:
        """Run an async function of a job and a call around every execution; the first one is outermost."""
        check_middleware(function)
        self._registry.middleware.append(function)
        return function

    def around(self, function: A, /) -> A:
        """Call every handler within a context manager of its job, in the same thread; the first one is outermost.

        `function` is a generator function that yields once, or returns the context manager.
        """
        self._registry.around.append(as_surrounding(function))
        return function

    def on_enqueue(self, function: H, /) -> H:
        """Have a plain function see every request before it is stored; it may return headers to add, or raise to refuse it."""
        check_hook(function)
        self._registry.enqueue_hooks.append(function)
        return function

    @asynccontextmanager
    async def lifespan(
        self, app: object = None, /, **settings: Unpack[WorkerSettings]
    ) -> AsyncGenerator[None]:
        """Run a worker for as long as an ASGI app lives: `FastAPI(lifespan=scheduler.lifespan)`.

        Meanwhile the `dependency_overrides` of the app count in tasks, too. The worker claims nothing more as soon as the process
        is told to stop, while the server still waits for open requests.
        """
        with self._registry.overrides.of_app(app):
            async with self.worker(**settings) as worker:
                with on_stop_signal(lambda: worker.ask_to_stop(now=False)):
                    yield

    def api(self, **options: Any) -> AsgiApp:
        """Return an ASGI app that shows and steers this scheduler over HTTP: `app.mount("/duetime", scheduler.api())`.

        `authenticate=` is a function of a request, async or not, that returns a `duetime.web.User` or `None`; without
        it, tokens and sessions tell who asks. `hosts=` are the names that it answers to, apart from addresses and this
        machine's own. It needs the extra `web`.
        """
        return make_web_app("make_api", self, options)

    def run(
        self,
        *,
        log_level: str = "info",
        processes: int = 1,
        reload: bool = False,
        **settings: Unpack[WorkerSettings],
    ) -> None:
        """Work until SIGINT or SIGTERM: what a script ends with, `if __name__ == "__main__": scheduler.run()`.

        Running jobs have the grace time to end; a second signal cancels them. What is logged goes to standard error,
        unless the script has said where. With several processes, or `reload`, the script runs anew in each of them.
        """
        check_can_run()
        if not logging.getLogger().handlers:
            configure_logging(log_level)
        worker_options(**settings)  # Refused here, and not in each process.
        code = supervise(processes, reload=reload)
        if code is None:
            run_until_stopped(self, settings)
        elif code:
            sys.exit(code)

    def make_store(self) -> Store:
        """Return a store of this scheduler that is not open yet."""
        return open_store(
            self.url, namespace=self.namespace, auto_migrate=self.auto_migrate, clock=self.clock
        )

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect to the store; opened twice, it stays open until closed twice."""
        async with self._opening:
            if self.is_open:
                self._opened()
                self._users += 1
                return
            store = self.make_store()
            await store.open()
            if store.moved is not None:  # Reading is still allowed.
                log.warning("%s", StoreMoved(store.moved))
            self._store = store
            self._loop = asyncio.get_running_loop()
            self._pid = os.getpid()
            self._users = 1

    async def close(self) -> None:
        """Close the store when no one uses it any more."""
        if not self.is_open or self._store is None:
            return
        self._users -= 1
        if not self._users:
            store, self._store, self._loop = self._store, None, None
            if "locks" in vars(self) and self.lock_url is None:
                await self.locks.close()
            await store.close()

    def close_after(self, lingering: asyncio.Future[Any]) -> None:
        """Close the scheduler when a task has ended."""

        async def close() -> None:
            await asyncio.wait({lingering})
            await self.close()

        self._closing = asyncio.create_task(close())

    @property
    def is_open(self) -> bool:
        """Whether the scheduler is connected, in this process, to a store."""
        # A forked child must not use its parent's connections, nor those of a loop that has ended.
        return self._pid == os.getpid() and self._loop is not None and not self._loop.is_closed()

    @property
    def store(self) -> Store:
        """The open store."""
        return self._opened()

    @property
    def declared(self) -> Declarations:
        """The schedules that the code declares."""
        queues = {name: schedule.queue for name, schedule in self._registry.schedules.items()}
        return Declarations(queues, self.put_declared)

    async def put_declared(self) -> None:
        """Store the schedules that the code declares; what is unchanged is not written."""
        if self._registry.schedules:
            await declare_schedules(self._opened(), self._registry.schedules)

    def _make_sibling(self) -> Store:
        """Return a store for locks, of all parts the last."""
        return self.make_store().parts[-1] if self._store is None else self._store.parts[-1].sibling()

    def _task_of(self, decorated: Any) -> Task[..., Any]:
        if _is_job_class(decorated):
            return task_of(decorated)
        return cast("Task[..., Any]", decorated if isinstance(decorated, Task) else self.task(decorated))

    def add_task(self, function: AnyFunction, *, name: str | None, options: TaskOptions) -> Task[..., Any]:
        """Register a function as a task with options that are read already; `task` is the verb for users."""
        if isinstance(function, Task):
            raise InvalidTask(
                f"{function.name} is a task already; put @scheduler.task below @scheduler.schedule"
            )
        handler = self._registry.add_task(function, name, options)
        return AsyncTask(handler, self) if handler.is_async else SyncTask(handler, self)

    def _handles(self, ids: Sequence[JobId], calls: Sequence[Call[Any]]) -> list[JobHandle[Any]]:
        return [
            JobHandle(job_id, job.task, self._opened, decode, job.id)
            for job_id, (job, decode, _) in zip(ids, calls, strict=True)
        ]

    def _opened(self) -> Store:
        """Return the store that is open in this process and event loop; raises `NotOpen`."""
        store = self._store
        if store is None or self._loop is not asyncio.get_running_loop() or self._pid != os.getpid():
            raise self._not_open()
        return store

    def _not_open(self) -> NotOpen:
        text = (
            "the scheduler is not open; use it inside `async with scheduler:`, give a web application its lifespan, "
            "as in FastAPI(lifespan=scheduler.lifespan), or call task.sync.enqueue(...)"
        )
        elsewhere = (
            "the scheduler is open in another event loop; from threads call task.sync.enqueue(...), and "
            "after blocking calls without a loop call scheduler.sync.close() before opening it here"
        )
        return NotOpen(elsewhere if self.is_open else text)

    async def _introduced(self) -> Store:
        """Return the open store once it knows what it is called."""
        store = self._opened()
        await store.identity()
        return store


def _own(tx: object) -> object:
    """Return the connection behind a handler's transaction; others pass as they are."""
    return tx.connection if isinstance(tx, JobTransaction) else tx


def _is_job_class(decorated: object) -> TypeGuard[type[Job]]:
    return isinstance(decorated, type) and issubclass(decorated, Job)
