from __future__ import annotations

from datetime import timedelta

from duetime import Scheduler, every
from duetime.testing.clock import FakeClock
from tests.integration.schedules.kit import NOON


def test_blocking_callers_have_the_same_verbs(clock: FakeClock, sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url, clock=clock)

    @scheduler.task(name="report")
    def report(kind: str) -> None: ...

    schedules = scheduler.sync.schedules
    try:
        assert schedules.put("often", every("1h"), report, args=["x"], by="alice") == "created"
        assert schedules.edit("often", priority=3) == "changed"
        schedules.pause("often", until=NOON + timedelta(days=1))
        schedules.resume("often")
        assert [one.at for one in schedules.preview("often", 1)] == [NOON + timedelta(hours=1)]
        assert schedules.skip("often") == NOON + timedelta(hours=1)
        assert schedules.trigger("often", args=["y"]).record().arguments == {"kind": "y"}
        assert schedules.backfill("often", NOON - timedelta(days=1), NOON).occurrences == 0
        assert schedules.get("often").next_at == NOON + timedelta(hours=2)
        schedules.delete("often")
        verbs = [change.verb for change in schedules.history("often")]
    finally:
        scheduler.sync.close()
    assert verbs == ["delete", "trigger", "skip", "resume", "pause", "edit", "put"]
