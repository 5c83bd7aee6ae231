from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Any, cast

import pytest

from duetime.model.job import Claim
from duetime.model.outcome import Crashed, Outcome
from duetime.model.retention import Retention
from duetime.model.statistics import PART, StatisticsParts, StatisticsRow
from duetime.model.time import SECOND, Instant, Micros
from duetime.runtime.identity import process_started
from duetime.runtime.options import WorkerOptions
from duetime.runtime.pacing import FleetPacing, Interval
from duetime.runtime.running.dispatcher import Dispatcher
from duetime.runtime.store_clock import monotonic
from duetime.runtime.upkeep.janitor import Janitor
from duetime.stores.base import PeerWorker, PruneResult, RescueResult
from tests.unit.runtime.kit import StillTime, claim, context_of


class Ward:
    """A store with orphans under this worker, and a dispatcher that notes what is settled."""

    def __init__(self, *claims: Claim, started_at: Instant | None) -> None:
        self.claims = claims
        self.started_at = started_at
        self.settled: list[tuple[str, Outcome]] = []
        self.pruned: list[tuple[Retention, str]] = []
        self.prunes: list[tuple[int, str | None]] = []
        self.others: list[PeerWorker] = []
        self.hears_others = True
        self.buried: list[str] = []
        self.known_dead: set[str] = set()
        self.over: list[str] = []
        self.sweeps = 0
        self.parts: list[StatisticsRow] = []
        self.folds = 0
        self.statistics_pruned = 0

    async def peers(self, worker: str, host_key: str | None, *, soon: Micros) -> list[PeerWorker]:
        return [peer for peer in self.others if peer.id not in self.buried]

    async def bury(self, workers: Sequence[str]) -> list[str]:
        new = [worker for worker in workers if worker not in self.known_dead]
        self.buried += workers
        return new

    async def rescue(self, worker: str, claim_id: str) -> RescueResult:
        self.sweeps += 1
        dead, self.over = self.over, []
        return RescueResult(dead, [])

    async def prune(self, retention: Retention, *, after: str = "", dry_run: bool = False) -> PruneResult:
        assert not dry_run
        self.pruned.append((retention, after))
        return PruneResult(*self.prunes.pop(0)) if self.prunes else PruneResult(0, None)

    async def statistics_parts(self, *, limit: int) -> StatisticsParts:
        return StatisticsParts(self.folds, {part.id: part.body for part in self.parts[:limit]})

    async def statistics_rows(self, ids: Sequence[str]) -> dict[str, str]:
        return {}

    async def fold_statistics(self, folds: int, parts: Sequence[str], rows: Sequence[StatisticsRow]) -> bool:
        self.folds += 1
        self.parts = self.parts[len(parts) :]
        return True

    async def prune_statistics(self, now: Instant) -> None:
        self.statistics_pruned += 1

    async def claims_under(self, worker: str, claim_id: str) -> list[Claim]:
        return [claim for claim in self.claims if claim.claim_id == claim_id]

    async def get(self, ids: Sequence[str]) -> list[Any]:
        class Record:
            def __init__(self, job_id: str, started_at: Instant | None) -> None:
                self.id = job_id
                self.started_at = started_at

        return [Record(job_id, self.started_at) for job_id in ids]

    def settle(self, claim: Claim, outcome: Outcome, *, started_at: Instant | None = None) -> None:
        self.settled.append((claim.job_id, outcome))


def crowd_of(workers: int) -> FleetPacing:
    crowd = FleetPacing()
    crowd.workers = workers
    return crowd


def janitor_of(
    ward: Ward,
    *,
    lease: Micros = 30_000_000,
    retention: Micros | None = None,
    workers: int = 1,
    crowd: FleetPacing | None = None,
    watched: bool = False,
) -> Janitor:
    if crowd is None:
        crowd = crowd_of(workers)
    options = WorkerOptions(lease=lease, retention=retention, keep_per_schedule=3)
    return Janitor(
        context_of(ward, options=options, fleet=crowd),
        dispatcher=cast("Dispatcher", ward),
        watched=watched,
    )


