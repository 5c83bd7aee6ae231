from __future__ import annotations

from datetime import UTC, datetime

import pytest

from duetime.errors import InvalidTime
from duetime.model.explain.facts import ask_about
from duetime.model.time import MINUTE, SECOND, from_datetime
from tests.unit.model.explain.explain_kit import (
    BERLIN,
)


@pytest.mark.parametrize(
    ("moment", "width"),
    [
        (datetime(2026, 11, 15, 3, 0, tzinfo=UTC), MINUTE),
        (datetime(2026, 11, 15, 3, 0, 1, tzinfo=UTC), SECOND),
        (datetime(2026, 11, 15, 3, 0, 0, 7, tzinfo=UTC), 1),
    ],
)
def test_a_moment_stands_for_as_long_as_it_is_exact(moment: datetime, width: int) -> None:
    (window,) = ask_about(moment, BERLIN).windows
    assert window == (from_datetime(moment), from_datetime(moment) + width)


def test_something_that_is_no_moment_is_refused() -> None:
    with pytest.raises(InvalidTime, match="at must be a datetime such as"):
        ask_about("03:00", BERLIN)  # type: ignore[arg-type]
