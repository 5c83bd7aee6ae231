from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from duetime.errors import InvalidDuration, InvalidOption
from duetime.model.limits import (
    MAX_LIMIT,
    ONE_AT_A_TIME,
    UNLIMITED,
    Gate,
    Limit,
    Rate,
    gate,
    gate_name,
    gate_rule,
    gate_schedule,
    parse_rate,
    schedule_gate,
)
from duetime.model.task import task_options
from duetime.model.time import MINUTE


def passing(rate: Rate, starts: list[int], now: int) -> tuple[int, int | None]:
    """How many may start now, given the last starts."""
    return Gate(count=rate.count, period=rate.period).room(running=0, starts=starts, now=now)


@pytest.mark.parametrize(
    ("text", "count", "period"),
    [("100/1m", 100, MINUTE), (" 1 / 2m ", 1, 2 * MINUTE), ("5/1h30m", 5, 90 * MINUTE)],
)
def test_a_rate_is_read_from_text(text: str, count: int, period: int) -> None:
    rate = parse_rate(text)
    assert (rate.count, rate.period, rate.by) == (count, period, None)


@pytest.mark.parametrize("text", ["", "100", "/1m", "a/1m", "-1/1m", "1.5/1m", "٣/1m/2", 7, None])
def test_what_is_no_rate_is_refused_with_an_example(text: Any) -> None:
    with pytest.raises((InvalidOption, InvalidDuration), match=r"100/1m|15m"):
        parse_rate(text)


@pytest.mark.parametrize("count", [0, -1, 1_001, True, 1.0, "5", None])
def test_the_count_of_a_rate_is_a_whole_number_in_range(count: Any) -> None:
    with pytest.raises(InvalidOption, match="from 1 to 1,000"):
        Rate(count, "1m")


@pytest.mark.parametrize("most", [0, -1, MAX_LIMIT + 1, True, 1.0, "5"])
def test_a_limit_is_a_whole_number_in_range(most: Any) -> None:
    with pytest.raises(InvalidOption, match="from 1 to 1,000,000"):
        Limit(most)


def test_a_period_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidOption, match="longer than 0"):
        Rate(1, 0)


@pytest.mark.parametrize("by", ["", "a b", "a.b", 1])
def test_what_cannot_be_a_parameter_is_refused(by: Any) -> None:
    with pytest.raises(InvalidOption, match="must name a parameter"):
        Limit(1, by=by)


def test_a_start_counts_until_it_is_a_period_old() -> None:
    rate = Rate(2, timedelta(microseconds=10))
    assert passing(rate, [], 100) == (2, None)
    assert passing(rate, [100], 100) == (1, None)
    assert passing(rate, [100, 105], 109) == (0, 110)
    assert passing(rate, [100, 105], 110) == (1, None)
    assert passing(rate, [100, 105], 115) == (2, None)


def test_a_clock_that_was_set_back_a_little_lets_nobody_pass_too_early() -> None:
    rate = Rate(2, timedelta(microseconds=10))
    assert passing(rate, [100, 101], 95) == (0, 110)
    assert passing(rate, [100, 95], 95) == (0, 105), (
        "the first to leave the window is not the first that came"
    )


def test_a_clock_that_was_set_back_far_does_not_shut_the_gate_until_it_has_caught_up() -> None:
    rate = Rate(1, timedelta(microseconds=10))
    assert passing(rate, [100], 90) == (0, 110)
    assert passing(rate, [100], 89) == (1, None)
    kept = Gate(count=1, period=10).after([100], [89])
    assert passing(rate, kept, 90) == (0, 99), "what starts from now on counts"


def test_without_a_rate_the_starts_stay_for_code_that_has_one() -> None:
    assert Gate(most=1).after([1, 2], [3]) == [1, 2]


