from __future__ import annotations

import pickle
from datetime import timedelta

import pytest

from duetime import Cancel, Retry, Snooze
from duetime.errors import InvalidDuration
from duetime.model.time import SECOND


def test_delays_are_written_like_all_durations() -> None:
    assert Snooze("1m30s").delay == 90 * SECOND
    assert Retry(timedelta(seconds=2)).delay == 2 * SECOND
    assert Retry().delay is None


@pytest.mark.parametrize("delay", [-1, "soon", float("nan")])
def test_a_delay_that_is_none_is_refused_where_it_is_written(delay: float | str) -> None:
    with pytest.raises(InvalidDuration, match="delay"):
        Snooze(delay)
    with pytest.raises(InvalidDuration, match="delay"):
        Retry(delay)


@pytest.mark.parametrize("signal", [Cancel("enough"), Snooze("10s"), Retry(5, "busy"), Retry()])
def test_signals_cross_the_border_of_a_process(signal: Cancel | Snooze | Retry) -> None:
    copy = pickle.loads(pickle.dumps(signal))  # noqa: S301 - our own bytes
    assert (type(copy), vars(copy), str(copy)) == (type(signal), vars(signal), str(signal))
