from __future__ import annotations

from typing import get_args

import pytest

from duetime.model.outcome import (
    Cancelled,
    Crashed,
    Failed,
    Interrupted,
    Outcome,
    Released,
    Skipped,
    Snoozed,
    Succeeded,
)
from duetime.runtime.running.children.messages import (
    RunEnded,
    RunJob,
    StopJob,
    child_message_decoder,
    decode_worker_message,
    encode_child_message,
    encode_worker_message,
)
from duetime.runtime.running.handler import TaskLocation, TaskModule
from tests.unit.runtime.kit import claim

OUTCOMES: list[Outcome] = [
    Succeeded('{"a": [1, "line\\nbreak"]}', None),
    Failed(error="é\n", traceback="t", reason="crashed child", final=True),
    Cancelled("why"),
    Skipped("late"),
    Snoozed(5),
    Released(wait=3),
    Interrupted(reason="stop"),
    Crashed(worker="w", started=True, blamed=False),
]


def test_every_kind_of_outcome_is_among_these() -> None:
    assert {type(outcome) for outcome in OUTCOMES} == set(get_args(Outcome))


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
def test_an_outcome_comes_back_as_it_was(outcome: Outcome) -> None:
    line = encode_child_message(RunEnded.of(outcome, memory=7))
    assert line.index(b"\n") == len(line) - 1
    word = child_message_decoder.decode(line)
    assert isinstance(word, RunEnded)
    assert (word.read(), word.memory) == (outcome, 7)


def test_a_claim_comes_back_as_it_was() -> None:
    job = RunJob(TaskLocation(TaskModule("m", None), "f"), claim(payload='{"a": "\\n"}', timeout=9), 1, 9)
    assert decode_worker_message(encode_worker_message(job)) == job
    assert decode_worker_message(encode_worker_message(StopJob("why"))) == StopJob("why")


def test_names_that_are_no_unicode_reach_the_child() -> None:
    job = RunJob(TaskLocation(TaskModule("\udce9", "/\udce9.py"), "f"), claim(), 1, 9)
    line = encode_worker_message(job)
    assert line.index(b"\n") == len(line) - 1
    assert decode_worker_message(line) == job
