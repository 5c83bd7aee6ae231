from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import pytest

from duetime.errors import SchemaMismatch, StoreError, StoreUnavailable, StoreUnusable
from duetime.model.job import Claim, NewJob, Token
from duetime.model.outcome import Settlement
from duetime.model.reports import NewLogPart, Progress
from duetime.model.states import State
from duetime.model.time import SECOND
from duetime.runtime import service
from duetime.runtime.settling import settler
from duetime.runtime.settling.settler import Settler, may_linger
from duetime.stores.base.backoff import backoff
from tests.unit.runtime.kit import SettlingStore, claim, context_of, settlement

AHEAD = claim(due_at=3, claimed_at=2)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "backoff", partial(backoff, first=0.0001))


def settler_on(store: SettlingStore) -> Settler:
    return Settler(context_of(store), on_written=lambda _batch, _accepted: None)


async def drained(settler: Settler) -> None:
    settler.start()
    await asyncio.wait_for(settler.flush(), 5)
    await settler.stop()


def ids(store: SettlingStore) -> list[list[str]]:
    return [[change.token.job_id for change in batch] for batch in store.batches]


async def test_what_waits_is_written_together() -> None:
    store = SettlingStore()
    settler = settler_on(store)
    for job_id in "abc":
        settler.put(settlement(job_id))
    assert settlement("b").token in settler.tokens()
    await drained(settler)
    assert ids(store) == [["a", "b", "c"]]
    assert settlement("b").token not in settler.tokens()


@pytest.mark.parametrize("kind", [StoreUnavailable, StoreUnusable, SchemaMismatch])
async def test_a_batch_is_written_again_when_the_database_was_away_or_had_to_be_mended(
    kind: type[StoreError],
) -> None:
    store = SettlingStore(kind("gone"), kind("still gone"))
    settler = settler_on(store)
    settler.put(settlement("a"))
    await drained(settler)
    assert ids(store) == [["a"], ["a"], ["a"]]


async def test_what_comes_meanwhile_waits_for_the_batch_before_it() -> None:
    store = SettlingStore(StoreUnavailable("gone"))
    settler = settler_on(store)
    settler.put(settlement("a"))
    with pytest.raises(StoreUnavailable):
        await settler.round()
    settler.put(settlement("b"))
    await drained(settler)
    assert ids(store) == [["a"], ["a"], ["b"]]


async def test_a_value_the_database_refuses_is_written_without_its_texts_and_alone() -> None:
    store = SettlingStore(StoreError("bad text"), None, StoreError("bad text"), None, None)
    settler = settler_on(store)
    settler.put(settlement("good"))
    settler.put(settlement("bad", result="\x00"))
    settler.put(settlement("worse", state=State.FAILED, error="\x00", traceback="\x00"))
    store.errors.insert(4, StoreError("bad text"))
    await drained(settler)
    assert ids(store) == [["good", "bad", "worse"], ["good"], ["bad"], ["bad"], ["worse"], ["worse"]]
    bad, worse = store.batches[3][0], store.batches[5][0]
    assert (bad.state, bad.result, bad.result_error) == (
        State.SUCCEEDED,
        None,
        "the result could not be stored",
    )
    assert (worse.state, worse.error, worse.traceback) == (
        State.FAILED,
        "the error text could not be stored",
        None,
    )


async def test_an_outcome_is_not_lost_for_what_the_run_has_said() -> None:
    store = SettlingStore(StoreError("bad text"), None)
    settler = settler_on(store)
    said = settlement()
    settler.put(
        said._replace(
            progress=Progress(said.token, 0.5, "half"), logs=(NewLogPart(said.token, 1, 1, "line"),)
        )
    )
    await drained(settler)
    bare = store.batches[1][0]
    assert (bare.state, bare.progress, bare.logs) == (State.SUCCEEDED, None, ())


async def test_an_error_of_the_driver_itself_stays_with_the_value_that_caused_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = SettlingStore(
        OverflowError("too large"), None, OverflowError("too large"), OverflowError("too large")
    )
    settler = settler_on(store)
    settler.put(settlement("good"))
    settler.put(settlement("bad"))
    await drained(settler)
    assert ids(store) == [["good", "bad"], ["good"], ["bad"], ["bad"]]
    assert "the outcome of job bad could not be stored at all" in caplog.text


async def test_a_refused_outcome_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    store = SettlingStore()
    store.refuses.add("lost")
    settler = settler_on(store)
    settler.put(settlement("kept"))
    settler.put(settlement("lost"))
    await drained(settler)
    assert "the outcome of 1 run was refused" in caplog.text
    assert "job lost" in caplog.text
    assert "kept" not in caplog.text


