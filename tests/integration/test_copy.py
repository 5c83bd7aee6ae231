"""Everything moves from any store to any other, once, whatever interrupts it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import pytest_asyncio

from duetime import Scheduler, cron, every, failpoints
from duetime.errors import CopyDiffers, CopyRefused, StoreMoved, StoreUnavailable
from duetime.failpoints import InjectedFault
from duetime.model.copying import MARKS
from duetime.model.instants import SECOND
from duetime.model.job import Key
from duetime.model.states import State
from duetime.model.whole import LAST_KEY, Kind, Whole
from duetime.scheduler.copying import Copied, Place, Progress, copy, rehearse
from duetime.stores.base import Store
from duetime.stores.open import open_store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import hire, job, put
from duetime.testing.conformance.story import tell
from tests.integration.kit import Fleet
from tests.support.stores import chosen

JOBS: Final = int(os.environ.get("COPY_JOBS", "2000"))
SCHEDULES: Final = int(os.environ.get("COPY_SCHEDULES", "100"))
BATCH: Final = 1_000
ALL: Final = 2**31 - 1

Records = Mapping[Kind, list[Whole]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "pair" in metafunc.fixturenames:
        kinds = chosen(metafunc.config)
        pairs = [(source, target) for source in kinds for target in kinds]
        metafunc.parametrize("pair", pairs, ids=[f"{source}-to-{target}" for source, target in pairs])


@asynccontextmanager
async def opened(url: str, *, namespace: str = "duetime") -> AsyncGenerator[Place]:
    store = open_store(url, namespace=namespace)
    await store.open()
    try:
        yield Place(store, url)
    finally:
        await store.close()


async def records(store: Store) -> Records:
    return {kind: await store.stretch(kind, after="", until=LAST_KEY, limit=ALL) for kind in Kind}


async def fill(store: Store, story: Records) -> None:
    for kind, whole in story.items():
        for first in range(0, len(whole), BATCH):
            await store.exchange(kind, [], whole[first : first + BATCH])


async def run(source: Place, target: Place, *, drain: int | None = None) -> Copied:
    return await copy(source, target, drain=drain, who="me", progress=silent)


@contextmanager
def failing(setting: str) -> Generator[None]:
    """Expect that something fails because it is told to."""
    failpoints.arm(setting)
    try:
        with pytest.raises((InjectedFault, StoreUnavailable), match="told to fail"):
            yield
    finally:
        failpoints.arm(None)


def silent(_kind: Kind, _count: int) -> None:
    """Nobody looks."""


def before(key: str) -> str:
    """A key behind which this one is the next."""
    return f"{key[:-1]}{chr(ord(key[-1]) - 1)}{LAST_KEY}"


def without_marks(found: Records) -> Records:
    """The records of a target, but for what tells of the copy."""
    return {kind: [record for record in some if MARKS not in record.row] for kind, some in found.items()}


async def copied(source: Store, target: Store) -> bool:
    """Whether two stores have the same records."""
    return await records(source) == without_marks(await records(target))


class Story(NamedTuple):
    """What a store has after days of work, and where."""

    url: str
    records: Records


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Told once for all tests, which only read it."""
    clock = FakeClock()
    url = f"sqlite:///{tmp_path_factory.mktemp('story') / 'story.db'}"
    store = open_store(url, clock=clock)
    await store.open()
    try:
        await tell(store, clock, jobs=JOBS, schedules=SCHEDULES)
        return Story(url, await records(store))
    finally:
        await store.close()


