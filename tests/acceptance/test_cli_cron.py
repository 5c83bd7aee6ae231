"""`duetime cron`, which needs no database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.acceptance.kit import duetime, from_json


def test_an_expression_is_said_in_words_and_its_next_ten_times_are_listed() -> None:
    answer = duetime("cron", "*/5 9-17 * * MON-FRI", "--tz", "Europe/Riga", "--after", "2030-01-04T15:50:00Z")
    words, empty, head, *rows = answer.stdout.splitlines()
    assert words == "every 5 minutes from 09:00 to 17:59 on weekdays, Europe/Riga"
    assert empty == ""
    assert head.split() == ["LOCAL", "UTC", "NOTE"]
    assert len(rows) == 10
    assert rows[0] == "Fri 2030-01-04 17:55:00+02:00  2030-01-04 15:55:00"
    assert rows[1] == "Mon 2030-01-07 09:00:00+02:00  2030-01-07 07:00:00"


def test_a_change_of_the_clock_is_noted() -> None:
    asked = ("30 2 * * *", "--tz", "Europe/Berlin", "--after", "2026-03-28T12:00:00Z", "--count", "1")
    assert (
        "02:30 does not exist on this day (clocks go forward); runs at 03:00"
        in duetime("cron", *asked).stdout
    )
    assert from_json("cron", *asked) == {
        "expression": "30 2 * * *",
        "tz": "Europe/Berlin",
        "text": "at 02:30 every day, Europe/Berlin",
        "upcoming": [
            {
                "at": "2026-03-29T01:00:00+00:00",
                "local": "2026-03-29T03:00:00+02:00",
                "due_at": "2026-03-29T01:00:00+00:00",
                "note": "02:30 does not exist on this day (clocks go forward); runs at 03:00",
            }
        ],
    }


def test_times_are_listed_from_now_on() -> None:
    before = datetime.now(UTC)
    (one,) = from_json("cron", "* * * * *", "--count", "1")["upcoming"]
    assert timedelta(0) < datetime.fromisoformat(one["at"]) - before <= timedelta(minutes=2)


def test_the_zone_in_front_of_an_expression_counts() -> None:
    assert from_json("cron", "TZ=Asia/Tokyo 0 9 * * *")["tz"] == "Asia/Tokyo"


def test_hashed_fields_are_drawn_from_the_name() -> None:
    asked = ("cron", "H H * * *", "--after", "2030-01-01T00:00:00Z", "--count", "1")
    nameless, named = duetime(*asked).stdout, duetime(*asked, "--name", "nightly").stdout
    assert nameless.splitlines() == [
        '"H H * * *" with H drawn from the schedule\'s name, UTC',
        "give the name with --name to see its times",
    ]
    assert from_json(*asked)["upcoming"] == []
    assert "--name" not in named
    assert named.startswith("at 08:03 every day")


def test_an_interval_is_listed_too() -> None:
    found = from_json("cron", "@every 500ms", "--after", "2030-01-01T00:00:00Z", "--count", "2")
    assert found["text"] == "every 500 milliseconds"
    assert [one["at"] for one in found["upcoming"]] == [
        "2030-01-01T00:00:00.500000+00:00",
        "2030-01-01T00:00:01+00:00",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["0 25 * * *"], "   0 25 * * *\n     ^^\nexpected 0-23"),
        (["0 0 30 2 *"], "   0 0 30 2 *\n       ^^\nexpected a day that comes in month"),
        (["0 3 * * *", "--tz", "Europe/Rigga"], "did you mean 'Europe/Riga'?"),
        (["0 3 * * *", "--after", "tomorrow"], "is not a point in time"),
        (["0 3 * * *", "--after", "0001-01-01T00:00:00Z"], "must lie between 1970 and 9000"),
        (["0 3 * * *", "--count", "0"], "--count"),
        (["0 3 * * *", "--count", "100000000"], "--count"),
    ],
)
def test_what_is_wrong_is_shown_with_exit_code_2(arguments: list[str], said: str) -> None:
    answer = duetime("cron", *arguments)
    assert answer.exit_code == 2
    assert answer.stdout == ""
    assert said in answer.stderr


def test_no_database_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DUETIME_URL", "nonsense://nowhere")
    assert duetime("cron", "@daily").exit_code == 0
    assert list(tmp_path.iterdir()) == []
