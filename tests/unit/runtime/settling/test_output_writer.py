from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from duetime.errors import StoreError, StoreUnavailable, StoreUnusable
from duetime.model.reports import NewLogPart, Progress
from duetime.runtime.running.run import RunOutput
from duetime.runtime.settling import settler as reporter
from duetime.runtime.settling.settler import OutputWriter
from tests.unit.runtime.kit import claim, context_of


class ReportStore:
    """Takes reports, unless an error is due first."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.sent: list[tuple[list[tuple[str, float]], list[str]]] = []
        self.told = asyncio.Event()

    async def report(self, progress: Sequence[Progress], logs: Sequence[NewLogPart]) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.sent.append(
            ([(said.token.job_id, said.fraction) for said in progress], [part.text for part in logs])
        )
        self.told.set()


def reporter_of(store: ReportStore) -> OutputWriter:
    return OutputWriter(context_of(store))


async def test_nothing_is_written_and_no_timer_runs_while_nobody_speaks() -> None:
    store = ReportStore()
    assert await reporter_of(store).round() is None
    assert store.sent == []


async def test_the_first_word_waits_a_little_and_later_ones_a_second() -> None:
    store = ReportStore()
    service = reporter_of(store)
    output = RunOutput(claim(), service)
    service.wakeup.clear()
    output.set_progress(0.1, "")
    await asyncio.sleep(0)
    assert service.wakeup._later is not None
    assert service.wakeup._later.when() > asyncio.get_running_loop().time(), (
        "runs that end sooner say it themselves"
    )
    output.set_progress(0.2, "")
    assert await service.round() == reporter._WRITE_PAUSE
    assert store.sent == [([("job", 0.2)], [])]
    output.set_progress(0.3, "")
    assert await service.round() == reporter._WRITE_PAUSE
    assert store.sent[1:] == [([("job", 0.3)], [])]
    assert await service.round() is None
    assert len(store.sent) == 2


async def test_a_word_during_the_pause_does_not_cut_it_short() -> None:
    store = ReportStore()
    service = reporter_of(store)
    output = RunOutput(claim(), service)
    output.set_progress(0.1, "")
    await service.round()
    await asyncio.sleep(0)
    service.wakeup.clear()
    output.read()
    output.set_progress(0.2, "")
    await asyncio.sleep(0)
    assert not service.wakeup._event.is_set()


async def test_all_runs_share_one_write() -> None:
    store = ReportStore()
    service = reporter_of(store)
    for n in range(3):
        output = RunOutput(claim(f"job-{n}"), service)
        output.set_progress(n / 10, "")
        output.add_log(f"line {n}")
    await service.round()
    await service.round()
    assert store.sent == [([("job-0", 0.0), ("job-1", 0.1), ("job-2", 0.2)], ["line 0", "line 1", "line 2"])]


async def test_runs_that_ended_meanwhile_cost_no_write() -> None:
    store = ReportStore()
    service = reporter_of(store)
    for n in range(1_000):
        output = RunOutput(claim(f"job-{n}"), service)
        output.add_log("line")
        output.take_rest()
    await service.round()
    assert await service.round() is None
    assert store.sent == []
    assert not service._waiting


async def test_a_write_is_bounded_and_the_rest_comes_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporter, "_MAX_CHARACTERS", 250)
    store = ReportStore()
    service = reporter_of(store)
    for n in range(5):
        RunOutput(claim(f"job-{n}"), service).set_progress(0.5, "")
    while await service.round() is not None:
        pass
    assert [len(progress) for progress, _ in store.sent] == [3, 2]


@pytest.mark.parametrize("kind", [StoreUnavailable, StoreUnusable])
async def test_what_was_said_while_the_database_was_away_is_written_later(kind: type[StoreError]) -> None:
    store = ReportStore(kind("away"))
    service = reporter_of(store)
    output = RunOutput(claim(), service)
    output.set_progress(0.1, "")
    output.add_log("line")
    with pytest.raises(kind):
        await service.round()
    output.set_progress(0.2, "")
    await service.round()
    assert store.sent == [([("job", 0.2)], ["line"])]


async def test_what_the_database_refuses_is_dropped() -> None:
    store = ReportStore(ValueError("no"))
    service = reporter_of(store)
    output = RunOutput(claim(), service)
    output.add_log("bad")
    with pytest.raises(ValueError, match="no"):
        await service.round()
    output.add_log("good")
    await service.round()
    assert store.sent == [([], ["good"])]


async def test_a_word_from_a_thread_wakes_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporter, "_FIRST_WRITE_AFTER", 0.001)
    store = ReportStore()
    service = reporter_of(store)
    service.start()
    await asyncio.sleep(0)
    thread = threading.Thread(target=RunOutput(claim(), service).set_progress, args=(0.5, ""))
    thread.start()
    async with asyncio.timeout(10):
        await store.told.wait()
    thread.join()
    await service.stop()
    assert store.sent == [([("job", 0.5)], [])]


async def test_what_is_left_is_written_when_the_service_stops() -> None:
    store = ReportStore()
    service = reporter_of(store)
    RunOutput(claim(), service).add_log("bye")
    await service.stop()
    assert store.sent == [([], ["bye"])]


async def test_what_cannot_be_written_when_the_service_stops_is_a_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = ReportStore(StoreUnavailable("away"))
    service = reporter_of(store)
    RunOutput(claim(), service).set_progress(0.5, "")
    await service.stop()
    assert caplog.messages == [
        "progress and log lines of jobs could not be stored before the worker stopped: away"
    ]