async def test_a_claim_held_without_knowing_why_is_settled_as_a_crash_and_never_started() -> None:
    adopted = claim("adopted", claim_id="of a rescue whose answer was lost", on_crash="fail")
    ward = Ward(adopted, started_at=5)
    janitor = janitor_of(ward)
    janitor.take_strays(frozenset({adopted.token}))
    await janitor.round()
    [(job_id, outcome)] = ward.settled
    assert job_id == "adopted"
    assert isinstance(outcome, Crashed)
    assert (outcome.started, outcome.blamed) == (True, False)
    await janitor.round()
    assert len(ward.settled) == 1


async def test_a_stray_that_was_never_started_is_no_crash() -> None:
    ahead = claim("ahead", claim_id="x")
    ward = Ward(ahead, started_at=None)
    janitor = janitor_of(ward)
    janitor.take_strays(frozenset({ahead.token}))
    await janitor.round()
    [(_, outcome)] = ward.settled
    assert isinstance(outcome, Crashed)
    assert not outcome.started


async def pruned(janitor: Janitor, ward: Ward) -> list[str]:
    """Let the time for a prune come; return behind which jobs it has looked."""
    ward.pruned.clear()
    janitor._next_prune = 0
    await janitor.round()
    return [after for _, after in ward.pruned]


@pytest.mark.covers("retention")
async def test_old_records_are_removed_without_being_asked_and_counted_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ward = Ward(started_at=None)
    ward.prunes = [(7, "a"), (5, None)]
    janitor = janitor_of(ward, retention=10)
    with caplog.at_level("INFO", logger="duetime"):
        assert await pruned(janitor, ward) == ["", "a"]
    assert "removed the records of 12 old jobs" in caplog.messages
    assert {retention for retention, _ in ward.pruned} == {
        Retention(before=StillTime().now() - 10, keep_per_schedule=3)
    }
    assert janitor._next_prune > 0


async def test_a_prune_looks_at_a_part_of_a_large_table_and_goes_on_there_next_time() -> None:
    ward = Ward(started_at=None)
    ward.prunes = [(0, f"{number:02}") for number in range(1, 31)]
    janitor = janitor_of(ward, retention=10)
    first = await pruned(janitor, ward)
    assert (len(first), first[-1]) == (20, "19")
    assert (await pruned(janitor, ward))[0] == "20"


async def test_a_prune_that_has_much_to_do_lets_others_have_a_turn_and_goes_on_soon() -> None:
    ward = Ward(started_at=None)
    ward.prunes = [(600, "a"), (600, "b"), (600, "c")]
    janitor = janitor_of(ward, retention=10)
    assert await pruned(janitor, ward) == ["", "a"]
    pause = await janitor.round()
    assert pause is not None
    assert 0 < pause < 1


async def test_without_a_retention_only_what_has_outlived_its_time_goes() -> None:
    ward = Ward(started_at=None)
    await pruned(janitor_of(ward, retention=None), ward)
    assert [retention.before for retention, _ in ward.pruned] == [None]


def peer_of(pid: int, *, same_host: bool = True, lease_left: Micros = 30 * SECOND) -> PeerWorker:
    return PeerWorker("other", pid, process_started(pid), same_host, lease_left)


