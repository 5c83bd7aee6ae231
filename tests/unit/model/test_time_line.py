from __future__ import annotations

import re

import pytest

from duetime.errors import InvalidOption, InvalidTime, InvalidValue
from duetime.model.statistics import Grain, Kind
from duetime.model.time import DAY, HOUR, MINUTE, SECOND, Micros
from duetime.model.time_line import time_line

NOW = 20_000 * DAY + 12 * HOUR + 7 * MINUTE + 3 * SECOND


@pytest.mark.parametrize(
    ("ago", "kind", "step", "grain"),
    [
        (HOUR, Kind.TASK, MINUTE, Grain.MINUTE),
        (8 * HOUR, Kind.QUEUE, 5 * MINUTE, Grain.MINUTE),
        (DAY, Kind.ALL, 15 * MINUTE, Grain.MINUTE),
        (3 * DAY, Kind.TASK, HOUR, Grain.HOUR),
        (15 * DAY, Kind.TASK, 6 * HOUR, Grain.HOUR),
        (90 * DAY, Kind.TASK, DAY, Grain.DAY),
        (400 * DAY, Kind.TASK, DAY, Grain.DAY),
        (HOUR, Kind.SCHEDULE, HOUR, Grain.HOUR),
    ],
)
def test_without_a_step_one_is_chosen_that_is_kept(
    ago: Micros, kind: Kind, step: Micros, grain: Grain
) -> None:
    line = time_line(since=NOW - ago, until=None, step=None, now=NOW, kind=kind)
    assert (line.step, line.grain) == (step, grain)
    assert len(line.starts) <= 410


def test_points_begin_at_whole_steps_and_cover_what_was_asked_for() -> None:
    line = time_line(since=NOW - DAY, until=NOW - HOUR, step=15 * MINUTE, now=NOW, kind=Kind.TASK)
    assert line.since == NOW - DAY - 7 * MINUTE - 3 * SECOND
    assert line.until == NOW - HOUR + 7 * MINUTE + 57 * SECOND
    assert [*line.starts][-1] == line.until - 15 * MINUTE


def test_the_end_is_now_at_the_latest() -> None:
    line = time_line(since=NOW - HOUR, until=NOW + 9 * DAY, step=HOUR, now=NOW, kind=Kind.TASK)
    assert len(line.starts) == 2


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ((NOW, None, None, Kind.TASK), InvalidTime, "since lies in the future: it is 2024-10-04 12:07:03 UTC"),
        ((NOW + DAY, None, None, Kind.TASK), InvalidTime, "lies in the future"),
        ((NOW - HOUR, NOW - HOUR, None, Kind.TASK), InvalidTime, "not after since"),
        ((NOW - HOUR, None, 30 * SECOND, Kind.TASK), InvalidOption, "whole minutes, not 30 seconds"),
        ((NOW - HOUR, None, 0, Kind.TASK), InvalidOption, "whole minutes, not 0 seconds"),
        ((
            NOW - 3 * DAY, None, 5 * MINUTE, Kind.TASK), InvalidOption,
            ("a step of 5 minutes from 3 days ago is finer than what is kept: minutes for 2 days, hours for 2 weeks 1 day, "
            "days for 57 weeks 1 day; take whole steps of 1 hour, or a later since"),
        ),
        ((
            NOW - HOUR, None, MINUTE, Kind.SCHEDULE), InvalidOption,
            ("a step of 1 minute from 1 hour ago is finer than a schedule has: hours for 2 weeks 1 day, "
            "days for 57 weeks 1 day; take whole steps of 1 hour"),
        ),
        ((NOW - 500 * DAY, None, DAY, Kind.TASK), InvalidOption, "take a later since"),
        ((NOW - 500 * DAY, None, None, Kind.TASK), InvalidOption, "take a later since"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_refused(
    asked: tuple[int, int | None, int | None, Kind], error: type[InvalidValue], says: str
) -> None:
    since, until, step, kind = asked
    with pytest.raises(error, match=re.escape(says)):
        time_line(since=since, until=until, step=step, now=NOW, kind=kind)


def test_there_are_not_too_many_points() -> None:
    assert len(time_line(since=NOW - DAY, until=None, step=MINUTE, now=NOW, kind=Kind.TASK).starts) == 1_441
    with pytest.raises(InvalidOption, match="more than 1,500 points; take a longer one"):
        time_line(since=NOW - 2 * DAY, until=None, step=MINUTE, now=NOW, kind=Kind.TASK)
