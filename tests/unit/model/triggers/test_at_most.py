from __future__ import annotations

from typing import Any

import pytest

from duetime.errors import InvalidTrigger
from duetime.model.triggers.cron import cron
from duetime.model.triggers.every import every
from tests.support.triggers import BEGIN, DAY, walk


def test_the_limit_is_for_the_schedule_to_count() -> None:
    rule = cron("0 * * * *").at_most(3)
    assert rule.times == 3
    assert len(walk(rule, BEGIN, until=BEGIN + DAY)) == 24
    assert rule.count(BEGIN, BEGIN + DAY) == 24


def test_the_smaller_of_two_limits_holds() -> None:
    assert every("1h", times=5).at_most(3).times == 3
    assert every("1h", times=2).at_most(3).times == 2
    assert every("1h").at_most(4).at_most(6).times == 4


def test_a_limit_shines_through_what_is_put_around_it() -> None:
    assert every("1h", times=5).jitter("1m").times == 5


@pytest.mark.parametrize("times", [0, -1, 1.5, True, "3", None, 10**18])
def test_a_limit_is_a_whole_number(times: Any) -> None:
    with pytest.raises(InvalidTrigger, match=r"^at_most\(\) must be a whole number from 1"):
        cron("0 * * * *").at_most(times)


def test_it_is_said_in_english() -> None:
    assert cron("@daily").at_most(1).describe() == "at 00:00 every day, UTC, at most once"
    assert cron("@daily").at_most(9).describe() == "at 00:00 every day, UTC, at most 9 times"