@pytest.mark.parametrize(
    ("peer", "hears_others", "waits_for_sweep"),
    [
        (None, True, True),
        (peer_of(os.getpid()), True, True),
        (peer_of(os.getpid(), same_host=False), True, True),
        (None, False, False),
    ],
)
async def test_the_store_is_asked_often_only_while_a_death_would_not_be_heard_of(
    peer: PeerWorker | None, hears_others: bool, waits_for_sweep: bool
) -> None:
    ward = Ward(started_at=None)
    ward.others = [] if peer is None else [peer]
    ward.hears_others = hears_others
    pause = await janitor_of(ward, lease=30 * SECOND).round()
    assert pause is not None
    assert (pause > 7) if waits_for_sweep else (pause < 1)


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors of processes are a part of Linux")
async def test_a_neighbour_that_dies_is_buried_without_a_look() -> None:
    process = await asyncio.create_subprocess_exec("sleep", "60")
    ward = Ward(started_at=None)
    ward.others = [peer_of(process.pid)]
    janitor = janitor_of(ward, lease=3600 * SECOND)
    pause = await janitor.round()
    assert pause is not None
    assert pause > 50, "it would look before it is told"
    janitor.wakeup.clear()
    process.kill()
    await asyncio.wait_for(janitor.wakeup.wait(None), 10)
    await janitor.round()
    assert ward.buried == ["other"]
    await process.wait()


async def test_the_janitor_looks_soon_when_there_may_be_other_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    often = Interval(0.001, spacing=0.0, longest=0.001)
    monkeypatch.setattr("duetime.runtime.upkeep.janitor.WATCH_PROCESSES", often)
    janitor = janitor_of(Ward(started_at=None))
    janitor.look_soon()
    await asyncio.wait_for(janitor.wakeup.wait(None), 10)


async def pauses_of(ward: Ward, workers: int) -> list[float]:
    """How long some workers of a fleet sleep after a look."""
    janitors = [janitor_of(ward, workers=workers) for _ in range(20)]
    return [pause for janitor in janitors if (pause := await janitor.round()) is not None]


@pytest.mark.parametrize("near", [1, 3])
async def test_a_few_workers_of_a_host_that_hear_no_hints_look_as_often_as_one_would(near: int) -> None:
    ward = Ward(started_at=None)
    ward.others = [peer_of(os.getpid())] * near
    ward.hears_others = False
    assert max(await pauses_of(ward, workers=1_000)) < 1


@pytest.mark.covers("fleet-storm")
@pytest.mark.parametrize("near", [15, 45])
async def test_many_workers_of_a_host_that_hear_no_hints_look_in_turn(near: int) -> None:
    ward = Ward(started_at=None)
    ward.others = [peer_of(os.getpid())] * near
    ward.hears_others = False
    pauses = await pauses_of(ward, workers=near + 1)
    looks = (near + 1) / (sum(pauses) / len(pauses))
    assert 4 < looks < 8, "in a second, all of them together"


@pytest.mark.covers("fleet-dies")
async def test_each_of_very_many_workers_of_a_host_looks_soon_enough_to_be_the_only_one_left() -> None:
    ward = Ward(started_at=None)
    ward.others = [peer_of(os.getpid())] * 1_000
    ward.hears_others = False
    assert max(await pauses_of(ward, workers=1_001)) < 12


GONE = 2**22 + 1
"""No process has this id: it is above what Linux gives out."""


@pytest.mark.covers("cut-off-worker")
async def test_only_a_process_of_the_same_host_is_buried_before_its_lease_ends() -> None:
    ward = Ward(started_at=None)
    ward.others = [peer_of(GONE, same_host=False, lease_left=1), peer_of(os.getpid(), lease_left=1)]
    await janitor_of(ward).round()
    assert ward.buried == []
    ward.others = [peer_of(GONE, lease_left=1)]
    await janitor_of(ward).round()
    assert ward.buried == ["other"]


async def woken_after(janitor: Janitor) -> float:
    """How many seconds pass until the janitor is to look."""
    began = monotonic()
    janitor.wakeup.clear()
    await asyncio.wait_for(janitor.wakeup.wait(None), 10)
    return (monotonic() - began) / SECOND


