from __future__ import annotations

from duetime.model.job import JobId
from duetime.model.time import MILLISECOND
from duetime.runtime.running.run import Run
from duetime.runtime.settling.journal import JournalWriter
from duetime.runtime.settling.settler import StartMarker
from tests.unit.runtime.kit import SettlingStore, StillTime, claim, context_of


class Marking:
    """A marker and the runs that it watches."""

    def __init__(self) -> None:
        self.store, self.time = SettlingStore(), StillTime()
        self.runs: dict[JobId, Run] = {}
        context = context_of(self.store, time=self.time)
        self.marker = StartMarker(context, self.runs, JournalWriter(context))

    def start(self, job_id: str, started_at: int, *, unmarked: bool = True) -> None:
        self.runs[job_id] = run = Run(claim(job_id), started_at)
        run.unmarked = unmarked

    async def round(self, now: int) -> float | None:
        self.time.instant = now
        return await self.marker.round()


async def test_a_run_that_lasts_is_marked_once_and_a_short_one_never() -> None:
    marking = Marking()
    marking.start("short", 5)
    marking.start("long", 7)
    marking.start("longer", 6)
    marking.start("marked when it was claimed", 6, unmarked=False)
    assert await marking.round(8) == 0.1
    assert marking.store.marked == [], "a run is given a little time to end first"
    del marking.runs["short"]
    assert await marking.round(101 * MILLISECOND) is None
    assert marking.store.marked == [(["long", "longer"], 6)]
    await marking.round(201 * MILLISECOND)
    assert len(marking.store.marked) == 1, "once is enough"


async def test_the_marker_sleeps_while_nothing_is_left_to_mark() -> None:
    marking = Marking()
    assert marking.marker.asleep
    marking.start("first", 5)
    assert await marking.round(5)
    assert not marking.marker.asleep, "it looks again by itself"
    marking.runs.clear()
    assert await marking.round(6) is None
    assert marking.marker.asleep


async def test_a_run_that_begins_while_others_are_marked_is_not_forgotten() -> None:
    marking = Marking()
    marking.start("long", 5)

    async def mark(*_: object) -> None:
        marking.start("next", 101 * MILLISECOND)

    marking.store.mark_started = mark  # type: ignore[assignment]
    assert await marking.round(101 * MILLISECOND)
    assert not marking.marker.asleep
