from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace
from typing import Any, cast

import pytest

from duetime.errors import StoreLost, StoreMoved, StoreUnavailable
from duetime.model.job import JobId
from duetime.model.time import MILLISECOND, SECOND, Instant, Micros
from duetime.model.worker import Command, WorkerId, WorkerInfo, WorkerStats
from duetime.runtime.identity import WorkerIdentity
from duetime.runtime.options import WorkerOptions
from duetime.runtime.store_clock import StoreClock, boottime
from duetime.runtime.upkeep import lease as module
from duetime.runtime.upkeep.lease import LeaseTiming, PulseThread
from duetime.stores.base import Pulse, PulseQuery, Store
from tests.unit.runtime.kit import context_of


class PulsingStore:
    """Answers pulses in the thread of the pulse; an error or a death may be due first."""

    def __init__(self, *answers: BaseException | bool) -> None:
        self.answers = list(answers)
        self.registered: list[str] = []
        self.retired: list[str] = []
        self.pulses = 0
        self.wanted: list[PulseQuery | None] = []

    async def open(self, *, check: bool = True) -> None: ...

    async def close(self) -> None: ...

    async def register(self, worker: WorkerInfo, *, lease: Micros) -> Instant:
        self.registered.append(worker.id)
        return 1

    async def pulse(
        self, worker: WorkerId, stats: WorkerStats, *, lease: Micros, wants: PulseQuery | None = None
    ) -> Pulse:
        self.pulses += 1
        self.wanted.append(wants)
        answer = self.answers.pop(0) if self.answers else True
        if isinstance(answer, BaseException):
            raise answer
        return Pulse(alive=answer, now=1)

    async def attend(self, worker: WorkerId) -> Pulse:
        return Pulse(alive=True, now=2)

    async def retire(self, worker: WorkerId) -> None:
        self.retired.append(worker)


class Listener:
    """A worker that is told what the pulse brings, and notes what it is told to do."""

    def __init__(self) -> None:
        self.whole = self
        self.told: list[object] = []
        self.reported = WorkerStats()
        self.identity = WorkerIdentity(queues=["default"], slots=1)
        self.attended: asyncio.Queue[Pulse] = asyncio.Queue()
        self.lost = asyncio.Event()
        self.asked_to_stop = asyncio.Event()

    def attend(self, pulse: Pulse) -> None:
        self.attended.put_nowait(pulse)

    def lose_lease(self) -> WorkerInfo:
        self.lost.set()
        return self.identity.renew()

    def lose_store(self, error: StoreLost) -> None:
        self.told.append(error)

    def busy(self) -> bool:
        return False

    def stats(self) -> WorkerStats:
        return self.reported

    def pause(self, reason: str | None, *, since: Instant) -> int:
        self.told.append(("pause", reason, since))
        self.reported = WorkerStats(paused_at=since, paused_reason=reason)
        return 3

    def resume(self) -> bool:
        self.told.append("resume")
        return False

    def ask_to_stop(self, *, now: bool) -> int:
        self.told.append(("stop", now))
        self.asked_to_stop.set()
        return 1

    def stop_job(self, job_id: JobId, reason: str | None) -> bool:
        self.told.append((job_id, reason))
        return job_id == "mine"

    def release_job(self, job_id: JobId) -> bool:
        return False

    def stacks(self) -> str:
        return f"asked in {threading.current_thread().name}"


