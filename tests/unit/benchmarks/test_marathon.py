"""What the samples of a marathon are taken to say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.ledger import WrongRun
from benchmarks.marathon.run import Bounds, Room, Sample, Tally, TooShort, judge, quarters

JOBS = 400
BOUNDS = Bounds(versions=3.0, log=100.0)
ROOM = Room(end=200.0, fresh=100.0, encore=1.0, encore_fresh=10.0)
TITLES = (
    "memory is flat",
    "the rate lasts",
    "the log is bounded",
    "records take what they need",
    "room is used again",
)


def steady() -> list[Sample]:
    return [Sample(n, n * 10, memory=40.0, table=50.0, log=20.0) for n in range(40)]


def later(samples: list[Sample], **changes: Any) -> list[Sample]:
    """Change the samples of the last quarter."""
    return [*samples[:30], *(sample._replace(**changes) for sample in samples[30:])]


def broken(samples: list[Sample], room: Room = ROOM) -> list[str]:
    found = judge(quarters(samples, JOBS), room, BOUNDS)
    assert [verdict.title for verdict in found] == list(TITLES)
    return [verdict.title for verdict in found if not verdict.holds]


def test_a_steady_drain_breaks_nothing() -> None:
    assert broken(steady()) == []


@pytest.mark.parametrize(("memory", "flat"), [(42.9, True), (43.1, False)])
def test_a_little_memory_more_is_room_and_more_is_a_leak(memory: float, flat: bool) -> None:
    assert broken(later(steady(), memory=memory)) == ([] if flat else ["memory is flat"])


def test_of_much_memory_a_twentieth_more_is_room() -> None:
    large = [sample._replace(memory=400.0) for sample in steady()]
    assert broken(later(large, memory=419.0)) == []


def test_a_drain_that_slows_down_is_told() -> None:
    slow = [
        *steady()[:30],
        *(sample._replace(seconds=30 + (sample.seconds - 30) * 1.3) for sample in steady()[30:]),
    ]
    assert broken(slow) == ["the rate lasts"]


def test_a_log_may_grow_as_far_as_it_is_made_to() -> None:
    assert broken(later(steady(), log=99.0)) == []
    assert broken(later(steady(), log=101.0)) == ["the log is bounded"]


def test_records_may_not_take_more_than_their_versions() -> None:
    assert broken(steady(), ROOM._replace(end=331.0)) == ["records take what they need"]


def test_room_that_was_freed_must_be_used_again() -> None:
    assert broken(steady(), ROOM._replace(encore=11.5)) == ["room is used again"]


@pytest.mark.parametrize(("encore", "holds"), [(13.5, True), (14.0, False)])
def test_pages_that_are_split_where_rows_grow_may_take_more_than_a_copy(
    encore: float, *, holds: bool
) -> None:
    verdicts = judge(quarters(steady(), JOBS), ROOM._replace(encore=encore), BOUNDS._replace(splits=1.25))
    assert verdicts[-1].holds is holds


def test_too_few_looks_are_refused() -> None:
    with pytest.raises(TooShort, match="3 looks at 400 jobs"):
        quarters(steady()[::15], JOBS)


def test_a_tally_counts_what_another_has_marked(tmp_path: Path) -> None:
    ours, theirs = Tally(tmp_path / "tally", 3), Tally(tmp_path / "tally", 3)
    for number in (2, 0, 1):
        theirs.mark(number)
    assert ours.done == 3
    ours.check()


@pytest.mark.parametrize(("marks", "message"), [((0,), "1 did not run"), ((0, 1, 1), "1 ran more than once")])
def test_a_job_that_is_missing_or_ran_twice_is_told(
    tmp_path: Path, marks: tuple[int, ...], message: str
) -> None:
    tally = Tally(tmp_path / "tally", 2)
    for number in marks:
        tally.mark(number)
    with pytest.raises(WrongRun, match=message):
        tally.check()
