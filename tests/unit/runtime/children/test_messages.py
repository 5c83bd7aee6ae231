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
from duetime.runtime.children.address import Address, Home
from duetime.runtime.children.messages import (
    Ended,
    Job,
    Stop,
    read_order,
    to_line,
    to_order_line,
    word_decoder,
)
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
    line = to_line(Ended.of(outcome, memory=7))
    assert line.index(b"\n") == len(line) - 1
    word = word_decoder.decode(line)
    assert isinstance(word, Ended)
    assert (word.read(), word.memory) == (outcome, 7)


def test_a_claim_comes_back_as_it_was() -> None:
    job = Job(Address(Home("m", None), "f"), claim(payload='{"a": "\\n"}', timeout=9), 1, 9)
    assert read_order(to_order_line(job)) == job
    assert read_order(to_order_line(Stop("why"))) == Stop("why")


def test_names_that_are_no_unicode_reach_the_child() -> None:
    job = Job(Address(Home("\udce9", "/\udce9.py"), "f"), claim(), 1, 9)
    line = to_order_line(job)
    assert line.index(b"\n") == len(line) - 1
    assert read_order(line) == job
