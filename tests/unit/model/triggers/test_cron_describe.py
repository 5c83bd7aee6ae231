from __future__ import annotations

import pytest

from duetime.model.triggers.cron import cron


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("*/5 0-23 * * *", "every 5 minutes"),
        ("*/15 9-17 * * *", "every 15 minutes from 09:00 to 17:59"),
        ("0,30 9-17 * * *", "every 30 minutes from 09:00 to 17:59"),
        ("*/15 8-11,14-17 * * *", "every 15 minutes from 08:00 to 11:59 and from 14:00 to 17:59"),
        ("*/10 22-2 * * *", "every 10 minutes from 22:00 to 02:59"),
        ("*/30 9 * * *", "every 30 minutes from 09:00 to 09:59"),
        ("* 9 * * *", "every minute from 09:00 to 09:59"),
        ("*/10 */2 * * *", "every 10 minutes of every 2nd hour from 0 to 22"),
        ("*/20 1,4,9 * * *", "every 20 minutes of hours 1, 4 and 9"),
        ("@hourly", "every hour"),
        ("30 * * * *", "every hour at minute 30"),
        ("5,35 * * * *", "every hour at minutes 5 and 35"),
        ("*/7 * * * *", "every hour at every 7th minute from 0 to 56"),
        ("0 */2 * * *", "every 2 hours"),
        ("0 */12 * * *", "every 12 hours"),
        ("15 */2 * * *", "every 2 hours at minute 15"),
        ("0 9-17 * * MON-FRI", "hourly from 09:00 to 17:00 on weekdays"),
        ("30 22-2 * * *", "hourly from 22:30 to 02:30"),
        ("0 8-12,14-18 * * *", "hourly from 08:00 to 12:00 and from 14:00 to 18:00"),
        ("0 8-18/2 * * *", "every 2 hours from 08:00 to 18:00"),
        ("5,35 9-17 * * *", "at minutes 5 and 35 of hours 9 to 17"),
        ("0 1,2,4,8,16 * * *", "at minute 0 of hours 1, 2, 4, 8 and 16"),
        ("* * * * * *", "every second"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("*/10 * 9-17 * * *", "every 10 seconds from 09:00 to 17:59"),
        ("30 * 9-17 * * *", "at second 30 of every minute from 09:00 to 17:59"),
        ("30 * * * * *", "at second 30 of every minute"),
        ("* 30 2 * * *", "every second of minute 30 of hour 2"),
        ("*/10 */10 * * * *", "every 10 seconds of every 10th minute from 0 to 50 of every hour"),
        ("@daily", "at 00:00 every day"),
        ("15 30 9 * * *", "at 09:30:15 every day"),
        ("0 9,17 * * *", "at 09:00 and 17:00 every day"),
        ("0 9 * * MON-FRI", "at 09:00 on weekdays"),
        ("0 3 * * SAT,SUN", "at 03:00 on weekends"),
        ("0 9 * * MON-THU", "at 09:00 on Monday to Thursday"),
        ("0 9 * * FRI-MON", "at 09:00 on Friday to Monday"),
        ("0 9 * * SUN,WED", "at 09:00 on Wednesday and Sunday"),
        ("0 9 13 * *", "at 09:00 on the 13th of the month"),
        ("0 9 1,15 * *", "at 09:00 on the 1st and 15th of the month"),
        ("0 9 1-7,22,23,31 * *", "at 09:00 on the 1st to 7th, 22nd, 23rd and 31st of the month"),
        ("0 9 */2 * *", "at 09:00 on every 2nd day from the 1st to the 31st of the month"),
        ("0 9 13 * FRI", "at 09:00 on the 13th of the month or on Friday"),
        ("0 9 13 6 FRI", "at 09:00 on the 13th of June or on Friday in June"),
        ("0 9 13 * */5", "at 09:00 on the 13th of the month if also on Friday and Sunday"),
        ("0 9 L * *", "at 09:00 on the last day of the month"),
        ("0 9 L-3 * *", "at 09:00 on the 4th-to-last day of the month"),
        ("0 9 1,L * *", "at 09:00 on the 1st and the last day of the month"),
        ("0 9 LW * *", "at 09:00 on the last weekday of the month"),
        ("0 9 L-3W * *", "at 09:00 on the weekday nearest to the 4th-to-last day of the month"),
        ("0 9 15W * *", "at 09:00 on the weekday nearest to the 15th of the month"),
        ("0 9 * * FRI#2", "at 09:00 on the second Friday of the month"),
        ("0 9 * JUN FRIL", "at 09:00 on the last Friday of June"),
        ("0 9 * * SUNL", "at 09:00 on the last Sunday of the month"),
        ("0 9 * JUN-AUG *", "at 09:00 in June to August"),
        ("0 9 * NOV-FEB MON-FRI", "at 09:00 on weekdays in November to February"),
        ("0 9 1,15 1,7 *", "at 09:00 on the 1st and 15th of January and July"),
        ("@yearly", "on 1 January at 00:00"),
        ("0 0 1 1,7 *", "on 1 January and 1 July at 00:00"),
        ("0 0 31 1,2 *", "on 31 January at 00:00"),
        ("*/5 * 1 1 *", "every 5 minutes on 1 January"),
        ("0 0 1 1-6 *", "at 00:00 on the 1st of January to June"),
        ("*/5 * * 2 *", "every 5 minutes in February"),
        ("0 0 9 1 1 * 2030", "on 1 January 2030 at 09:00"),
        ("0 0 9 1 1 * 2030,2032", "on 1 January at 09:00 in 2030 and 2032"),
        ("0 0 9 * * MON-FRI 2030-2035", "at 09:00 on weekdays in 2030 to 2035"),
        ("0 0 9 * 5 * */2", "at 09:00 in May in every 2nd year from 1970 to 2198"),
    ],
)
def test_a_rule_is_said_in_the_words_people_use_with_its_zone(expression: str, text: str) -> None:
    assert cron(expression, tz="Europe/Riga").describe() == f"{text}, Europe/Riga"


@pytest.mark.parametrize(
    ("follows", "fixed", "text"),
    [
        ("0 * * * *", "0 0-23 * * *", "hourly from 00:00 to 23:00"),
        ("30 * * * *", "30 0-23 * * *", "hourly from 00:30 to 23:30"),
        ("*/15 * * * *", "0,15,30,45 0-23 * * *", "every 15 minutes from 00:00 to 23:59"),
        ("5,35 * * * *", "5,35 0-23 * * *", "at minutes 5 and 35 of hours 0 to 23"),
        ("0 */2 * * *", "0 0-22/2 * * *", "every 2 hours from 00:00 to 22:00"),
        ("0 */12 * * *", "0 0,12 * * *", "at 00:00 and 12:00 every day"),
        ("*/30 9 * * *", "0,30 9 * * *", "at 09:00 and 09:30 every day"),
    ],
)
def test_a_rule_that_follows_the_clock_is_told_apart_from_the_same_times_that_do_not(
    follows: str, fixed: str, text: str
) -> None:
    assert cron(fixed).describe() == f"{text}, UTC"
    assert cron(follows).describe() != cron(fixed).describe()


def test_what_is_drawn_from_a_name_is_stated_when_there_is_one() -> None:
    rule = cron("H 3 * * *")
    assert rule.describe() == '"H 3 * * *" with H drawn from the schedule\'s name, UTC'
    assert rule.seeded("nightly").describe() == "at 03:03 every day, UTC"