def pulsation(store: Any, listener: Listener, *, lease: Micros) -> PulseThread:
    return PulseThread(
        context_of(store, options=WorkerOptions(lease=lease), identity=listener.identity, time=StoreClock()),
        store=cast("Store", store),
        listener=cast("Any", listener),
        on_hang=lambda: None,
    )


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pulses come often although leases are long, so that none is lost on a busy machine."""
    monkeypatch.setattr(LeaseTiming, "beat", 0.05)


@pytest.mark.usefixtures("often")
async def test_a_worker_registers_pulses_and_signs_off() -> None:
    store, listener = PulsingStore(), Listener()
    pulse = pulsation(store, listener, lease=3600 * SECOND)
    await pulse.start()
    for _ in range(3):
        await asyncio.wait_for(listener.attended.get(), 5)
    await pulse.stop()
    assert store.registered == store.retired == [listener.identity.info.id]


async def test_the_first_pulse_comes_right_after_the_start_and_the_next_when_it_is_time() -> None:
    store, listener = PulsingStore(), Listener()
    pulse = pulsation(store, listener, lease=3600 * SECOND)
    await pulse.start()
    await asyncio.wait_for(listener.attended.get(), 5)
    await pulse.stop()
    assert store.pulses == 1


@pytest.mark.covers("lost-file")
async def test_a_pulse_that_finds_its_store_lost_tells_the_worker() -> None:
    lost = StoreLost("jobs.db was deleted")
    store, listener = PulsingStore(lost), Listener()
    pulse = pulsation(store, listener, lease=30 * SECOND)
    await pulse.start()
    await asyncio.wait_for(listener.attended.get(), 20)
    await pulse.stop()
    assert listener.told == [lost]


async def test_a_pulse_that_fails_is_tried_again_before_the_lease_is_over() -> None:
    store, listener = PulsingStore(*[StoreUnavailable("a moment")] * 3), Listener()
    pulse = pulsation(store, listener, lease=30 * SECOND)
    await pulse.start()
    await asyncio.wait_for(listener.attended.get(), 20)
    await pulse.stop()
    assert not listener.lost.is_set()
    assert store.pulses >= 4
    assert len(store.registered) == 1


async def test_a_worker_that_was_declared_dead_drops_everything_and_goes_on_under_another_id() -> None:
    store, listener = PulsingStore(False), Listener()
    first = listener.identity.info.id
    pulse = pulsation(store, listener, lease=3600 * SECOND)
    await pulse.start()
    await asyncio.wait_for(listener.lost.wait(), 5)
    await asyncio.wait_for(listener.attended.get(), 5)
    await pulse.stop()
    assert store.registered == [first, listener.identity.info.id]
    assert store.retired == [listener.identity.info.id]


@pytest.mark.covers("copy-source-runs-on")
async def test_a_worker_that_was_thought_dead_when_its_store_was_copied_elsewhere_stops() -> None:
    class Left(PulsingStore):
        async def register(self, worker: WorkerInfo, *, lease: Micros) -> Instant:
            if self.registered:
                raise StoreMoved("a was copied to b")
            return await super().register(worker, lease=lease)

    store, listener = Left(False), Listener()
    pulse = pulsation(store, listener, lease=600 * SECOND)
    await pulse.start()
    async with asyncio.timeout(5):
        await listener.asked_to_stop.wait()
        await pulse.stop()
    assert listener.lost.is_set()
    assert listener.told[0] == ("stop", True)


@pytest.mark.usefixtures("often")
def test_a_worker_that_is_declared_dead_after_its_loop_has_ended_leaves_no_thread() -> None:
    class Busy(Listener):
        def busy(self) -> bool:
            return True

    store = PulsingStore()

    async def begin() -> PulseThread:
        pulse = pulsation(store, Busy(), lease=600 * SECOND)
        await pulse.start()
        return pulse

    pulse = asyncio.run(begin())
    store.answers.append(False)
    pulse._thread.join(5)
    assert not pulse._thread.is_alive()


async def test_a_worker_whose_lease_ran_out_by_its_own_clock_stops_without_being_told() -> None:
    store, listener = PulsingStore(*[StoreUnavailable("for long")] * 200), Listener()
    pulse = pulsation(store, listener, lease=150 * MILLISECOND)
    await pulse.start()
    await asyncio.wait_for(listener.lost.wait(), 5)
    await pulse.stop()


@pytest.mark.usefixtures("often")
async def test_a_worker_that_wakes_up_after_its_deadline_stops_before_it_asks_the_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, listener = PulsingStore(), Listener()
    pulse = pulsation(store, listener, lease=3600 * SECOND)
    await pulse.start()
    await asyncio.wait_for(listener.attended.get(), 5)
    now = boottime()
    monkeypatch.setattr(module, "boottime", lambda: now + 3600 * SECOND)
    # Had it asked first, the store would have renewed the lease.
    await asyncio.wait_for(listener.lost.wait(), 5)
    await pulse.stop()


async def test_a_worker_whose_store_refuses_at_once_gives_up_at_its_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LeaseTiming, "retry", 3600.0)
    store, listener = PulsingStore(*[StoreUnavailable("for long")] * 200), Listener()
    pulse = pulsation(store, listener, lease=150 * MILLISECOND)
    await pulse.start()
    await asyncio.wait_for(listener.lost.wait(), 5)
    await pulse.stop()


async def test_a_request_is_looked_for_when_the_worker_is_hinted() -> None:
    store, listener = PulsingStore(), Listener()
    pulse = pulsation(store, listener, lease=3600 * SECOND)
    await pulse.start()
    await asyncio.wait_for(listener.attended.get(), 5)
    pulse.ask()
    assert (await asyncio.wait_for(listener.attended.get(), 5)).now == 2
    assert store.pulses == 1
    await pulse.stop()


async def test_a_look_for_requests_that_gets_no_answer_keeps_no_heartbeat_waiting() -> None:
    class Silent(PulsingStore):
        async def attend(self, worker: WorkerId) -> Pulse:
            await asyncio.Event().wait()
            raise AssertionError

    listener = Listener()
    pulse = pulsation(Silent(), listener, lease=600 * MILLISECOND)
    await pulse.start()
    await asyncio.wait_for(listener.attended.get(), 5)
    pulse.ask()
    await asyncio.wait_for(listener.attended.get(), 5)
    await pulse.stop()


async def test_no_look_for_requests_keeps_a_worker_from_giving_up_before_its_lease_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The second heartbeat comes as late as it may.
    monkeypatch.setattr("duetime.runtime.upkeep.lease.random.uniform", lambda _least, most: most)

    class Silent(PulsingStore):
        renewed = 0.0

        async def pulse(
            self, worker: WorkerId, stats: WorkerStats, *, lease: Micros, wants: PulseQuery | None = None
        ) -> Pulse:
            if self.pulses:
                # A hint comes meanwhile, so that a look follows.
                pulse.ask()
                await asyncio.Event().wait()
            self.renewed = time.monotonic()
            return await super().pulse(worker, stats, lease=lease, wants=wants)

        async def attend(self, worker: WorkerId) -> Pulse:
            await asyncio.Event().wait()
            raise AssertionError

    store, listener, lease = Silent(), Listener(), 2400 * MILLISECOND
    pulse = pulsation(store, listener, lease=lease)
    await pulse.start()
    await asyncio.wait_for(listener.lost.wait(), 10)
    assert time.monotonic() - store.renewed < lease / SECOND
    await pulse.stop()


async def test_a_store_that_cannot_be_used_is_told_at_the_start() -> None:
    class Closed(PulsingStore):
        async def open(self, *, check: bool = True) -> None:
            raise StoreUnavailable("nobody there")

    with pytest.raises(StoreUnavailable, match="nobody there"):
        await pulsation(Closed(), Listener(), lease=SECOND).start()


class CommandingStore(PulsingStore):
    """Has one command open from the first heartbeat on until it is answered."""

    def __init__(self, kind: str, *answers: BaseException | bool) -> None:
        super().__init__(*answers)
        self.command = Command(
            id="c1",
            worker="w1",
            kind=kind,
            job=None,
            reason="because",
            created_at=5,
            taken_at=6,
            done_at=None,
            outcome=None,
            dropped=False,
        )
        self.events: list[object] = []
        self.finished = threading.Event()

    async def pulse(
        self, worker: WorkerId, stats: WorkerStats, *, lease: Micros, wants: PulseQuery | None = None
    ) -> Pulse:
        answer = await super().pulse(worker, stats, lease=lease, wants=wants)
        if self.pulses == 1:
            return answer
        self.events.append(("pulse", stats.paused_reason))
        return replace(answer, commands=not self.finished.is_set())

    async def attend(self, worker: WorkerId) -> Pulse:
        return Pulse(alive=True, now=2, commands=not self.finished.is_set())

    async def take_commands(self, worker: WorkerId) -> list[Command]:
        return [self.command]

    async def finish_command(self, command: str, outcome: str) -> None:
        self.events.append(outcome)
        self.finished.set()

    async def answered(self) -> None:
        assert await asyncio.to_thread(self.finished.wait, 10)


async def test_a_command_is_answered_after_a_pulse_that_shows_what_it_did() -> None:
    store, listener = CommandingStore("pause"), Listener()
    pulse = pulsation(store, listener, lease=3600 * SECOND)
    await pulse.start()
    await listener.attended.get()
    pulse.ask()
    await store.answered()
    await pulse.stop()
    assert listener.told == [("pause", "because", 6)]
    assert store.events == [("pulse", "because"), "paused; 3 jobs still running"]


@pytest.mark.usefixtures("often")
async def test_a_command_comes_with_a_pulse_when_no_hint_is_heard() -> None:
    store, listener = CommandingStore("resume"), Listener()
    pulse = pulsation(store, listener, lease=3600 * SECOND)
    await pulse.start()
    await store.answered()
    await pulse.stop()
    assert listener.told == ["resume"]


class AskedAgain(CommandingStore):
    """Holds up the second look for commands until the loop, which stood still, has carried the first one out."""

    def __init__(self, kind: str, listener: Listener) -> None:
        super().__init__(kind)
        self.pulse_of_worker: PulseThread | None = None
        self.looks = 0
        self.looking_again = threading.Event()
        self._listener = listener

    async def take_commands(self, worker: WorkerId) -> list[Command]:
        self.looks += 1
        if self.looks == 1 and self.pulse_of_worker is not None:
            self.pulse_of_worker.ask()
        elif self.looks == 2:
            self.looking_again.set()
            while not self._listener.told:  # noqa: ASYNC110 - the other thread's doing
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.01)
        return await super().take_commands(worker)

    async def tell(self, pulse: PulseThread) -> None:
        self.pulse_of_worker = pulse
        await pulse.start()
        await self._listener.attended.get()
        pulse.ask()
        assert self.looking_again.wait(10)  # The loop stands still meanwhile.
        await self.answered()
        await pulse.stop()


async def test_an_answer_waits_for_the_pulse_also_when_it_comes_while_the_worker_is_asked_again() -> None:
    listener = Listener()
    store = AskedAgain("pause", listener)
    await store.tell(pulsation(store, listener, lease=3600 * SECOND))
    assert store.events == [("pulse", "because"), "paused; 3 jobs still running"]


class AnsweredDuringPulse(CommandingStore):
    """Holds up a pulse, whose record is made, until the loop has carried the command out."""

    def __init__(self, listener: Listener) -> None:
        super().__init__("pause")
        self.taken = False
        self.pulsing = threading.Event()
        self._listener = listener

    async def pulse(
        self, worker: WorkerId, stats: WorkerStats, *, lease: Micros, wants: PulseQuery | None = None
    ) -> Pulse:
        if self.taken:
            self.pulsing.set()
            while not self._listener.told:  # noqa: ASYNC110 - the other thread's doing
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.01)
        return await super().pulse(worker, stats, lease=lease, wants=wants)

    async def take_commands(self, worker: WorkerId) -> list[Command]:
        self.taken = True
        return await super().take_commands(worker)


@pytest.mark.usefixtures("often")
async def test_an_answer_that_comes_during_a_pulse_waits_for_the_next_one() -> None:
    listener = Listener()
    store = AnsweredDuringPulse(listener)
    pulse = pulsation(store, listener, lease=3600 * SECOND)
    await pulse.start()
    await listener.attended.get()
    pulse.ask()
    assert store.pulsing.wait(10)  # The loop stands still meanwhile.
    await store.answered()
    await pulse.stop()
    # On a busy machine another pulse comes before the stop.
    answer = store.events.index("paused; 3 jobs still running")
    assert store.events[answer - 1] == ("pulse", "because")


async def test_what_a_stopping_worker_was_told_is_answered_before_it_signs_off() -> None:
    class Stopping(Listener):
        def ask_to_stop(self, *, now: bool) -> int:
            pulse._stopping = True  # At once, so that no beat is left to bring the answer.
            return super().ask_to_stop(now=now)

    listener = Stopping()
    store = AskedAgain("stop", listener)
    pulse = pulsation(store, listener, lease=3600 * SECOND)
    await store.tell(pulse)
    assert store.events == ["stopping; 1 job may end within the grace time"]


async def test_stacks_are_answered_by_the_thread_of_the_pulse_while_the_loop_is_blocked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PERIOD", 0.02)
    monkeypatch.setattr(module, "BLOCK_LIMIT", 20 * MILLISECOND)
    store, listener = CommandingStore("stacks"), Listener()
    # What blocks a loop is a job, and while one runs the loop is watched closely.
    listener.reported = WorkerStats(running=1)
    pulse = pulsation(store, listener, lease=3600 * SECOND)
    await pulse.start()
    # Nobody asks: a loop that is blocked passes no hints on.
    assert store.finished.wait(10)
    await pulse.stop()
    assert store.events[-1] == "asked in duetime-pulse"


@pytest.mark.parametrize(("stats", "period"), [(WorkerStats(), 10.0), (WorkerStats(running=1), 1.0)])
async def test_the_loop_is_watched_closely_while_jobs_run_in_it(
    stats: WorkerStats, period: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener, waits, waited = Listener(), list[float | None](), threading.Event()
    listener.reported = stats
    pulse = pulsation(PulsingStore(), listener, lease=3600 * SECOND)

    async def wait(seconds: float | None) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            waited.set()
            await asyncio.Event().wait()

    monkeypatch.setattr(pulse._wake, "wait", wait)
    monkeypatch.setattr(pulse._watch, "ask", lambda **_: None)  # It is in one loop with what it watches.
    beating = asyncio.create_task(pulse._beat_until_stopped())
    pulse._deadline = 2**62
    while not waited.is_set():  # noqa: ASYNC110 - a few turns of the loop
        await asyncio.sleep(0)
    beating.cancel()
    assert waits[1] == period


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize(("error", "traced"), [(StoreUnavailable("away"), False), (KeyError("ours"), True)])
async def test_a_heartbeat_that_fails_by_a_defect_is_logged_with_its_traceback(
    caplog: pytest.LogCaptureFixture, *, error: Exception, traced: bool
) -> None:
    store, listener = PulsingStore(error), Listener()
    pulse = pulsation(store, listener, lease=3600 * SECOND)
    await pulse.start()
    await asyncio.wait_for(listener.attended.get(), 5)
    await pulse.stop()
    [record] = [record for record in caplog.records if "lease could not be renewed" in record.getMessage()]
    assert (record.levelname, record.exc_info is not None) == ("WARNING", traced)


@pytest.mark.usefixtures("often")
async def test_a_worker_that_cannot_register_anew_says_so(caplog: pytest.LogCaptureFixture) -> None:
    class Refusing(PulsingStore):
        async def register(self, worker: WorkerInfo, *, lease: Micros) -> Instant:
            now = await super().register(worker, lease=lease)
            if len(self.registered) == 2:
                raise StoreUnavailable("away")
            return now

    store, listener = Refusing(False), Listener()
    pulse = pulsation(store, listener, lease=3600 * SECOND)
    await pulse.start()
    await asyncio.wait_for(listener.attended.get(), 5)
    await pulse.stop()
    assert (
        f"worker {listener.identity.info.id} cannot register anew, and it will be tried again: away"
        in caplog.messages
    )


class Looking:
    """Heartbeats of one of many workers, with the time in the hands of the test."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *,
        workers: int = 1,
        fires: bool = True,
        lease: Micros = 30 * SECOND,
    ) -> None:
        self.now = 0
        monkeypatch.setattr(module, "monotonic", lambda: self.now)
        self.store, self.listener = PulsingStore(), Listener()
        self.listener.identity = WorkerIdentity(queues=("default",), slots=1, tasks=("greet",), fires=fires)
        self.pulse = pulsation(self.store, self.listener, lease=lease)
        self.pulse._deadline = 2**62
        self.pulse._fleet.workers = workers

    async def beat(self, *, times: int = 1) -> list[PulseQuery | None]:
        """Beat, and return what was looked for."""
        for _ in range(times):
            await self.pulse._beat()
            self.now += 10 * SECOND
        return self.store.wanted[-times:]


