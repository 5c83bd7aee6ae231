"""Everything moves from any store to any other, once, whatever interrupts it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from duetime import failpoints
from duetime.errors import CopyRefused
from duetime.model.states import State
from duetime.model.stored.copy import RecordKind
from duetime.model.time import SECOND
from duetime.scheduler.transfer.store_copy import COPY_TARGET, NamedStore, rehearse_copy
from duetime.stores.open import open_store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import hire, put
from tests.integration.copying.kit import (
    BATCH,
    JOBS,
    SCHEDULES,
    Story,
    copied,
    failing,
    fill,
    opened,
    records,
    run,
    silent,
    without_marks,
)
from tests.integration.kit import Fleet


@pytest.mark.timeout(60 if JOBS <= BATCH * 2 else 3_600)
@pytest.mark.covers("copy-keeps-everything", "copy-interrupted")
async def test_a_copy_has_everything_also_if_it_was_interrupted(urls: tuple[str, str], story: Story) -> None:
    async with opened(urls[0]) as source, opened(urls[1], namespace="elsewhere") as target:
        await fill(source.store, story.records)
        with failing("after:exchange:raise:6"):
            await run(source, target)
        assert 0 < sum((await target.store.counts()).values()) < JOBS, "it was half way"
        done = await run(source, target)
        assert done.resumed
        assert 0 < done.written < sum(map(len, story.records.values()))
        assert await records(source.store) == story.records, "the source is as it was"
        assert without_marks(await records(target.store)) == story.records
        assert done.tallies[RecordKind.JOBS].count == JOBS
        assert done.tallies[RecordKind.SCHEDULES].count == SCHEDULES


@pytest.mark.timeout(60 if JOBS <= BATCH * 2 else 3_600)
@pytest.mark.covers("copy-interrupted")
async def test_a_copy_that_was_killed_goes_on(store_url: str, story: Story) -> None:
    killed = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "duetime.cli", "copy", story.url, store_url],
        env=os.environ | {failpoints.VARIABLE: "after:exchange:kill:6"},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    async with opened(story.url) as source, opened(store_url) as target:
        assert await target.store.counts() != {}, "it was half way"
        done = await run(source, target)
        await source.store.set_moved(None)  # For the next test.
        assert done.resumed
        assert await copied(source.store, target.store)


@pytest.mark.covers("copy-of-a-live-store")
async def test_workers_of_the_source_are_drained_first_or_nothing_is_copied(
    fleet: Fleet, tmp_path: Path
) -> None:
    app, gate = fleet.app(), fleet.gate()
    async with opened(f"sqlite:///{tmp_path / 'copy.db'}") as target, app.scheduler as scheduler:
        source = NamedStore(scheduler.store, fleet.url)
        await fleet.start()
        job = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=job.id)
        for drain in (None, 1):
            with pytest.raises(CopyRefused, match=r"workers run on .*; stop them"):
                await run(source, target, drain=drain)
        with pytest.raises(CopyRefused, match="workers run on"):
            await rehearse_copy(source, target, drain=False, progress=silent)
        assert await records(target.store) == {kind: [] for kind in RecordKind}, "nothing was written"
        gate.open()
        await run(source, target, drain=20 * SECOND)
        (stored,) = await target.store.get([job.id])
        assert stored.state is State.SUCCEEDED


async def test_workers_of_the_target_are_refused(two: tuple[NamedStore, NamedStore]) -> None:
    source, target = two
    await hire(target.store, "early")
    with pytest.raises(CopyRefused, match=r"workers run on .*there.db: early \(host, process 1\)"):
        await run(source, target)


async def test_a_worker_that_was_killed_is_none_that_runs_on_a_target_whose_clock_is_behind(
    tmp_path: Path,
) -> None:
    ahead, behind = FakeClock(), FakeClock()
    source = NamedStore(open_store(f"sqlite:///{tmp_path / 'here.db'}", clock=ahead), "here")
    target = NamedStore(open_store(f"sqlite:///{tmp_path / 'there.db'}", clock=behind), "there")
    await source.store.open()
    await target.store.open()
    try:
        await hire(source.store, "killed")
        ahead.advance("1m")
        await run(source, target)
        assert [worker.state for worker in await target.store.workers()] == ["alive"]
    finally:
        await source.store.close()
        await target.store.close()


async def test_a_copy_that_has_ended_is_not_made_again_and_tells_what_it_was(
    two: tuple[NamedStore, NamedStore],
) -> None:
    source, target = two
    await put(source.store)
    await run(source, target)
    (mark,) = await target.store.entries(COPY_TARGET, limit=9)
    assert (mark.who, mark.verb, mark.detail["from"]) == ("me", "copy ended", source.name)
    assert mark.detail["jobs"]["records"] == 1
    with pytest.raises(CopyRefused, match="copied from there in full"):
        await run(source, target)


async def test_a_copy_of_a_copy_keeps_the_history_of_the_first(
    two: tuple[NamedStore, NamedStore], tmp_path: Path
) -> None:
    first, second = two
    await put(first.store)
    await run(first, second)
    async with opened(f"sqlite:///{tmp_path / 'third.db'}") as third:
        await run(second, third)
        assert len(await third.store.entries(COPY_TARGET, limit=9)) == 2


async def test_the_same_store_twice_and_a_store_in_use_are_refused(
    two: tuple[NamedStore, NamedStore],
) -> None:
    source, target = two
    async with opened(source.name) as again:
        with pytest.raises(CopyRefused, match="are the same store"):
            await run(source, again)
    await put(target.store)
    with pytest.raises(CopyRefused, match=r"is not empty, it has jobs; copy to an empty"):
        await run(source, target)


async def test_a_rehearsal_counts_and_writes_nothing(two: tuple[NamedStore, NamedStore]) -> None:
    source, target = two
    await put(source.store)
    found = await rehearse_copy(source, target, drain=False, progress=silent)
    assert [tally.count for tally in found.tallies.values()] == [0, 0, 0, 1, 0, 0, 0]
    assert await records(target.store) == {kind: [] for kind in RecordKind}