@pytest.mark.covers("worker-killed")
async def test_the_janitor_looks_when_the_first_lease_ends() -> None:
    janitor = janitor_of(Ward(started_at=None))
    janitor.expect_end_of_lease(SECOND // 5)
    assert await woken_after(janitor) > 0.2
    janitor.expect_end_of_lease(-SECOND)
    await woken_after(janitor)


async def test_a_lease_that_was_renewed_is_not_looked_at_when_it_would_have_ended() -> None:
    janitor = janitor_of(Ward(started_at=None))
    janitor.expect_end_of_lease(0)
    janitor.expect_end_of_lease(SECOND // 2)
    assert await woken_after(janitor) > 0.5


@pytest.mark.covers("worker-killed")
async def test_a_look_that_finds_a_lease_over_sweeps_and_waits_for_the_next_that_ends() -> None:
    ward = Ward(started_at=None)
    janitor = janitor_of(ward)
    await janitor.round()
    ward.others = [peer_of(1, same_host=False, lease_left=1), peer_of(1, same_host=False, lease_left=-1)]
    await janitor.round()
    assert ward.sweeps == 2
    await woken_after(janitor)


async def test_a_look_that_finds_no_lease_over_sweeps_nothing_and_leaves_the_rest_to_heartbeats() -> None:
    ward = Ward(started_at=None)
    janitor = janitor_of(ward)
    await janitor.round()
    ward.others = [peer_of(1, same_host=False, lease_left=1)]
    await janitor.round()
    assert ward.sweeps == 1
    assert janitor._end_of_lease is None


@pytest.mark.covers("fleet-storm")
@pytest.mark.parametrize(("workers", "latest"), [(8, 0.2), (108, 1.2), (10_000, 2.2)])
async def test_the_workers_of_a_fleet_look_at_a_lease_that_ends_in_turn(workers: int, latest: float) -> None:
    janitors = [janitor_of(Ward(started_at=None), workers=workers) for _ in range(100)]
    loop = asyncio.get_running_loop()
    now = loop.time()
    for janitor in janitors:
        janitor.expect_end_of_lease(0)
    ends = [janitor._end_of_lease.when() - now for janitor in janitors if janitor._end_of_lease is not None]
    assert len(ends) == 100
    assert min(ends) >= 0.1
    assert latest / 2 < max(ends) + 0.05
    assert max(ends) < latest
    for janitor in janitors:
        await janitor.stop()


def until_sweep(janitor: Janitor) -> float:
    return (janitor._next_sweep - monotonic()) / SECOND


async def sweep_pauses_of(workers: int) -> list[float]:
    """How long some workers of a fleet wait after a sweep until their next."""
    janitors = [janitor_of(Ward(started_at=None), workers=workers) for _ in range(20)]
    for janitor in janitors:
        await janitor.round()
    return [until_sweep(janitor) for janitor in janitors]


async def test_the_sweeps_of_a_fleet_do_not_become_more_with_its_workers() -> None:
    pauses = await sweep_pauses_of(30)
    sweeps = 30 / (sum(pauses) / len(pauses))
    assert 0.5 < sweeps < 2, "in a second, of leases of 30 seconds"


@pytest.mark.covers("fleet-dies")
async def test_each_worker_of_a_large_fleet_sweeps_about_once_in_a_lease() -> None:
    assert max(await sweep_pauses_of(10_000)) < 37, "of leases of 30 seconds"


@pytest.mark.covers("fleet-dies")
async def test_who_is_told_that_most_of_a_fleet_is_gone_looks_and_sweeps_at_once() -> None:
    ward, crowd = Ward(started_at=None), crowd_of(500)
    janitor = janitor_of(ward, crowd=crowd)
    await janitor.round()
    janitor.wakeup.clear()
    crowd.workers = 2
    janitor.count_again()
    await asyncio.wait_for(janitor.wakeup.wait(None), 10)
    await janitor.round()
    assert ward.sweeps == 2
    assert until_sweep(janitor) < 13


@pytest.mark.parametrize(("before", "after"), [(8, 2), (500, 400), (2, 500)])
async def test_a_count_that_changes_little_is_no_reason_to_sweep(before: int, after: int) -> None:
    ward, crowd = Ward(started_at=None), crowd_of(before)
    janitor = janitor_of(ward, crowd=crowd)
    await janitor.round()
    crowd.workers = after
    janitor.count_again()
    await janitor.round()
    assert ward.sweeps == 1


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors of processes are a part of Linux")
async def test_of_many_neighbours_that_hear_of_a_death_not_all_look_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = iter([0.0, *[3600.0] * 19])
    monkeypatch.setattr(FleetPacing, "wait", lambda _crowd, **_: next(drawn))
    process = await asyncio.create_subprocess_exec("sleep", "60")
    ward = Ward(started_at=None)
    ward.others = [peer_of(process.pid)]
    janitors = [janitor_of(ward, workers=10_000) for _ in range(20)]
    for janitor in janitors:
        await janitor.round()
        janitor.wakeup.clear()
    process.kill()
    looks = [asyncio.create_task(janitor.wakeup.wait(None)) for janitor in janitors]
    done, waiting = await asyncio.wait(looks, timeout=20, return_when=asyncio.FIRST_COMPLETED)
    assert (len(done), len(waiting)) == (1, 19)
    assert next(drawn, None) is None, "all of them have heard of it"
    for look in waiting:
        look.cancel()
    await process.wait()


async def test_while_heartbeats_look_it_sweeps_when_there_is_something_to_rescue() -> None:
    ward = Ward(started_at=None)
    janitor = janitor_of(ward, lease=SECOND, watched=True)
    pause = await janitor.round()
    assert pause is not None
    assert pause > 50, "it would sweep by itself"
    assert ward.sweeps == 1
    janitor.sweep_soon()
    await asyncio.wait_for(janitor.wakeup.wait(None), 10)
    await janitor.round()
    assert ward.sweeps == 2


@pytest.mark.parametrize("told_before", [False, True])
async def test_only_the_worker_that_marks_another_as_dead_logs_its_death(
    caplog: pytest.LogCaptureFixture, *, told_before: bool
) -> None:
    ward = Ward(started_at=None)
    ward.others = [peer_of(GONE)]
    ward.known_dead = {"other"} if told_before else set()
    await janitor_of(ward).round()
    assert ward.buried == ["other"]
    line = "found 1 dead worker, whose process is gone: other"
    assert caplog.messages == ([] if told_before else [line])


async def test_a_lease_that_is_over_is_logged_by_the_worker_that_finds_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ward = Ward(started_at=None)
    ward.over = [f"w{number}" for number in range(12)]
    await janitor_of(ward).round()
    named = ", ".join(f"w{number}" for number in range(10))
    assert caplog.messages == [f"found 12 dead workers, whose lease is over: {named} and 2 more"]


def parts(count: int) -> list[StatisticsRow]:
    return [StatisticsRow(f"part|{n:03}", "part", PART, "w", n, "[]") for n in range(count)]


async def test_statistics_are_merged_a_few_parts_at_a_time_once_there_are_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ward = Ward(started_at=None)
    janitor = janitor_of(ward)
    await janitor.round()
    assert ward.folds == 0
    ward.parts = parts(55)
    janitor.fold_soon()
    await janitor.round()
    assert ward.folds == 0, "it would merge what is about to grow"
    now = monotonic()
    monkeypatch.setattr("duetime.runtime.upkeep.janitor.monotonic", lambda: now + 30 * SECOND)
    pause = await janitor.round()
    assert (ward.folds, len(ward.parts)) == (5, 5)
    assert pause is not None
    assert pause <= 1, "others get a turn, and soon it goes on"
    monkeypatch.setattr("duetime.runtime.upkeep.janitor.monotonic", lambda: now + 32 * SECOND)
    await janitor.round()
    assert ward.parts == []


async def test_what_workers_have_left_that_are_gone_is_merged_when_old_records_are_removed() -> None:
    ward = Ward(started_at=None)
    ward.parts = parts(3)
    janitor = janitor_of(ward)
    janitor._next_prune = 0
    await janitor.round()
    assert (ward.parts, ward.statistics_pruned) == ([], 1)
