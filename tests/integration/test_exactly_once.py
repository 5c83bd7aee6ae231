"""With a handler's transaction an effect happens exactly once, whenever the worker dies; without it, it does not."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from itertools import cycle, islice
from typing import Any, NamedTuple

import pytest

from duetime import State
from duetime.model.stored.jobs import StoredJob
from tests.integration.effects import run
from tests.integration.exactly_once import CARELESS_STEPS, STEPS, Bank
from tests.integration.kit import read_all
from tests.integration.nursery import ROOT

ROUNDS = 200
ACCOUNTS = 10
OPENING = 1_000


class Aftermath(NamedTuple):
    """What is found when all jobs have ended."""

    kills: int
    balances: dict[int, int]
    transfers: Counter[str]
    """How often each job moved money."""
    jobs: dict[str, StoredJob]


async def carnage(bank: Bank, task: Any, steps: list[str]) -> Aftermath:
    """Enqueue a transfer for each step at which a worker is to die, and see what remains."""
    async with bank.scheduler:
        async with bank.connected() as connection:
            await run(connection, "CREATE TABLE accounts (id integer PRIMARY KEY, balance integer NOT NULL)")
            await run(connection, "CREATE TABLE transfers (job text NOT NULL)")
            for n in range(ACCOUNTS):
                await run(connection, f"INSERT INTO accounts VALUES ({n}, {OPENING})")
        calls = [task.call(n % ACCOUNTS, (n + 1) % ACCOUNTS, n + 1, step) for n, step in enumerate(steps)]
        ids = [job.id for job in await bank.scheduler.enqueue_many(calls)]
    report = await asyncio.to_thread(live_and_die, bank.url)
    assert report["end"] == 0, report
    async with bank.scheduler, bank.connected() as connection:
        balances = dict(await rows(connection, "SELECT id, balance FROM accounts"))
        transfers = Counter(job for (job,) in await rows(connection, "SELECT job FROM transfers"))
        jobs = await read_all(bank.scheduler.store, ids)
    return Aftermath(report["kills"], balances, transfers, jobs)


def live_and_die(url: str) -> Any:
    command = [sys.executable, "-m", "tests.integration.exactly_once", json.dumps({"url": url})]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=240)
    return json.loads(done.stdout)


async def rows(connection: Any, sql: str) -> list[tuple[Any, ...]]:
    if hasattr(connection, "fetch"):
        return [tuple(row) for row in await connection.fetch(sql)]
    return list(await run(connection, sql))


@pytest.mark.timeout(300)
@pytest.mark.covers("effect-and-completion", "worker-killed")
async def test_each_of_two_hundred_transfers_happens_once_though_its_worker_is_killed(sql_url: str) -> None:
    bank = Bank(sql_url)
    steps = list(islice(cycle(STEPS), ROUNDS))

    after = await carnage(bank, bank.transfer, steps)

    check_exact(after, steps)


@pytest.mark.timeout(300)
@pytest.mark.covers("effect-and-completion", "worker-killed")
@pytest.mark.parametrize("kind", ["by_session", "by_async_session"])
async def test_each_transfer_through_a_session_happens_once_though_its_worker_is_killed(
    sql_url: str, kind: str
) -> None:
    bank = Bank(sql_url)
    steps = [*STEPS, *STEPS]

    after = await carnage(bank, getattr(bank, kind), steps)

    check_exact(after, steps)


def check_exact(after: Aftermath, steps: list[str]) -> None:
    """Fail unless each transfer has happened once, with one kill for each."""
    rounds = len(steps)
    assert after.kills == rounds
    assert {job.state for job in after.jobs.values()} == {State.SUCCEEDED}
    assert after.transfers == dict.fromkeys(after.jobs, 1)
    expected = dict.fromkeys(range(ACCOUNTS), OPENING)
    for n in range(rounds):
        expected[n % ACCOUNTS] -= n + 1
        expected[(n + 1) % ACCOUNTS] += n + 1
    assert after.balances == expected
    assert sum(after.balances.values()) == ACCOUNTS * OPENING
    # Killed after the commit, a job is done; killed before, it has run again.
    died = Counter(job.crashes for job in after.jobs.values())
    assert died == {0: steps.count("after:transaction"), 1: rounds - steps.count("after:transaction")}


@pytest.mark.timeout(300)
async def test_without_the_transaction_a_kill_between_effect_and_completion_moves_money_twice(
    sql_url: str,
) -> None:
    bank = Bank(sql_url)
    steps = list(islice(cycle(CARELESS_STEPS), 2 * len(CARELESS_STEPS)))

    after = await carnage(bank, bank.careless, steps)

    assert after.kills == len(steps)
    assert {job.state for job in after.jobs.values()} == {State.SUCCEEDED}
    twice = [n for n, job in enumerate(after.jobs) if after.transfers[job] == 2]
    assert [steps[n] for n in twice] == ["committed", "committed"]
    assert sum(after.transfers.values()) == len(steps) + 2
