from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from duetime.model.schedule.forecast import heat_map

RIGA = ZoneInfo("Europe/Riga")
MONDAY = datetime(2026, 11, 16, tzinfo=RIGA)


def test_a_day_is_a_line_in_which_an_hour_has_its_place_and_the_sum_comes_last() -> None:
    hours = {MONDAY + timedelta(hours=hour): 0 for hour in range(20, 28)}
    hours[MONDAY + timedelta(hours=22)] = 1
    hours[MONDAY + timedelta(hours=25)] = 1_400
    head, monday, tuesday, legend = heat_map(hours.items())
    assert head.split() == ["00", "03", "06", "09", "12", "15", "18", "21"]
    assert monday == f"Mon 2026-11-16  {' ' * 40}....::..  1"
    assert tuesday == f"Tue 2026-11-17  ..@@....{' ' * 40}  1,400"
    assert head.index("21") == monday.index("::") - 2
    assert legend.strip() == "jobs an hour: . none, then : - = + * # @ in steps of 200"


def test_few_jobs_have_a_shade_for_each_number() -> None:
    *_, legend = heat_map([(MONDAY, 2)])
    assert legend.strip() == "jobs an hour: . none, then : - = + * # @ in steps of 1"


def test_an_hour_that_comes_twice_is_one_place() -> None:
    early = datetime(2026, 10, 25, 3, tzinfo=RIGA)
    _, day, _ = heat_map([(early, 3), (early.replace(fold=1), 4)])
    assert day.rstrip() == "Sun 2026-10-25        @@" + " " * 42 + "7"