@pytest.fixture
def urls(pair: tuple[str, str], request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """The addresses of two empty stores."""
    source, target = (request.getfixturevalue(f"{kind}_url") for kind in pair)
    return source, f"sqlite:///{tmp_path / 'copy.db'}" if pair == ("sqlite", "sqlite") else target


@pytest_asyncio.fixture
async def two(tmp_path: Path) -> AsyncGenerator[tuple[Place, Place]]:
    """Two empty stores, where it is of no importance of which kind."""
    here, there = (f"sqlite:///{tmp_path / name}" for name in ("here.db", "there.db"))
    async with opened(here) as source, opened(there) as target:
        yield source, target


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
        assert done.tallies[Kind.JOBS].count == JOBS
        assert done.tallies[Kind.SCHEDULES].count == SCHEDULES


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
        source = Place(scheduler.store, fleet.url)
        await fleet.start()
        job = await app.wait_for.enqueue(gate.path)
        await fleet.entry("start", job=job.id)
        for drain in (None, 1):
            with pytest.raises(CopyRefused, match=r"workers run on .*; stop them"):
                await run(source, target, drain=drain)
        with pytest.raises(CopyRefused, match="workers run on"):
            await rehearse(source, target, drain=False, progress=silent)
        assert await records(target.store) == {kind: [] for kind in Kind}, "nothing was written"
        gate.open()
        await run(source, target, drain=20 * SECOND)
        (stored,) = await target.store.get([job.id])
        assert stored.state is State.SUCCEEDED


async def test_workers_of_the_target_are_refused(two: tuple[Place, Place]) -> None:
    source, target = two
    await hire(target.store, "early")
    with pytest.raises(CopyRefused, match=r"workers run on .*there.db: early \(host, process 1\)"):
        await run(source, target)


@pytest.mark.covers("copy-of-a-live-store")
async def test_what_is_written_meanwhile_is_noticed_and_comes_with_the_next_run(
    two: tuple[Place, Place],
) -> None:
    source, target = two
    waits, goes = await put(source.store), await put(source.store)

    def write(kind: Kind, _count: int) -> None:
        if kind is Kind.AUDIT:
            source.store.enqueue_blocking([job()])

    with pytest.raises(CopyDiffers, match=r"jobs differ: the source has 3 .* the copy has 2 .* again"):
        await copy(source, target, drain=None, who="me", progress=write)
    await source.store.cancel([goes], reason="changed its mind")
    await source.store.exchange(Kind.JOBS, [waits], [])
    done = await run(source, target)
    assert done.resumed
    assert done.written == 2
    assert await copied(source.store, target.store)
    assert await target.store.get([waits]) == []


@pytest.mark.covers("copy-of-a-live-store")
async def test_a_key_that_has_gone_to_an_older_job_since_comes_with_the_run_after_the_next(
    two: tuple[Place, Place],
) -> None:
    source, target = two
    older = await put(source.store)
    for _ in range(30):
        await put(source.store)
    holder = await put(source.store, key=Key(value="one"))

    def fail(kind: Kind, _count: int) -> None:
        if kind is Kind.SCHEDULES:
            raise InjectedFault("told to fail")

    with pytest.raises(InjectedFault):
        await copy(source, target, drain=None, who="me", progress=fail)
    (held,) = await source.store.stretch(Kind.JOBS, after=before(holder), until=holder, limit=1)
    await source.store.exchange(Kind.JOBS, [older, holder], [Whole((older, *held.row[1:]), held.parts)])
    with pytest.raises(CopyDiffers, match=r"written to one of them since the copy was begun: .*again"):
        await run(source, target)
    assert (await run(source, target)).written == 1
    assert await copied(source.store, target.store)


@pytest.mark.covers("copy-of-a-live-store")
async def test_what_is_written_behind_the_comparison_is_noticed(two: tuple[Place, Place]) -> None:
    source, target = two

    async def write() -> None:
        async with opened(source.name) as same:
            await put(same.store)

    with pytest.raises(CopyDiffers, match="jobs have changed since they were compared; something has"):
        await copy(source, target, drain=None, who="me", progress=at(Kind.AUDIT, 2, write))
    assert (await run(source, target)).written == 1


@pytest.mark.covers("copy-interrupted")
async def test_a_target_that_was_used_before_its_copy_had_ended_is_left_alone(
    two: tuple[Place, Place],
) -> None:
    source, target = two
    ran = await put(source.store)

    def fail(kind: Kind, _count: int) -> None:
        if kind is Kind.SCHEDULES:
            raise InjectedFault("told to fail")

    with pytest.raises(InjectedFault):
        await copy(source, target, drain=None, who="me", progress=fail)
    await target.store.cancel([ran], reason="on the target")
    before = (await records(target.store))[Kind.JOBS]
    with pytest.raises(CopyRefused, match=f"has been used since its copy was begun, which jobs {ran} shows"):
        await run(source, target)
    assert (await records(target.store))[Kind.JOBS] == before


def elsewhere(act: Callable[[], Awaitable[object]]) -> None:
    """Let something happen in another event loop, to its end, while this one waits."""

    async def to_its_end() -> None:
        await act()

    thread = threading.Thread(target=lambda: asyncio.run(to_its_end()))
    thread.start()
    thread.join()


def at(wanted: Kind, walk: int, act: Callable[[], Awaitable[object]]) -> Progress:
    """Let something happen behind a kind in the first or in the second walk."""
    walks = Counter[Kind]()

    def progress(kind: Kind, _count: int) -> None:
        walks[kind] += 1
        if kind is wanted and walks[kind] == walk:
            elsewhere(act)

    return progress


@pytest.mark.covers("copy-of-a-live-store")
@pytest.mark.parametrize(("kind", "walk"), [(Kind.QUEUES, 1), (Kind.SCHEDULES, 2)])
async def test_a_worker_that_comes_to_the_target_meanwhile_is_noticed_and_left_alone(
    two: tuple[Place, Place], kind: Kind, walk: int
) -> None:
    source, target = two
    await put(source.store)

    async def come() -> None:
        async with opened(target.name) as same:
            await hire(same.store, "early")

    with pytest.raises(CopyRefused, match=r"workers run on .*there.db: early|which workers early shows"):
        await copy(source, target, drain=None, who="me", progress=at(kind, walk, come))
    (mark,) = await target.store.entries(MARKS, limit=9)
    assert mark.verb == "copy begun"
    assert [worker.id for worker in await target.store.workers()] == ["early"]


@pytest.mark.covers("copy-interrupted")
async def test_of_two_runs_the_first_gives_way(two: tuple[Place, Place]) -> None:
    source, target = two
    await put(source.store)

    async def run_too() -> None:
        async with opened(source.name) as here, opened(target.name) as there:
            await run(here, there)
            await there.store.cancel(
                [record.key for record in (await records(there.store))[Kind.JOBS]], reason="done"
            )

    with pytest.raises(CopyRefused, match=r"gives way|has been used since"):
        await copy(source, target, drain=None, who="me", progress=at(Kind.QUEUES, 1, run_too))
    (stored,) = (await records(target.store))[Kind.JOBS]
    assert "cancelled" in stored.row, "what happened there stays"
    (mark,) = await target.store.entries(MARKS, limit=9)
    assert mark.verb == "copy ended"


@pytest.mark.covers("copy-interrupted")
async def test_a_run_writes_nothing_more_once_another_has_begun(two: tuple[Place, Place]) -> None:
    source, target = two
    await put(source.store)

    def fail(_kind: Kind, _count: int) -> None:
        raise InjectedFault("told to fail")

    async def begin_too() -> None:
        async with opened(source.name) as here, opened(target.name) as there:
            with pytest.raises(InjectedFault):
                await copy(here, there, drain=None, who="you", progress=fail)

    with pytest.raises(CopyRefused, match="begun once more elsewhere, and this run gives way"):
        await copy(source, target, drain=None, who="me", progress=at(Kind.QUEUES, 1, begin_too))
    assert (await records(target.store))[Kind.JOBS] == []


async def test_a_worker_that_was_killed_is_none_that_runs_on_a_target_whose_clock_is_behind(
    tmp_path: Path,
) -> None:
    ahead, behind = FakeClock(), FakeClock()
    source = Place(open_store(f"sqlite:///{tmp_path / 'here.db'}", clock=ahead), "here")
    target = Place(open_store(f"sqlite:///{tmp_path / 'there.db'}", clock=behind), "there")
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
    two: tuple[Place, Place],
) -> None:
    source, target = two
    await put(source.store)
    await run(source, target)
    (mark,) = await target.store.entries(MARKS, limit=9)
    assert (mark.who, mark.verb, mark.detail["from"]) == ("me", "copy ended", source.name)
    assert mark.detail["jobs"]["records"] == 1
    with pytest.raises(CopyRefused, match="copied from there in full"):
        await run(source, target)


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
            await run(Place(scheduler.store, "here"), target)
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
    two: tuple[Place, Place], tmp_path: Path
) -> None:
    source, target = two
    await run(source, target)
    async with opened(f"sqlite:///{tmp_path / 'third.db'}") as third:
        for pair in ((source, third), (third, source)):
            with pytest.raises(CopyRefused, match=r"here.db was copied to .*there.db at .*`duetime reopen`"):
                await run(*pair)
        for other in (third, None):
            with pytest.raises(CopyRefused, match="was copied to"):
                await rehearse(source, other, drain=False, progress=silent)
        await source.store.set_moved(None)
        await run(source, third)