async def test_every_heartbeat_of_a_worker_that_is_alone_looks_for_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    everything = PulseQuery(queues=("default",), tasks=("greet",), schedules=True, orphans=True)
    assert await Looking(monkeypatch).beat(times=3) == [everything] * 3


async def test_a_worker_that_fires_no_schedules_looks_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    [wants] = await Looking(monkeypatch, fires=False).beat()
    assert wants is not None
    assert not wants.schedules


async def test_heartbeats_that_come_seldom_leave_looking_to_the_services(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await Looking(monkeypatch, lease=60 * SECOND).beat() == [None]


@pytest.mark.covers("fleet-storm")
@pytest.mark.parametrize(("workers", "looks"), [(10, 60), (100, 20), (1_000, 20)])
async def test_the_heartbeats_of_a_fleet_look_in_turn(
    monkeypatch: pytest.MonkeyPatch, workers: int, looks: int
) -> None:
    wants = await Looking(monkeypatch, workers=workers).beat(times=60)
    assert len([one for one in wants if one is not None]) == looks


async def test_a_look_whose_answer_did_not_come_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looking = Looking(monkeypatch, workers=1_000)
    looking.store.answers = [StoreUnavailable("a moment")]
    wants = await looking.beat(times=3)
    assert [one is not None for one in wants] == [True, True, False]
