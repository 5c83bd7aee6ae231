"""A storm: load on four workers of one store, everything that can break broken again and again, and a verdict."""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from duetime.errors import StoreUnavailable
from duetime.model.job import JobId
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import SECOND, Instant
from duetime.scheduler.task import Call
from tests.integration import ledger
from tests.integration.kit import Fleet, available, read_all
from tests.integration.nursery import Nursery, opened
from tests.integration.storm.faults import Ground, Site, ground, kill_server
from tests.integration.storm.judge import AT_MOST_ONCE, Facts, History, violations
from tests.integration.tasks import App

SITES = 4
CALLERS = 3
LEASE = 5.0
CALM = 60.0
"""Seconds without any progress after which what is left will not end: leases are over, black holes are noticed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a storm did, and what it broke."""

    store: str
    seconds: float
    seed: int
    jobs: int
    occurrences: int
    repeated: int
    """Runs beyond the first of a job."""
    failed_calls: int
    """Calls of `enqueue` that raised, and were made again."""
    slowest_call: float
    """Seconds."""
    succeeded: int
    not_repeated: int
    """Jobs whose worker died and whose task may not be repeated."""
    given_up: int
    """Jobs that were taken for the cause of too many deaths."""
    faults: Mapping[str, int]
    violations: list[str]


def storm_over(store: str, *, seconds: float, seed: int) -> Report:
    """Let a storm go over one store, as the only thing that this process does."""
    with opened() as nursery, tempfile.TemporaryDirectory(prefix="duetime-storm-") as folder:
        return asyncio.run(rage(store, Path(folder), nursery, seconds=seconds, seed=seed))


async def rage(store: str, folder: Path, nursery: Nursery, *, seconds: float, seed: int) -> Report:
    """Let a storm go over one store for some seconds, and judge what it has left."""
    with ground(store, folder) as place, _logging_into(folder), ExitStack() as stack:
        fleet = Fleet(place.url, folder, nursery)
        stack.callback(fleet.close)
        storm = _Storm(store, fleet, seed=seed)
        return await storm.run(place, seconds=seconds, lease=LEASE)


@contextmanager
def _logging_into(folder: Path) -> Iterator[None]:
    """Let our own entries go where those of the workers go."""
    before = os.environ.get(ledger.VARIABLE)
    os.environ[ledger.VARIABLE] = str(folder / "ledger")
    try:
        yield
    finally:
        if before is None:
            del os.environ[ledger.VARIABLE]
        else:
            os.environ[ledger.VARIABLE] = before


class _Storm:
    def __init__(self, store: str, fleet: Fleet, *, seed: int) -> None:
        self._store = store
        self._fleet = fleet
        self._seed = seed
        self._app = fleet.app()
        self._faults: Counter[str] = Counter()
        self._accepted: list[JobId] = []
        self._failed_calls = 0
        self._slowest_call = 0.0

    async def run(self, place: Ground, *, seconds: float, lease: float) -> Report:
        async with self._app.scheduler:
            sites = [
                Site(self._fleet, number=n, lease=lease, seed=self._seed, counts=self._faults)
                for n in range(SITES)
            ]
            try:
                await self._fleet.entry("ready")
                first = await self._next_second()
                await self._suffer(place, sites, seconds)
                last = await self._next_second()
                facts = await self._settled(first, last)
            finally:
                for site in sites:
                    site.close()
        return self._report(facts, seconds)

    async def _suffer(self, place: Ground, sites: list[Site], seconds: float) -> None:
        ends = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for number in range(CALLERS):
                group.create_task(self._call(number, ends))
            for site in sites:
                group.create_task(site.suffer(ends))
            group.create_task(kill_server(place, ends, seed=self._seed, counts=self._faults))
            await asyncio.sleep(seconds)
            ends.set()

    async def _call(self, number: int, ends: asyncio.Event) -> None:
        """Enqueue about ten jobs a second."""
        chance = random.Random(f"{self._seed}/caller/{number}")
        while not ends.is_set():
            await self._accept(_request(self._app, chance))
            await asyncio.sleep(chance.uniform(0, 0.2))

    async def _accept(self, request: Call[Any]) -> None:
        """Make a call until it is accepted; its id makes that harmless."""
        while True:
            began = time.monotonic()
            try:
                self._accepted.append((await self._app.scheduler.enqueue(request)).id)
            except StoreUnavailable:
                self._failed_calls += 1
                await asyncio.sleep(0.05)
            else:
                return
            finally:
                self._slowest_call = max(self._slowest_call, time.monotonic() - began)

    async def _next_second(self) -> Instant:
        now = await available(self._app.scheduler.store.now)
        return (now // SECOND + 2) * SECOND

    async def _settled(self, first: Instant, last: Instant) -> Facts:
        """Wait until every job has ended and every occurrence has its record, or until there is no more progress.

        Jobs around which several workers have died run one at a time, so after a long storm this takes some minutes.
        """
        store = self._app.scheduler.store
        ended, deadline = -1, 0.0
        while True:
            records = await available(lambda: read_all(store, self._accepted))
            schedules = {f"tick{n}": await self._occurrences(f"tick{n}", first, last) for n in range(3)}
            found = [*records.values(), *(record for some in schedules.values() for record in some)]
            before, ended = ended, sum(record.state.terminal for record in found)
            if ended > before:
                deadline = time.monotonic() + CALM
            fired = all(some and (some[-1].occurrence or 0) >= last for some in schedules.values())
            # What has not ended by then is found by the judge.
            if (fired and ended == len(found)) or time.monotonic() > deadline:
                return Facts(
                    entries=self._fleet.ledger.entries(),
                    accepted=self._accepted,
                    records=records,
                    schedules=schedules,
                    first=first,
                    last=last,
                )
            await asyncio.sleep(0.1)

    async def _occurrences(self, name: str, first: Instant, last: Instant) -> list[StoredJob]:
        store = self._app.scheduler.store
        return await available(lambda: store.occurrences(name, since=first, until=last, limit=10_000))

    def _report(self, facts: Facts, seconds: float) -> Report:
        runs = History(facts.entries).runs
        ends = Counter((record.task == AT_MOST_ONCE, record.state) for record in facts.records.values())
        return Report(
            store=self._store,
            seconds=seconds,
            seed=self._seed,
            jobs=len(facts.accepted),
            occurrences=len(facts.schedules) * ((facts.last - facts.first) // SECOND + 1),
            repeated=sum(len(some) - 1 for some in runs.values()),
            failed_calls=self._failed_calls,
            slowest_call=self._slowest_call,
            succeeded=ends[True, State.SUCCEEDED] + ends[False, State.SUCCEEDED],
            not_repeated=ends[True, State.FAILED] + ends[True, State.CANCELLED],
            given_up=ends[False, State.FAILED],
            faults=self._faults,
            violations=violations(facts),
        )


def _request(app: App, chance: random.Random) -> Call[Any]:
    # One in twenty outlasts most outages.
    length = chance.uniform(0, 0.5) if chance.random() < 0.95 else chance.uniform(1, 8)
    delay = chance.choice([0, chance.uniform(0, 1.5)])
    match chance.choice(["note", "work", "work_once"]):
        case "note":
            return app.note.options(delay=delay).call()
        case "work":
            return app.work.options(delay=delay).call(length)
        case _:
            return app.work_once.options(delay=delay).call(length)
