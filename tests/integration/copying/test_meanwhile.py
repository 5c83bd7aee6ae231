"""A copy notices what others do to its stores meanwhile."""

from __future__ import annotations

import pytest

from duetime.errors import CopyDiffers, CopyRefused
from duetime.failpoints import InjectedFault
from duetime.model.job import Key
from duetime.model.stored.copy import RecordKind, WholeRecord
from duetime.scheduler.transfer.store_copy import COPY_TARGET, NamedStore, copy_store
from duetime.testing.conformance.kit import hire, job, put
from tests.integration.copying.kit import (
    at,
    before,
    copied,
    opened,
    records,
    run,
)


@pytest.mark.covers("copy-of-a-live-store")
async def test_what_is_written_meanwhile_is_noticed_and_comes_with_the_next_run(
    two: tuple[NamedStore, NamedStore],
) -> None:
    source, target = two
    waits, goes = await put(source.store), await put(source.store)

    def write(kind: RecordKind, _count: int) -> None:
        if kind is RecordKind.AUDIT:
            source.store.enqueue_blocking([job()])

    with pytest.raises(CopyDiffers, match=r"jobs differ: the source has 3 .* the copy has 2 .* again"):
        await copy_store(source, target, drain=None, who="me", progress=write)
    await source.store.cancel([goes], reason="changed its mind")
    await source.store.exchange(RecordKind.JOBS, [waits], [])
    done = await run(source, target)
    assert done.resumed
    assert done.written == 2
    assert await copied(source.store, target.store)
    assert await target.store.get([waits]) == []


@pytest.mark.covers("copy-of-a-live-store")
async def test_a_key_that_has_gone_to_an_older_job_since_comes_with_the_run_after_the_next(
    two: tuple[NamedStore, NamedStore],
) -> None:
    source, target = two
    older = await put(source.store)
    for _ in range(30):
        await put(source.store)
    holder = await put(source.store, key=Key(value="one"))

    def fail(kind: RecordKind, _count: int) -> None:
        if kind is RecordKind.SCHEDULES:
            raise InjectedFault("told to fail")

    with pytest.raises(InjectedFault):
        await copy_store(source, target, drain=None, who="me", progress=fail)
    (held,) = await source.store.stretch(RecordKind.JOBS, after=before(holder), until=holder, limit=1)
    await source.store.exchange(
        RecordKind.JOBS, [older, holder], [WholeRecord((older, *held.row[1:]), held.parts)]
    )
    with pytest.raises(CopyDiffers, match=r"written to one of them since the copy was begun: .*again"):
        await run(source, target)
    assert (await run(source, target)).written == 1
    assert await copied(source.store, target.store)


@pytest.mark.covers("copy-of-a-live-store")
async def test_what_is_written_behind_the_comparison_is_noticed(two: tuple[NamedStore, NamedStore]) -> None:
    source, target = two

    async def write() -> None:
        async with opened(source.name) as same:
            await put(same.store)

    with pytest.raises(CopyDiffers, match="jobs have changed since they were compared; something has"):
        await copy_store(source, target, drain=None, who="me", progress=at(RecordKind.AUDIT, 2, write))
    assert (await run(source, target)).written == 1


@pytest.mark.covers("copy-interrupted")
async def test_a_target_that_was_used_before_its_copy_had_ended_is_left_alone(
    two: tuple[NamedStore, NamedStore],
) -> None:
    source, target = two
    ran = await put(source.store)

    def fail(kind: RecordKind, _count: int) -> None:
        if kind is RecordKind.SCHEDULES:
            raise InjectedFault("told to fail")

    with pytest.raises(InjectedFault):
        await copy_store(source, target, drain=None, who="me", progress=fail)
    await target.store.cancel([ran], reason="on the target")
    before = (await records(target.store))[RecordKind.JOBS]
    with pytest.raises(CopyRefused, match=f"has been used since its copy was begun, which jobs {ran} shows"):
        await run(source, target)
    assert (await records(target.store))[RecordKind.JOBS] == before


@pytest.mark.covers("copy-of-a-live-store")
@pytest.mark.parametrize(("kind", "walk"), [(RecordKind.QUEUES, 1), (RecordKind.SCHEDULES, 2)])
async def test_a_worker_that_comes_to_the_target_meanwhile_is_noticed_and_left_alone(
    two: tuple[NamedStore, NamedStore], kind: RecordKind, walk: int
) -> None:
    source, target = two
    await put(source.store)

    async def come() -> None:
        async with opened(target.name) as same:
            await hire(same.store, "early")

    with pytest.raises(CopyRefused, match=r"workers run on .*there.db: early|which workers early shows"):
        await copy_store(source, target, drain=None, who="me", progress=at(kind, walk, come))
    (mark,) = await target.store.entries(COPY_TARGET, limit=9)
    assert mark.verb == "copy begun"
    assert [worker.id for worker in await target.store.workers()] == ["early"]


@pytest.mark.covers("copy-interrupted")
async def test_of_two_runs_the_first_gives_way(two: tuple[NamedStore, NamedStore]) -> None:
    source, target = two
    await put(source.store)

    async def run_too() -> None:
        async with opened(source.name) as here, opened(target.name) as there:
            await run(here, there)
            await there.store.cancel(
                [record.key for record in (await records(there.store))[RecordKind.JOBS]], reason="done"
            )

    with pytest.raises(CopyRefused, match=r"gives way|has been used since"):
        await copy_store(source, target, drain=None, who="me", progress=at(RecordKind.QUEUES, 1, run_too))
    (stored,) = (await records(target.store))[RecordKind.JOBS]
    assert "cancelled" in stored.row, "what happened there stays"
    (mark,) = await target.store.entries(COPY_TARGET, limit=9)
    assert mark.verb == "copy ended"


@pytest.mark.covers("copy-interrupted")
async def test_a_run_writes_nothing_more_once_another_has_begun(two: tuple[NamedStore, NamedStore]) -> None:
    source, target = two
    await put(source.store)

    def fail(_kind: RecordKind, _count: int) -> None:
        raise InjectedFault("told to fail")

    async def begin_too() -> None:
        async with opened(source.name) as here, opened(target.name) as there:
            with pytest.raises(InjectedFault):
                await copy_store(here, there, drain=None, who="you", progress=fail)

    with pytest.raises(CopyRefused, match="begun once more elsewhere, and this run gives way"):
        await copy_store(source, target, drain=None, who="me", progress=at(RecordKind.QUEUES, 1, begin_too))
    assert (await records(target.store))[RecordKind.JOBS] == []
