from __future__ import annotations

import pytest

from benchmarks.peers.cells import Start, judge, lateness, occurrences


def starts(*numbers: int) -> list[Start]:
    return [Start(number, at=10.0 + number, due=10.0) for number in numbers]


def test_nothing_is_wrong_when_each_job_ran_once() -> None:
    verdict = judge(starts(2, 0, 1), expected=3)
    assert verdict.ran == 3
    assert verdict.wrong == {}


def test_a_job_that_did_not_run_is_missing() -> None:
    assert judge(starts(0, 2), expected=3).wrong == {"missing": 1}


def test_none_is_missing_from_a_run_that_was_cut_short() -> None:
    assert judge(starts(0, 2), expected=3, whole=False).wrong == {}


def test_each_start_too_many_counts_as_doubled() -> None:
    assert judge(starts(0, 1, 1, 1), expected=2).wrong == {"doubled": 2}


def test_a_job_that_nobody_enqueued_counts_as_doubled() -> None:
    assert judge(starts(0, 7), expected=1).wrong == {"doubled": 1}


@pytest.mark.parametrize(("seconds", "early"), [(0.5, 1), (0.001, 1), (0.000_000_5, 0), (-1.0, 0)])
def test_a_start_before_the_due_time_is_early(seconds: float, early: int) -> None:
    assert judge([Start(0, at=100.0 - seconds, due=100.0)], expected=1).early == early


def test_lateness_is_told_in_milliseconds() -> None:
    assert Start(0, at=10.25, due=10.0).late == 250.0


def test_a_job_that_did_not_start_is_as_late_as_was_waited_for_it() -> None:
    assert lateness([Start(1, at=10.5, due=10.0)], expected=2, wait=8.0) == [500.0, 8000.0]


def test_the_first_start_of_a_job_tells_how_late_it_was() -> None:
    twice = [Start(0, at=10.5, due=10.0), Start(0, at=11.0, due=10.0)]
    assert lateness(twice, expected=1, wait=8.0) == [500.0]


def test_each_occurrence_in_the_window_is_expected_once() -> None:
    seen = [Start(n, at=due + 0.1, due=due) for n in (0, 1) for due in (100.0, 105.0, 110.0, 115.0)]
    found, expected = occurrences(seen, firsts=[100.0, 100.0], period=5.0, window=(102.5, 112.5))
    assert expected == 4
    assert judge(found, expected=expected).wrong == {}


def test_an_occurrence_that_did_not_run_is_missing() -> None:
    found, expected = occurrences(
        [Start(0, at=105.1, due=105.0)], firsts=[100.0, 101.0], period=5.0, window=(102.5, 107.5)
    )
    assert judge(found, expected=expected).wrong == {"missing": 1}


def test_an_occurrence_that_ran_twice_is_doubled() -> None:
    twice = [Start(0, at=105.1, due=105.0), Start(0, at=105.2, due=105.0)]
    found, expected = occurrences(twice, firsts=[100.0], period=5.0, window=(102.5, 107.5))
    assert judge(found, expected=expected).wrong == {"doubled": 1}


def test_a_start_that_was_not_told_its_due_time_belongs_to_the_occurrence_before() -> None:
    found, _ = occurrences([Start(0, at=106.5, due=0.0)], firsts=[100.0], period=5.0, window=(102.5, 107.5))
    assert [(start.due, start.late) for start in found] == [(105.0, 1500.0)]


def test_due_times_may_lose_microseconds() -> None:
    found, expected = occurrences(
        [Start(0, at=105.1, due=104.999_999)], firsts=[100.0], period=5.0, window=(102.5, 107.5)
    )
    assert (len(found), expected) == (1, 1)


def test_a_schedule_that_begins_in_the_window_is_not_expected_before_it_begins() -> None:
    _, expected = occurrences([], firsts=[104.0], period=1.0, window=(100.0, 106.0))
    assert expected == 2


def test_an_occurrence_at_the_edge_belongs_to_the_window_that_it_begins() -> None:
    _, expected = occurrences([], firsts=[100.0], period=5.0, window=(105.0, 110.0))
    assert expected == 1
