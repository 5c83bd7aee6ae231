from __future__ import annotations

import pytest

from duetime.model.triggers.cron import cron


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("* * * * * *", "every second"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("@hourly", "at minute 0 of every hour"),
        ("0,30 9-17 * * *", "every 30 minutes of hours 9 to 17"),
        ("*/7 * * * *", "at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 of every hour"),
        ("30 * 9-17 * * *", "at second 30 of every minute of hours 9 to 17"),
        ("30 * * * * *", "at second 30 of every minute"),
        ("* 30 2 * * *", "every second of minute 30 of hour 2"),
        ("*/10 */10 * * * *", "every 10 seconds of minutes 0, 10, 20, 30, 40 and 50 of every hour"),
        ("@daily", "at 00:00 every day"),
        ("15 30 9 * * *", "at 09:30:15 every day"),
        ("0 9,17 * * *", "at 09:00 and 17:00 every day"),
        ("0 9 * * MON-FRI", "at 09:00 on Monday to Friday"),
        ("0 9 * * SAT,SUN", "at 09:00 on Sunday and Saturday"),
        ("0 9 1,15 * *", "at 09:00 on days 1 and 15 of the month"),
        ("0 9 13 * FRI", "at 09:00 on day 13 of the month or Friday"),
        ("0 9 13 * */5", "at 09:00 on day 13 of the month if also on Sunday and Friday"),
        ("0 9 L * *", "at 09:00 on the last day of the month"),
        ("0 9 LW * *", "at 09:00 on the last Monday-to-Friday day of the month"),
        ("0 9 15W * *", "at 09:00 on the Monday-to-Friday day nearest to day 15 of the month"),
        ("0 9 * * FRI#2", "at 09:00 on the second Friday of the month"),
        ("0 9 * * FRIL", "at 09:00 on the last Friday of the month"),
        ("0 9 * JUN-AUG *", "at 09:00 in June to August"),
        ("@yearly", "at 00:00 on day 1 of the month in January"),
        ("*/5 * * 2 *", "every 5 minutes in February"),
    ],
)
def test_a_rule_is_said_in_english_with_its_zone(expression: str, text: str) -> None:
    assert cron(expression, tz="Europe/Riga").describe() == f"{text}, Europe/Riga"
