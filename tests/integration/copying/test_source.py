"""A source that was copied stays as it is: the work goes on elsewhere."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from duetime import Scheduler, cron, every
from duetime.errors import CopyRefused, StoreMoved
from duetime.model.stored.copy import RecordKind
from duetime.scheduler.transfer.store_copy import NamedStore, copy_store, rehearse_copy
from duetime.testing.conformance.kit import hire, put
from tests.integration.copying.kit import (
    at,
    copied,
    failing,
    opened,
    run,
    silent,
)


@pytest.mark.covers("copy-source-runs-on")
async def test_a_source_that_was_copied_lets_no_worker_and_no_job_in_until_it_is_opened_again(
    store_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler, ran = Scheduler(store_url), asyncio.Event()

    @scheduler.schedule(every("1h"))
    @scheduler.task(name="waits")
    async def waits() -> None:
        ran.set()

    past = datetime.now(UTC) - timedelta(days=1)
    async with scheduler:
        await waits.enqueue()
        await scheduler.schedules.put("old", cron("*/15 * * * *"), waits)
        async with opened(f"sqlite:///{tmp_path / 'copy.db'}") as target:
            await run(NamedStore(scheduler.store, "here"), target)
    with pytest.raises(
        StoreMoved, match=rf"here was copied to {target.name} at .* by me, .*`duetime reopen`"
    ):
        async with scheduler.worker():
            pass
    async with scheduler:
        assert [record.levelname for record in caplog.records if "was copied to" in record.message] == (
            ["WARNING"] * 2
        ), "each time it is opened"
        for request in (
            waits.enqueue(),
            scheduler.enqueue_many([waits.call()]),
            scheduler.schedules.put("lost", every("1h"), waits),
            scheduler.schedules.backfill("old", past, past + timedelta(hours=1)),
        ):
            with pytest.raises(StoreMoved):
                await request
        with pytest.raises(StoreMoved):
            await asyncio.to_thread(waits.sync.enqueue)
        assert sum((await scheduler.store.counts()).values()) == 1
        assert await scheduler.store.workers() == []
        assert [each.name for each in await scheduler.store.schedules()] == ["old"], (
            "nor is anything declared"
        )
        await scheduler.store.set_moved(None)
    async with scheduler.worker(), asyncio.timeout(20):
        await ran.wait()


@pytest.mark.covers("copy-source-runs-on")
async def test_a_source_that_was_copied_is_not_copied_again_nor_used_as_a_target(
    two: tuple[NamedStore, NamedStore], tmp_path: Path
) -> None:
    source, target = two
    await run(source, target)
    async with opened(f"sqlite:///{tmp_path / 'third.db'}") as third:
        for pair in ((source, third), (third, source)):
            with pytest.raises(CopyRefused, match=r"here.db was copied to .*there.db at .*`duetime reopen`"):
                await run(*pair)
        for other in (third, None):
            with pytest.raises(CopyRefused, match="was copied to"):
                await rehearse_copy(source, other, drain=False, progress=silent)
        await source.store.set_moved(None)
        await run(source, third)


@pytest.mark.covers("copy-source-runs-on")
async def test_a_source_that_is_in_use_at_the_end_is_left_open(two: tuple[NamedStore, NamedStore]) -> None:
    source, target = two

    async def come() -> None:
        async with opened(source.name) as same:
            await hire(same.store, "late")

    with pytest.raises(CopyRefused, match=r"workers run on .*here.db: late"):
        await copy_store(source, target, drain=None, who="me", progress=at(RecordKind.AUDIT, 2, come))
    assert (await source.store.schema_status()).moved is None


@pytest.mark.covers("copy-interrupted", "copy-source-runs-on")
async def test_a_copy_that_was_interrupted_behind_the_note_in_its_source_goes_on(
    two: tuple[NamedStore, NamedStore],
) -> None:
    source, target = two
    await put(source.store)
    with failing("after:set_moved:raise:1"):
        await run(source, target)
    assert (await source.store.schema_status()).moved is not None
    done = await run(source, target)
    assert done.resumed
    assert await copied(source.store, target.store)