async def test_whoever_finishes_faster_than_the_database_writes_is_held_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settler, "_MAX_BACKLOG", 3)
    store = SettlingStore()
    deep = settler_on(store)
    for job_id in "abc":
        deep.put(settlement(job_id))
    assert deep.full
    waiting = asyncio.create_task(deep.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    deep.start()
    await asyncio.wait_for(waiting, 5)
    assert not deep.full
    await deep.stop()


async def test_a_deep_backlog_is_written_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settler, "_BATCH_SIZE", 2)
    store = SettlingStore()
    deep = settler_on(store)
    for job_id in "abcde":
        deep.put(settlement(job_id))
    await drained(deep)
    assert ids(store) == [["a", "b"], ["c", "d"], ["e"]]


def test_nothing_to_write_is_nothing_written() -> None:
    store = SettlingStore()
    run: Callable[[Any], Any] = asyncio.run
    assert run(settler_on(store).round()) is None
    assert store.batches == []


async def test_whatever_comes_while_a_batch_is_written_is_written_too() -> None:
    store = Slow()
    settler = settler_on(store)
    settler.start()
    settler.put(settlement("a"))
    await asyncio.wait_for(store.began.wait(), 5)
    settler.put(settlement("b"))
    settler.put(settlement("c"))
    store.goes_on.set()
    await asyncio.wait_for(settler.flush(), 5)
    settler.put(settlement("d"))
    await asyncio.wait_for(settler.flush(), 5)
    await settler.stop()
    assert ids(store) == [["a"], ["b", "c"], ["d"]]


class Slow(SettlingStore):
    """Takes its time."""

    def __init__(self) -> None:
        super().__init__()
        self.began = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def settle(self, settlements: Sequence[Settlement]) -> frozenset[Token]:
        self.began.set()
        await self.goes_on.wait()
        return await super().settle(settlements)


@pytest.fixture
def endless_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settler, "_LINGER", 3_600 * SECOND)


async def passed() -> None:
    """Let everybody do what can be done without waiting."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_patient_outcomes_of_a_stream_share_a_commit() -> None:
    store = SettlingStore()
    stream = settler_on(store)
    stream.start()
    for job_id in "abc":
        stream.put(settlement(job_id), AHEAD)
        await passed()
    assert ids(store) == [["a"]], "the first cannot know that others follow; these wait for each other"
    while len(store.batches) == 1:  # noqa: ASYNC110 - what ends it is a timer of the settler
        await asyncio.sleep(0.001)
    await stream.stop()
    assert ids(store) == [["a"], ["b", "c"]]


@pytest.mark.usefixtures("endless_patience")
async def test_a_patient_outcome_that_follows_no_other_is_written_at_once() -> None:
    store = SettlingStore()
    stream = settler_on(store)
    stream.start()
    await passed()
    stream.put(settlement("a"), AHEAD)
    await passed()
    await stream.stop()
    assert ids(store) == [["a"]]


@pytest.mark.usefixtures("endless_patience")
async def test_an_outcome_that_somebody_waits_for_takes_the_patient_ones_along() -> None:
    store = SettlingStore()
    stream = settler_on(store)
    stream.start()
    for job_id in "abc":
        stream.put(settlement(job_id), AHEAD)
        await passed()
    stream.put(settlement("d"))
    await passed()
    await stream.stop()
    assert ids(store) == [["a"], ["b", "c", "d"]]


@pytest.mark.usefixtures("endless_patience")
async def test_patient_outcomes_are_written_without_delay_when_all_is_to_be_written() -> None:
    store = SettlingStore()
    stream = settler_on(store)
    stream.start()
    for job_id in "ab":
        stream.put(settlement(job_id), AHEAD)
        await passed()
    await drained(stream)
    assert ids(store) == [["a"], ["b"]]


@pytest.mark.usefixtures("endless_patience")
async def test_patient_outcomes_behind_a_batch_that_failed_are_written_after_it() -> None:
    store = SettlingStore(StoreUnavailable("gone"))
    stream = settler_on(store)
    stream.put(settlement("a"), AHEAD)
    with pytest.raises(StoreUnavailable):
        await stream.round()
    stream.put(settlement("b"), AHEAD)
    stream.start()
    await passed()
    await stream.stop()
    assert ids(store) == [["a"], ["a"], ["b"]]


@pytest.mark.parametrize(
    ("of", "outcome", "lingers"),
    [
        (AHEAD, settlement(), True),
        (AHEAD._replace(due_at=2), settlement(), False),
        (AHEAD._replace(key="only one"), settlement(), False),
        (AHEAD._replace(callbacks="[]"), settlement(), False),
        (AHEAD, settlement(new_jobs=(cast("NewJob", None),)), False),
        (AHEAD, settlement(state=State.FAILED), False),
        (AHEAD, settlement(finished_at=1 + SECOND), False),
    ],
)
def test_only_the_success_of_a_short_run_ahead_of_nothing_else_may_linger(
    of: Claim, outcome: Settlement, lingers: bool
) -> None:
    assert may_linger(of, outcome) is lingers