@given(
    count=st.integers(1, 4),
    period=st.integers(1, 20),
    waits=st.lists(st.integers(0, 30), max_size=40),
)
def test_no_window_of_any_sequence_has_more_starts_than_the_rate(
    count: int, period: int, waits: list[int]
) -> None:
    rule = Gate(count=count, period=period)
    now, kept, starts = 0, list[int](), list[int]()
    for wait in waits:
        now += wait
        free, again_at = rule.room(running=0, starts=kept, now=now)
        assert (free == 0) == (again_at is not None)
        assert again_at is None or again_at > now
        starts += [now] * free
        kept = rule.after(kept, [now] * free)
        assert len(kept) <= count
    assert all(last - first >= period for first, last in zip(starts, starts[count:], strict=False))


def test_a_limit_leaves_what_does_not_run_yet() -> None:
    rule = Gate(most=3)
    assert rule.room(running=1, starts=[], now=0) == (2, None)
    assert rule.room(running=3, starts=[], now=0) == (0, None)
    # After a limit was lowered, more may run than it says.
    assert rule.room(running=5, starts=[], now=0) == (0, None)
    assert rule.after([], [1]) == []


def test_both_limits_hold() -> None:
    rule = Gate(most=2, count=3, period=10)
    assert rule.room(running=0, starts=[1, 2], now=5) == (1, None)
    assert rule.room(running=2, starts=[1], now=5) == (0, None)
    assert rule.room(running=0, starts=[1, 2, 3], now=5) == (0, 11)


def test_options_become_a_gate() -> None:
    assert task_options({}).gate is None
    assert task_options({"limit": None, "rate": None}).gate is None
    assert task_options({"limit": 5}).gate == Gate(most=5)
    assert task_options({"rate": "2/1m"}).gate == Gate(count=2, period=MINUTE)
    both = task_options({"limit": Limit(1, by="x"), "rate": Rate(2, "1m", by="x")}).gate
    assert both == Gate(most=1, count=2, period=MINUTE, by="x")


def test_a_gate_is_written_as_it_was_read() -> None:
    limit, rate = Limit(1, by="x"), Rate(2, timedelta(minutes=1), by="x")
    assert Gate(1, 2, MINUTE, "x").written() == (limit, rate)
    assert Gate(most=1).written() == (Limit(1), None)
    assert Gate(count=2, period=MINUTE).written() == (None, Rate(2, timedelta(minutes=1)))


def test_a_limit_and_a_rate_that_go_by_different_arguments_are_refused() -> None:
    with pytest.raises(InvalidOption, match="limit= goes by customer and rate= by the whole task"):
        gate(Limit(1, by="customer"), "100/1m")


def test_gates_have_names_that_no_two_share() -> None:
    long = '"' + "x" * 200 + '"'
    names = [
        gate_name("send"),
        gate_name("send", "to", "1"),
        gate_name("send", "to", '"1"'),
        gate_name("send", "by", "1"),
        gate_name("send", "to", long),
        gate_name("send", "to", long + " "),
    ]
    assert names[:2] == ["send", "send[to=1]"]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) < 60


def test_at_the_gate_of_a_schedule_one_passes_at_a_time_whatever_the_task_allows() -> None:
    limits = {"send": Gate(most=5)}
    assert gate_rule(schedule_gate("nightly"), "send", limits) is ONE_AT_A_TIME
    assert gate_rule("send", "send", limits) == Gate(most=5)
    assert gate_rule("send", "send", {}) is UNLIMITED


@pytest.mark.parametrize("value", ['"x"', '"[schedule:x]"', '"schedule:x"'])
@pytest.mark.parametrize("by", ["schedule", "user"])
def test_no_value_of_an_argument_passes_for_a_schedule(by: str, value: str) -> None:
    assert gate_schedule(gate_name("send", by, value)) is None


@pytest.mark.parametrize("name", ["nightly", "a:b/c@<d>-e", "x" * 200])
def test_the_schedule_of_a_gate_is_known_by_its_name(name: str) -> None:
    assert gate_schedule(schedule_gate(name)) == name
    assert gate_schedule(gate_name("send")) is None
