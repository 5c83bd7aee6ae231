"""How long to wait after failures: ever longer, and not as long as others."""

from __future__ import annotations

import pytest

from duetime.stores.base.backoff import backoff


@pytest.mark.parametrize(
    ("failures", "longest"), [(0, 0.1), (1, 0.2), (3, 0.8), (6, 5.0), (100_000, 5.0)], ids=str
)
def test_each_failure_in_a_row_doubles_the_wait_up_to_a_bound(failures: int, longest: float) -> None:
    waits = [backoff(failures) for _ in range(50)]
    assert longest / 2 <= min(waits) <= max(waits) <= longest


def test_those_that_fail_together_do_not_come_back_together() -> None:
    assert len({backoff(2) for _ in range(20)}) > 1
