"""Watches a store for all streams of a process: what has changed since it last looked, in order and numbered."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from duetime.errors import DuetimeError
from duetime.model.ids import new_token
from duetime.model.job import JobId
from duetime.model.states import State
from duetime.model.stored.audit import StoredAuditEntry, Subject
from duetime.model.stored.watched import MOST_NOTED, JobOutline, Journal, WatchedWorker
from duetime.model.time import SECOND, Instant, Micros
from duetime.model.worker import WorkerId
from duetime.scheduler.processes.shutdown import on_stop_signal
from duetime.scheduler.records import optional_datetime
from duetime.scheduler.scheduler import Scheduler
from duetime.stores.base import Store
from duetime.stores.base.backoff import backoff

log = logging.getLogger("duetime.web")

_LOOKS: Final = 4
"""How often it looks in a second, at most."""
_SPACING: Final = 0.2
"""Seconds from one look to the next, at least."""
_LINGER: Final = 0.04
"""Seconds from a hint to the look: what is stored, claimed and done at once is told at once."""
_QUIET: Final = 1.0
"""Seconds after which it looks without a hint."""
_DEAF: Final = 0.25
"""The same where hints of other processes do not arrive."""
_LEASE: Micros = 30 * SECOND
"""For how long workers note what they do, if nothing more is heard of a watch."""
_LONGEST_BEGINNING: Final = 1.0
"""For how many seconds a watch that begins waits for workers to know of it."""
_NEWEST: Final = 250
_MOST_NEWEST: Final = 1_000
_SOON: Micros = SECOND
_FIRST_DUE: Final = 100
_DUE_SHARE: Final = 50
"""To look for what falls due soon takes at most this share of the time; where much waits, that is a long look."""
_ENTRIES: Final = 50
_MOST_CHANGES: Final = 1_000
"""How many changes of jobs are told in a second; of more, how many there are."""
_REMEMBERED: Final = 5_000
"""How many jobs it knows the last state of."""
_AFTERLIFE = 5.0
"""For how many seconds it goes on watching when the last reader has left."""
_KEPT: Final = 500
"""How many events are kept for readers that come back."""


@dataclass(frozen=True, slots=True)
class JobChange:
    """A job that has changed, as it is now."""

    id: JobId
    task: str
    queue: str
    state: State
    schedule: str | None
    due_at: datetime
    created_at: datetime
    started_at: datetime | None
    """When its run began; null while it waits or is only claimed."""
    finished_at: datetime | None
    worker: WorkerId | None


class Change(NamedTuple):
    """One thing that has changed."""

    queue: str | None
    """Where it belongs; `None` for what is told only to those who see all queues."""
    said: Any


class WatchEvent(NamedTuple):
    """What happened between two looks to things of a kind."""

    number: int
    kind: str
    changes: Sequence[Change]
    said: Mapping[str, Any]
    """What is told to everyone."""


class Watch:
    """One for all streams of a process, and only while there are any."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._readers = 0
        self._task: asyncio.Task[None] | None = None
        self._end: asyncio.TimerHandle | None = None
        self.nonce: Final = new_token()[:8]
        """Tells its numbers from those of another process."""
        self.number = 0
        """That of the last event."""
        self.ready = False
        """Whether it has looked once, and the store answered last."""
        self.down: str | None = None
        """That the store does not answer, if so."""
        self.stopping = False
        self._stops: dict[Callable[[], object], None] = {}
        self.heeds_signals = False
        """Whether streams end when the process is told to stop, so that they need not end by themselves."""
        self._kept: deque[WatchEvent] = deque(maxlen=_KEPT)
        self._news = asyncio.Event()

    @contextlib.contextmanager
    def open(self) -> Generator[None]:
        """Watch for the duration of the block, and a little longer, so that a reader that comes back misses nothing."""
        self._readers += 1
        if self._end is not None:
            self._end.cancel()
            self._end = None
        if self._task is None or self._task.done():
            # What has happened since the last event is not known.
            self.number += 1
            self._kept.clear()
            self.ready, self.down = False, None
            self._task = asyncio.create_task(self._run(), name="duetime-watch")
        try:
            yield
        finally:
            self._readers -= 1
            if not self._readers:
                self._end = asyncio.get_running_loop().call_later(_AFTERLIFE, self._task.cancel)

    def since(self, number: int) -> list[WatchEvent] | None:
        """Return the events after one; `None` when some of them are not kept any more."""
        if number > self.number or self.number - number > len(self._kept):
            return None
        return list(self._kept)[len(self._kept) - (self.number - number) :]

    def news(self) -> Coroutine[Any, Any, bool]:
        """Return what waits from now on until there is another event, or the process is told to stop."""
        return self._news.wait()

    def publish(self, kind: str, changes: Iterable[Change] = (), **said: Any) -> None:
        """Number an event and pass it to all readers."""
        self.number += 1
        self._kept.append(WatchEvent(self.number, kind, tuple(changes), said))
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    @contextlib.contextmanager
    def on_stop(self, call: Callable[[], object]) -> Generator[None]:
        """Call a function when the process is told to stop, or at once if it was."""
        if self.stopping:
            call()
        self._stops[call] = None
        try:
            yield
        finally:
            del self._stops[call]

    def _stop(self) -> None:
        self.stopping = True
        for call in self._stops:
            call()
        self._wake()

    async def _run(self) -> None:
        hinted = asyncio.Event()
        listener = asyncio.create_task(self._listen(hinted), name="duetime-watch-hints")
        try:
            with on_stop_signal(self._stop) as self.heeds_signals:
                await self._look_on(hinted)
        finally:
            listener.cancel()

    async def _listen(self, hinted: asyncio.Event) -> None:
        while True:
            with contextlib.suppress(DuetimeError):
                async for _ in self._scheduler.store.wakeups():
                    hinted.set()
            await asyncio.sleep(_QUIET)

    async def _look_on(self, hinted: asyncio.Event) -> None:
        """Look whenever there may be something new, and tell when the database cannot be asked."""
        looks, failures = deque[float](maxlen=_LOOKS), 0
        view = View(self, self._scheduler.store)
        while True:
            hinted.clear()
            looks.append(time.monotonic())
            try:
                await view.look()
            except Exception as error:
                if not isinstance(error, DuetimeError):
                    log.exception("the watch for streams failed; it looks again")
                if not failures:
                    self.ready, self.down = False, "the database cannot be reached or used"
                    self.publish("down", reason=self.down)
                await asyncio.sleep(backoff(failures))
                failures += 1
                continue
            if failures:
                failures, self.down = 0, None
                self.publish("resync", reason="the database answers again")
            if not self.ready:
                self.ready = True
                self._wake()
            await _next_look(hinted, looks, quiet=_QUIET if self._scheduler.store.hears_others else _DEAF)


