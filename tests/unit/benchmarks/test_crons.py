from __future__ import annotations

from benchmarks.peers.systems import base
from benchmarks.peers.systems.base import Plan


def test_schedules_in_phase_share_the_seconds_of_the_first() -> None:
    plan = Plan(count=2, period=5.0, first=1_000_000_000.0, step=0.0)
    assert base.cron_starts(plan) == [1_000_000_000.0, 1_000_000_000.0]
    assert base.cron_seconds(plan) == ["0,5,10,15,20,25,30,35,40,45,50,55"] * 2


def test_spread_schedules_begin_at_full_seconds_and_come_each_period() -> None:
    plan = Plan(count=4, period=4.0, first=1_000_000_000.0, step=0.5)
    assert [start - plan.first for start in base.cron_starts(plan)] == [0.0, 0.0, 1.0, 1.0]
    for start, seconds in zip(base.cron_starts(plan), base.cron_seconds(plan), strict=True):
        assert all(int(second) % 4 == start % 4 for second in seconds.split(","))
