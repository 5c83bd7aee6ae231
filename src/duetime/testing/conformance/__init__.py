"""The store suite: a store that passes it can serve Duetime.

A test module binds it to a store with one import and one fixture, told in full by `MakeStore`:

    from duetime.testing.conformance import *

    @pytest_asyncio.fixture
    async def make_store(tmp_path):
        opened = []

        async def make(clock, *, namespace="duetime"):
            store = MyStore(tmp_path / "jobs", namespace=namespace, clock=clock)
            await store.open()
            opened.append(store)
            return store

        yield make
        for store in opened:
            await store.close()

It needs pytest, pytest-asyncio and Hypothesis.
"""

# ruff: noqa: E402 - modules are imported after they are announced to pytest.

from __future__ import annotations

import pytest

_MODULES = (
    "access",
    "announced",
    "backfills",
    "blocking",
    "callbacks",
    "claim",
    "commands",
    "control",
    "enqueue",
    "fencing",
    "firing",
    "identity",
    "key_races",
    "keys",
    "kit",
    "lifecycle",
    "limits",
    "lives",
    "loans",
    "locks",
    "moves",
    "moving",
    "noted",
    "policies",
    "queue_limits",
    "rates",
    "reads",
    "registries",
    "replies",
    "reports",
    "rescue",
    "retention",
    "runs",
    "schedules",
    "settle",
    "sights",
    "statistics",
    "story",
    "suite",
    "times",
    "turns",
    "wakeups",
    "watching",
    "withdrawal",
    "workers",
    "writing",
)
_MACHINES = ("agreement", "job_machine", "machine", "schedule_machine", "schedule_model")
# Before they are imported, so that a failing assertion shows its values here as in any test module.
pytest.register_assert_rewrite(*(f"{__name__}.{module}" for module in _MODULES))
pytest.register_assert_rewrite(*(f"duetime.testing.{module}" for module in _MACHINES))

from duetime.testing.conformance.access import TestAccess
from duetime.testing.conformance.announced import TestAnnounced
from duetime.testing.conformance.backfills import TestBackfill, TestEntries, TestOccurrences
from duetime.testing.conformance.blocking import TestBlocking
from duetime.testing.conformance.callbacks import TestCallbacks
from duetime.testing.conformance.claim import TestClaim, TestClaimAhead
from duetime.testing.conformance.commands import TestCommands
from duetime.testing.conformance.control import TestCancel, TestDelete, TestQueues
from duetime.testing.conformance.enqueue import TestEnqueue
from duetime.testing.conformance.fencing import TestFencing
from duetime.testing.conformance.firing import TestFire
from duetime.testing.conformance.identity import TestIdentity
from duetime.testing.conformance.key_races import TestKeysUnderConcurrency
from duetime.testing.conformance.keys import (
    TestBatchesOfKeys,
    TestHoldsPastTheEnd,
    TestKeys,
    TestReplacement,
)
from duetime.testing.conformance.lifecycle import TestLifecycle
from duetime.testing.conformance.limits import TestGates
from duetime.testing.conformance.lives import TestRandomLives, lives
from duetime.testing.conformance.loans import TestLend
from duetime.testing.conformance.locks import TestLocks
from duetime.testing.conformance.moves import TestEdit, TestRelease
from duetime.testing.conformance.moving import TestExchange, TestMovedAway, TestMovedOn, TestStretches
from duetime.testing.conformance.noted import TestNoted
from duetime.testing.conformance.policies import TestGivingWay, TestPausesOfSchedules, TestStreaks
from duetime.testing.conformance.queue_limits import TestQueueLimits
from duetime.testing.conformance.rates import TestRates
from duetime.testing.conformance.reads import TestLists, TestNextDue, TestReads
from duetime.testing.conformance.registries import TestDueJobs, TestPurge, TestRegistries
from duetime.testing.conformance.replies import TestLostReplies
from duetime.testing.conformance.reports import TestLogs, TestProgress
from duetime.testing.conformance.rescue import TestBlame, TestRescue
from duetime.testing.conformance.retention import TestPrune, TestTimesToLive
from duetime.testing.conformance.runs import TestRuns
from duetime.testing.conformance.schedules import (
    TestDueSchedules,
    TestPauseAndDelete,
    TestPutSchedules,
)
from duetime.testing.conformance.settle import TestRepeatedSettlement, TestSettle
from duetime.testing.conformance.sights import TestSight
from duetime.testing.conformance.statistics import TestStatistics
from duetime.testing.conformance.suite import MakeStore, StoreSuite
from duetime.testing.conformance.times import TestTime
from duetime.testing.conformance.turns import TestTurns
from duetime.testing.conformance.wakeups import TestWakeups
from duetime.testing.conformance.watching import TestWatching
from duetime.testing.conformance.withdrawal import TestRewind, TestWithdrawal
from duetime.testing.conformance.workers import TestPeers, TestPulse
from duetime.testing.conformance.writing import TestLostAnswers, TestWriteSchedules

__all__ = [
    "MakeStore",
    "StoreSuite",
    "TestAccess",
    "TestAnnounced",
    "TestBackfill",
    "TestBatchesOfKeys",
    "TestBlame",
    "TestBlocking",
    "TestCallbacks",
    "TestCancel",
    "TestClaim",
    "TestClaimAhead",
    "TestCommands",
    "TestDelete",
    "TestDueJobs",
    "TestDueSchedules",
    "TestEdit",
    "TestEnqueue",
    "TestEntries",
    "TestExchange",
    "TestFencing",
    "TestFire",
    "TestGates",
    "TestGivingWay",
    "TestHoldsPastTheEnd",
    "TestIdentity",
    "TestKeys",
    "TestKeysUnderConcurrency",
    "TestLend",
    "TestLifecycle",
    "TestLists",
    "TestLocks",
    "TestLogs",
    "TestLostAnswers",
    "TestLostReplies",
    "TestMovedAway",
    "TestMovedOn",
    "TestNextDue",
    "TestNoted",
    "TestOccurrences",
    "TestPauseAndDelete",
    "TestPausesOfSchedules",
    "TestPeers",
    "TestProgress",
    "TestPrune",
    "TestPulse",
    "TestPurge",
    "TestPutSchedules",
    "TestQueueLimits",
    "TestQueues",
    "TestRandomLives",
    "TestRates",
    "TestReads",
    "TestRegistries",
    "TestRelease",
    "TestRepeatedSettlement",
    "TestReplacement",
    "TestRescue",
    "TestRewind",
    "TestRuns",
    "TestSettle",
    "TestSight",
    "TestStatistics",
    "TestStreaks",
    "TestStretches",
    "TestTime",
    "TestTimesToLive",
    "TestTurns",
    "TestWakeups",
    "TestWatching",
    "TestWithdrawal",
    "TestWriteSchedules",
    "lives",
]