async def _next_look(hinted: asyncio.Event, looks: deque[float], *, quiet: float) -> None:
    """Wait for a hint or for long enough, and then until another look is allowed."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(quiet):
            await hinted.wait()
            await asyncio.sleep(_LINGER)
    earliest = looks[-1] + _SPACING
    if len(looks) == _LOOKS:
        earliest = max(earliest, looks[0] + 1)
    await asyncio.sleep(max(0.0, earliest - time.monotonic()))


class View:
    """What a watch has seen."""

    def __init__(self, watch: Watch, store: Store) -> None:
        self._watch = watch
        self._store = store
        self._begun = False
        self._jobs: OrderedDict[JobId, JobOutline] = OrderedDict()
        self._workers: dict[tuple[WorkerId, int], WatchedWorker] = {}
        self._journals: dict[tuple[WorkerId, int], Journal] = {}
        self._entries: OrderedDict[str, None] = OrderedDict()
        self._look_for_due_at = 0.0
        self._allowance = float(_MOST_CHANGES)
        self._looked_at = time.monotonic()
        self._newest = _NEWEST
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """How many changes there were since the last look, by queue and state, as far as that is known."""
        self._beyond = False
        """Whether there were more than can be named."""
        self._missed: str | None = None
        """Why readers have to read again what they show."""
        self._last_id: JobId = ""

    async def look(self) -> None:
        """Publish what has changed since the last look; the first one only learns how things are."""
        self._counts.clear()
        self._beyond, self._missed = False, None
        if not self._begun:
            await self._await_workers()
        ids = await self._read_journals()
        ids += await self._read_entries()
        changed = await self._read_jobs(ids)
        if self._begun:
            self._tell(changed + await self._read_due())
        self._begun = True

    async def _await_workers(self) -> None:
        """Wait until the workers know that they are watched, but not long for one that does not answer."""
        now, give_up_at = await self._store.now(), time.monotonic() + _LONGEST_BEGINNING
        while time.monotonic() < give_up_at:
            found = await self._store.watch([], lease=_LEASE)
            if all(Journal.read(one.journal).until > now for one in found if one.state == "alive"):
                break
            await asyncio.sleep(_LINGER)

    async def _read_journals(self) -> list[JobId]:
        """Return the jobs that workers have noted; a worker that has done more than it could note is one reason to resync."""
        found = await self._store.watch(list({worker for worker, _ in self._workers}), lease=_LEASE)
        nth, workers = Counter[WorkerId](), dict[tuple[WorkerId, int], WatchedWorker]()
        for worker in found:
            workers[worker.id, nth[worker.id]] = worker
            nth[worker.id] += 1
        self._tell_workers(workers)
        ids: dict[JobId, None] = {}
        for key, worker in workers.items():
            ids |= dict.fromkeys(self._new_in(key, worker))
        self._workers = {key: worker for key, worker in workers.items() if worker.state == "alive"}
        self._journals = {key: one for key, one in self._journals.items() if key in self._workers}
        self._beyond |= len(ids) > _MOST_CHANGES
        return list(ids)[-_MOST_CHANGES:]

    def _new_in(self, key: tuple[WorkerId, int], worker: WatchedWorker) -> Sequence[JobId]:
        journal, before = Journal.read(worker.journal), self._journals.get(key)
        if before is None:
            # What one had done before it was watched is known to those who have just begun to look, too.
            before = Journal() if self._begun and key not in self._workers else journal
        self._journals[key] = journal
        new = journal.total - before.total
        for queue, tallies in journal.tallies.items():
            self._counts[queue].update(Counter(tallies) - Counter(before.tallies.get(queue, {})))
        if new > len(journal.latest):
            if len(journal.latest) >= MOST_NOTED // 2:
                self._beyond = True
            else:
                self._missed = "a worker had begun before it was watched"
        return journal.latest[-new:] if new > 0 else ()

    def _tell_workers(self, workers: Mapping[tuple[WorkerId, int], WatchedWorker]) -> None:
        changes: dict[WorkerId, Change] = {}
        for key in {*workers, *self._workers}:
            now, before = workers.get(key), self._workers.get(key)
            state = "dead" if now is None else now.state
            if state == "dead" and before is not None:
                self._missed = "a worker has died"
            if now is None or before is None:
                # One whose lease is over is dead before it is marked so.
                news = before is not None or state == "alive"
            else:
                news = (now.state, now.paused) != (before.state, before.paused)
            if news:
                said = {"id": key[0], "state": state, "paused": now is not None and now.paused}
                changes[key[0]] = Change(None, said)
        if changes and self._begun:
            self._watch.publish("workers", changes.values())

    async def _read_entries(self) -> list[JobId]:
        """Return the jobs that people have changed, and publish what else they did; entries do not come in order."""
        found = await self._store.entries(None, limit=_ENTRIES)
        new = [entry for entry in reversed(found) if entry.id not in self._entries]
        if self._begun and len(new) == _ENTRIES:
            self._missed = "much was changed at once"
        self._entries = OrderedDict.fromkeys([*self._entries, *(entry.id for entry in new)])
        while len(self._entries) > _KEPT:
            self._entries.popitem(last=False)
        if not self._begun:
            return []
        subjects = [(entry, Subject.of(entry.target)) for entry in new]
        await self._tell_schedules([(entry, one.name) for entry, one in subjects if one.kind == "schedule"])
        queues = [
            Change(one.name, {"name": one.name, "verb": entry.verb})
            for entry, one in subjects
            if one.kind == "queue"
        ]
        if queues:
            self._watch.publish("queues", queues)
        return [one.name for _, one in subjects if one.kind == "job"]

    async def _tell_schedules(self, entries: Sequence[tuple[StoredAuditEntry, str]]) -> None:
        if entries:
            stored = await self._store.get_schedules([name for _, name in entries])
            queues = {schedule.name: schedule.queue for schedule in stored}
            changes = [
                Change(queues.get(name), {"name": name, "verb": entry.verb}) for entry, name in entries
            ]
            self._watch.publish("schedules", changes)

    async def _read_jobs(self, ids: Sequence[JobId]) -> list[JobOutline]:
        """Return those that differ from what is known, of these jobs and the newest."""
        newest, self._newest = self._newest, _NEWEST
        found = await self._store.glance(ids, newest=newest)
        stored = [one for one in found if one.id > self._last_id]
        for one in stored:
            self._counts[one.queue]["stored"] += 1
        self._last_id = max((one.id for one in found), default=self._last_id)
        if len(stored) >= _NEWEST // 2:
            self._newest = _MOST_NEWEST
        self._beyond |= len(stored) >= newest
        return [one for one in found if self._remember(one)]

    async def _read_due(self) -> list[JobOutline]:
        """Return jobs that fall due before the next look for them, and have not been told as such."""
        begun = time.monotonic()
        if begun < self._look_for_due_at:
            return []
        stored = await self._store.upcoming(_FIRST_DUE)
        now = await self._store.now() if stored else 0
        pause = max(_QUIET, (time.monotonic() - begun) * _DUE_SHARE)
        self._look_for_due_at = begun + pause
        until = now + max(_SOON, int(2 * pause * SECOND))
        outlines = [JobOutline(*(getattr(job, name) for name in JobOutline._fields)) for job in stored]
        return [one for one in outlines if one.due_at <= until and self._remember(one)]

    def _remember(self, one: JobOutline) -> bool:
        """Note how a job is; return whether that is news."""
        before = self._jobs.pop(one.id, None)
        self._jobs[one.id] = one
        if len(self._jobs) > _REMEMBERED:
            self._jobs.popitem(last=False)
        return one != before

    def _tell(self, changed: Sequence[JobOutline]) -> None:
        """Publish jobs, as many as may be told; of the others how many there are."""
        now = time.monotonic()
        elapsed, self._looked_at = now - self._looked_at, now
        self._allowance = min(_MOST_CHANGES, self._allowance + elapsed * _MOST_CHANGES)
        told = _rarest_first(changed)[: int(self._allowance)]
        self._allowance -= len(told)
        if told:
            self._watch.publish("jobs", [Change(one.queue, _shown(one)) for one in told])
        if self._beyond or len(told) < len(changed):
            counts = [
                Change(queue or None, {"queue": queue, "counts": dict(tallies)})
                for queue, tallies in sorted(self._counts.items())
            ]
            self._watch.publish("sampled", counts, seconds=round(elapsed, 3))
        if self._missed is not None:
            self._watch.publish("resync", reason=self._missed)


def _rarest_first(changed: Sequence[JobOutline]) -> list[JobOutline]:
    """Order jobs so that no task, and no kind of end, is hidden behind many of another."""
    seen = Counter[tuple[str, State]]()
    ranked: list[tuple[int, JobOutline]] = []
    for one in changed:
        seen[one.task, one.state] += 1
        ranked.append((seen[one.task, one.state], one))
    return [one for _, one in sorted(ranked, key=lambda pair: pair[0])]


def _shown(one: JobOutline) -> JobChange:
    times: dict[str, Instant | None] = {
        name: getattr(one, name) for name in ("due_at", "created_at", "started_at", "finished_at")
    }
    shown: dict[str, Any] = {name: optional_datetime(instant) for name, instant in times.items()}
    return JobChange(**one._asdict() | shown)
