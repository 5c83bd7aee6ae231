from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duetime.errors import InvalidDuration, InvalidTime
from duetime.model.time import LATEST, SECOND, Clock, to_datetime
from duetime.testing import FakeClock


def test_it_stands_still_and_always_starts_at_the_same_instant() -> None:
    clock: Clock = FakeClock()
    assert clock.now() == clock.now() == FakeClock().now()


@pytest.mark.parametrize("by", [90, 90.0, "1m30s", timedelta(seconds=90)])
def test_it_moves_by_any_duration(by: Any) -> None:
    clock = FakeClock(5)
    assert clock.advance(by) == clock.now() == 5 + 90 * SECOND


def test_it_can_be_set_to_a_datetime_or_an_instant_also_backwards() -> None:
    clock, moment = FakeClock(), datetime(2030, 5, 1, 12, tzinfo=UTC)
    assert to_datetime(clock.set(moment)) == moment
    assert clock.set(7) == clock.now() == 7


def test_it_does_not_advance_backwards() -> None:
    with pytest.raises(InvalidDuration, match="advance must not be negative"):
        FakeClock().advance(-1)


@pytest.mark.parametrize("moment", [-1, LATEST + 1, 1.5, "now", True, datetime(2030, 1, 1)])  # noqa: DTZ001
def test_it_takes_no_time_that_is_none(moment: Any) -> None:
    with pytest.raises(InvalidTime, match="clock time"):
        FakeClock().set(moment)


def test_it_needs_neither_pytest_nor_hypothesis() -> None:
    program = "import sys, duetime.testing; print({'pytest', 'hypothesis'} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "set()"
