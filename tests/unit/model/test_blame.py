from __future__ import annotations

from duetime.model.blame import Suspect, blamed


def test_a_job_alone_in_its_worker_is_blamed() -> None:
    assert blamed([Suspect("a", 0)]) == "a"


def test_nobody_is_blamed_when_nothing_was_started() -> None:
    assert blamed([]) is None


def test_nobody_is_blamed_among_several_that_never_saw_a_crash() -> None:
    assert blamed([Suspect("a", 0), Suspect("b", 0)]) is None


def test_the_one_that_saw_a_crash_before_is_blamed_among_others() -> None:
    assert blamed([Suspect("a", 0), Suspect("b", 2), Suspect("c", 0)]) == "b"


def test_nobody_is_blamed_when_several_saw_a_crash_before() -> None:
    assert blamed([Suspect("a", 1), Suspect("b", 2)]) is None
