from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, strategies as st

from duetime.errors import InvalidDuration, InvalidTrigger
from duetime.model.time import DAY, LATEST, SECOND
from duetime.model.triggers.at import At
from duetime.model.triggers.combined import Jitter
from duetime.model.triggers.cron import cron
from duetime.model.triggers.every import every
from tests.support.triggers import BEGIN, INSTANTS, walk

HOURLY = cron("0 * * * *")


@given(most=st.integers(1_000, DAY), seed=st.text(max_size=9), occurrences=st.sets(INSTANTS, min_size=2))
def test_a_job_falls_due_within_the_bound_and_always_at_the_same_time(
    most: int, seed: str, occurrences: set[int]
) -> None:
    rule = Jitter(HOURLY, most, seed)
    due = {occurrence: rule.due(occurrence) for occurrence in sorted(occurrences)}
    assert all(0 <= at - occurrence < most for occurrence, at in due.items())
    assert due == {occurrence: Jitter(HOURLY, most, seed).due(occurrence) for occurrence in due}
    # Two jobs change places only if their occurrences are closer than the bound.
    assert all(due[one] < due[two] for one in due for two in due if one + most <= two)


def test_occurrences_stay_where_they_are() -> None:
    assert walk(HOURLY.jitter("30m"), BEGIN, most=9) == walk(HOURLY, BEGIN, most=9)


def test_it_spreads_by_the_name_of_the_schedule_and_by_the_occurrence() -> None:
    rule = HOURLY.jitter("30m")
    names = {rule.seeded(f"schedule-{number}").due(BEGIN) for number in range(20)}
    occurrences = {rule.seeded("one").due(BEGIN + number * SECOND) - number * SECOND for number in range(20)}
    assert len(names) == len(occurrences) == 20
    assert rule.seeded("one").seeded("two") == rule.seeded("one")


def test_another_process_comes_to_the_same_time() -> None:
    program = (
        f"from duetime import cron; print(cron('0 * * * *').jitter('30m').seeded('nightly').due({BEGIN}))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert int(printed) == HOURLY.jitter("30m").seeded("nightly").due(BEGIN)


def test_jitter_upon_jitter_adds_up_and_time_has_an_end() -> None:
    inner = HOURLY.jitter("1h").seeded("one")
    assert inner.jitter("1ms").due(BEGIN) - inner.due(BEGIN) < 1_000
    assert At((LATEST,)).jitter("1d").due(LATEST) == LATEST


@pytest.mark.parametrize("most", ["0s", "999us", "25h"])
def test_a_bound_out_of_range_is_refused(most: str) -> None:
    with pytest.raises(InvalidTrigger, match=r"^jitter must be from 1 ms to 1 day"):
        HOURLY.jitter(most)


@pytest.mark.parametrize("most", ["soon", -1, None, True])
def test_a_bound_is_a_duration(most: Any) -> None:
    with pytest.raises(InvalidDuration, match=r"^jitter "):
        HOURLY.jitter(most)


def test_it_is_said_in_english() -> None:
    assert every("1h").jitter("90s").describe() == "every hour, each up to 1 minute 30 seconds later"