@pytest.mark.covers("copy-source-runs-on")
async def test_a_source_that_is_in_use_at_the_end_is_left_open(two: tuple[Place, Place]) -> None:
    source, target = two

    async def come() -> None:
        async with opened(source.name) as same:
            await hire(same.store, "late")

    with pytest.raises(CopyRefused, match=r"workers run on .*here.db: late"):
        await copy(source, target, drain=None, who="me", progress=at(Kind.AUDIT, 2, come))
    assert (await source.store.schema_status()).moved is None


@pytest.mark.covers("copy-interrupted", "copy-source-runs-on")
async def test_a_copy_that_was_interrupted_behind_the_note_in_its_source_goes_on(
    two: tuple[Place, Place],
) -> None:
    source, target = two
    await put(source.store)
    with failing("after:set_moved:raise:1"):
        await run(source, target)
    assert (await source.store.schema_status()).moved is not None
    done = await run(source, target)
    assert done.resumed
    assert await copied(source.store, target.store)


async def test_a_copy_of_a_copy_keeps_the_history_of_the_first(
    two: tuple[Place, Place], tmp_path: Path
) -> None:
    first, second = two
    await put(first.store)
    await run(first, second)
    async with opened(f"sqlite:///{tmp_path / 'third.db'}") as third:
        await run(second, third)
        assert len(await third.store.entries(MARKS, limit=9)) == 2


async def test_the_same_store_twice_and_a_store_in_use_are_refused(two: tuple[Place, Place]) -> None:
    source, target = two
    async with opened(source.name) as again:
        with pytest.raises(CopyRefused, match="are the same store"):
            await run(source, again)
    await put(target.store)
    with pytest.raises(CopyRefused, match=r"is not empty, it has jobs; copy to an empty"):
        await run(source, target)


async def test_a_rehearsal_counts_and_writes_nothing(two: tuple[Place, Place]) -> None:
    source, target = two
    await put(source.store)
    found = await rehearse(source, target, drain=False, progress=silent)
    assert [tally.count for tally in found.tallies.values()] == [0, 0, 0, 1, 0, 0]
    assert await records(target.store) == {kind: [] for kind in Kind}
