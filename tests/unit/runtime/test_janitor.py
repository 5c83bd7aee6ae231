from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Any, cast

import pytest

from duetime.model.instants import SECOND, Instant, Micros
from duetime.model.job import Claim
from duetime.model.outcome import Crashed, Outcome
from duetime.model.retention import Retention
from duetime.runtime.crowd import Crowd
from duetime.runtime.dispatcher import Dispatcher
from duetime.runtime.identity import Identity
from duetime.runtime.janitor import Janitor
from duetime.runtime.liveness import process_started
from duetime.runtime.timekeeper import monotonic
from duetime.stores.base import Orphan, Peer, Pruned, Store
from tests.unit.runtime.kit import NoHealth, StillTime, claim


class Ward:
    """A store with orphans under this worker, and a dispatcher that notes what is settled."""

    def __init__(self, *claims: Claim, started_at: Instant | None) -> None:
        self.claims = claims
        self.started_at = started_at
        self.settled: list[tuple[str, Outcome]] = []
        self.pruned: list[tuple[Retention, str]] = []
        self.prunes: list[tuple[int, str | None]] = []
        self.others: list[Peer] = []
        self.hears_others = True
        self.buried: list[str] = []
        self.sweeps = 0

    async def peers(self, worker: str, host_key: str | None) -> list[Peer]:
        return [peer for peer in self.others if peer.id not in self.buried]

    async def bury(self, workers: Sequence[str]) -> None:
        self.buried += workers

    async def rescue(self, worker: str, claim_id: str) -> list[Orphan]:
        self.sweeps += 1
        return []

    async def prune(self, retention: Retention, *, after: str = "", dry_run: bool = False) -> Pruned:
        assert not dry_run
        self.pruned.append((retention, after))
        return Pruned(*self.prunes.pop(0)) if self.prunes else Pruned(0, None)

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


def crowd_of(workers: int) -> Crowd:
    crowd = Crowd()
    crowd.workers = workers
    return crowd


def janitor_of(
    ward: Ward,
    *,
    lease: Micros = 30_000_000,
    retention: Micros | None = None,
    workers: int = 1,
    crowd: Crowd | None = None,
    watched: bool = False,
) -> Janitor:
    if crowd is None:
        crowd = crowd_of(workers)
    return Janitor(
        store=cast("Store", ward),
        identity=Identity(queues=("default",), slots=1),
        dispatcher=cast("Dispatcher", ward),
        time=StillTime(),
        health=NoHealth(),
        crowd=crowd,
        lease=lease,
        retention=retention,
        keep_per_schedule=3,
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
    assert "removed the records of 12 old job(s)" in caplog.messages
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


def peer_of(pid: int, *, same_host: bool = True, has_session: bool = False) -> Peer:
    started = process_started(pid)
    return Peer("other", pid, started, same_host, session_lost=False, has_session=has_session)


@pytest.mark.parametrize(
    ("peer", "hears_others", "waits_for_sweep"),
    [
        (None, True, True),
        (peer_of(os.getpid()), True, True),
        (peer_of(os.getpid(), has_session=True), True, False),
        (peer_of(os.getpid(), same_host=False, has_session=True), True, False),
        (None, False, False),
    ],
)
async def test_the_store_is_asked_often_only_while_a_death_would_not_be_heard_of(
    peer: Peer | None, hears_others: bool, waits_for_sweep: bool
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
    monkeypatch.setattr("duetime.runtime.janitor._LOOK", 0.001)
    janitor = janitor_of(Ward(started_at=None))
    janitor.look_soon()
    await asyncio.wait_for(janitor.wakeup.wait(None), 10)


AFAR = Peer("afar", 1, None, same_host=False, session_lost=False, has_session=True)


async def pauses_of(ward: Ward, workers: int) -> list[float]:
    """How long some workers of a fleet sleep after a look."""
    janitors = [janitor_of(ward, workers=workers) for _ in range(20)]
    return [pause for janitor in janitors if (pause := await janitor.round()) is not None]


@pytest.mark.parametrize("workers", [2, 4])
async def test_a_few_workers_look_for_lost_sessions_as_often_as_one_would(workers: int) -> None:
    ward = Ward(started_at=None)
    ward.others = [AFAR]
    assert max(await pauses_of(ward, workers)) < 1


@pytest.mark.covers("fleet-storm")
@pytest.mark.parametrize("workers", [16, 64])
async def test_the_workers_of_a_fleet_look_for_lost_sessions_in_turn(workers: int) -> None:
    ward = Ward(started_at=None)
    ward.others = [AFAR]
    pauses = await pauses_of(ward, workers)
    looks = workers / (sum(pauses) / len(pauses))
    assert 4 < looks < 8, "in a second, all of them together"


@pytest.mark.covers("fleet-dies")
async def test_each_worker_of_a_large_fleet_looks_soon_enough_to_be_the_only_one_left() -> None:
    ward = Ward(started_at=None)
    ward.others = [AFAR]
    assert max(await pauses_of(ward, workers=10_000)) < 12


async def test_who_has_seen_a_lost_session_looks_again_soon_and_buries_its_worker() -> None:
    ward = Ward(started_at=None)
    ward.others = [AFAR._replace(session_lost=True)]
    janitor = janitor_of(ward, workers=1_000)
    pause = await janitor.round()
    assert pause is not None
    assert pause < 1
    assert not ward.buried
    await janitor.round()
    assert ward.buried == ["afar"]


async def test_without_sessions_only_the_workers_of_a_host_take_turns() -> None:
    ward = Ward(started_at=None)
    ward.others = [peer_of(os.getpid())]
    ward.hears_others = False
    assert max(await pauses_of(ward, workers=1_000)) < 1


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
    monkeypatch.setattr(Crowd, "wait", lambda _crowd, **_: next(drawn))
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
