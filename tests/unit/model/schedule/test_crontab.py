from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from duetime.errors import InvalidName, InvalidValue
from duetime.model.schedule import files as module
from duetime.model.schedule.files import read_crontab, read_schedule, write_crontab
from duetime.model.schedule.record import StoredSchedule
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.cron import cron
from duetime.model.triggers.every import Every, every

NOON = datetime(2030, 1, 31, 12, tzinfo=UTC)


def stored(name: str, trigger: Trigger, payload: str = "{}", **fields: Any) -> StoredSchedule:
    spec = json.dumps(trigger.seeded(name).to_spec())
    row = StoredSchedule(
        name=name, task="shop.tidy", payload=payload, trigger=spec, declared="", fired_through=0, next_at=None
    )
    return replace(row, **fields)


def entries(text: str) -> list[Mapping[str, Any]]:
    found = list(read_crontab(text).found.values())
    assert not any(isinstance(entry, InvalidValue) for entry in found), found
    return [entry for entry in found if not isinstance(entry, InvalidValue)]


def problems(text: str) -> list[tuple[int, str]]:
    found = read_crontab(text).found.items()
    return [(int(line), str(entry)) for line, entry in found if isinstance(entry, InvalidValue)]


def test_a_line_is_a_time_a_task_and_its_arguments() -> None:
    (entry,) = entries("# tidy up\n\n  0 3 * * MON-FRI   shop.tidy   days=7 text='two words'\n")
    assert entry["cron"] == "0 3 * * MON-FRI"
    assert (entry["task"], entry["tz"]) == ("shop.tidy", "UTC")
    assert entry["arguments"] == ("days=7", "text=two words")


@pytest.mark.parametrize("gap", [" ", "\t", " \t  "])
def test_words_may_lie_any_blanks_apart(gap: str) -> None:
    for line, users in (
        ("CRON_TZ=Europe/Riga 0 3 * * MON-FRI shop.tidy days=7 text='a  b'", False),
        ("CRON_TZ=Europe/Riga 0 3 * * MON-FRI root shop.tidy days=7 text='a  b'", True),
    ):
        text = line.replace(" ", gap).replace(f"a{gap}{gap}b", "a  b")
        ((_, entry),) = read_crontab(text, has_users=users).found.items()
        assert not isinstance(entry, InvalidValue)
        assert (entry["cron"], entry["tz"], entry["task"]) == ("0 3 * * MON-FRI", "Europe/Riga", "shop.tidy")
        assert entry["arguments"] == ("days=7", "text=a  b")
    json_object = f"@daily{gap}shop.tidy{gap}" + '{"days": 7}'
    assert entries(json_object)[0]["arguments"] == {"days": 7}


SYSTEM = """
SHELL=/bin/sh
17 * * * * root shop.tidy
25 6 * * * www-data shop.tidy days=7
0 0 9 * * MON _backup$ other {"n": 1}
@daily root third
"""


def test_the_users_of_a_system_are_told_and_left_out() -> None:
    crontab = read_crontab(SYSTEM, has_users=True)
    assert crontab.notes == [
        "line 2: SHELL means nothing here and is left out",
        "the users mean nothing here, since jobs run as their worker: _backup$, root, www-data",
    ]
    own = "".join(f"{line}\n" for line in SYSTEM.splitlines())
    for user in ("root ", "www-data ", "_backup$ "):
        own = own.replace(user, "")
    assert crontab.found == read_crontab(own).found
    assert [entry["task"] for entry in entries(own)] == ["shop.tidy", "shop.tidy", "other", "third"]


@pytest.mark.parametrize(
    "line", ["17 * * * * root shop.tidy", "@daily mail shop.tidy days=7", '* * * * * * root tidy {"days":7}']
)
def test_a_line_with_a_user_is_not_taken_for_one_without(line: str) -> None:
    ((_, text),) = problems(line)
    assert "is a user, the format is system-crontab" in text


@pytest.mark.parametrize(
    "line",
    [
        "0 3 * * * shop.tidy", "0 3 * * * shop.tidy days=7", "0 3 * * * tidy", "@daily tidy",
        "0 3 * * * tidy days=7", '0 3 * * * tidy {"days":7}', '0 3 * * * tidy ["ann"]',
    ],
)  # fmt: skip
def test_a_line_without_a_user_is_not_taken_for_one_with(line: str) -> None:
    ((_, entry),) = read_crontab(line, has_users=True).found.items()
    assert isinstance(entry, InvalidValue)
    assert "a crontab without users has the format crontab" in str(entry)


@pytest.mark.parametrize(
    ("line", "expression"),
    [
        ("@daily shop.tidy", "@daily"),
        ("@every 15m shop.tidy", "@every 15m"),
        ("*/10 * * * * * shop.tidy", "*/10 * * * * *"),
        ("0 0 9 * * MON-FRI shop.tidy", "0 0 9 * * MON-FRI"),
        ("0 0 9 * * fri#2 shop.tidy", "0 0 9 * * fri#2"),
        ("0 0 9 ? * MON-FRI 2030-2035 shop.tidy a=1", "0 0 9 ? * MON-FRI 2030-2035"),
        ("0 0 9 * * * */2 shop.tidy", "0 0 9 * * * */2"),
        ("0 0 9 * * * 2030", "0 0 9 * * *"),
        ("0 9 * * * shop.tidy a=1", "0 9 * * *"),
        ("0 9 * * * monday a=1", "0 9 * * *"),
    ],
)
def test_the_time_may_be_a_word_or_have_seconds(line: str, expression: str) -> None:
    assert entries(line)[0]["cron"] == expression


def test_a_zone_holds_for_the_lines_below_it_and_one_on_the_line_for_that_alone() -> None:
    text = """
        0 1 * * * a
        CRON_TZ=Europe/Riga
        0 2 * * * b
        TZ = "Asia/Tokyo"
        0 3 * * * c
        CRON_TZ=America/Lima 0 4 * * * d
        0 5 * * * e
    """
    assert [entry["tz"] for entry in entries(text)] == [
        "UTC",
        "Europe/Riga",
        "Asia/Tokyo",
        "America/Lima",
        "Asia/Tokyo",
    ]


def test_other_settings_are_told_and_left_out() -> None:
    crontab = read_crontab('MAILTO="ann and bob"\n0 3 * * * shop.tidy\n')
    assert crontab.notes == ["line 1: MAILTO means nothing here and is left out"]
    assert len(crontab.found) == 1


def test_a_name_is_the_command_so_that_it_stays_when_the_time_or_other_lines_change() -> None:
    before = entries("0 3 * * * shop.tidy\n0 4 * * * shop.tidy days=7\n")
    after = entries("0 4 * * * shop.tidy days=7\n1 1 1 1 * other\n@daily shop.tidy\n")
    names = [entry["name"] for entry in before]
    assert names[0] == "shop.tidy"
    assert names[1].startswith("shop.tidy-")
    assert [entry["name"] for entry in after] == [names[1], "other", names[0]]


def test_a_name_above_a_line_is_its_name_and_no_other_s() -> None:
    text = (
        "# name: early\n# runs first\n0 3 * * * shop.tidy\n0 4 * * * other\n# name: lost\n\n0 5 * * * third\n"
    )
    assert [entry["name"] for entry in entries(text)] == ["early", "other", "third"]


def test_two_lines_of_one_name_are_refused_with_the_way_out() -> None:
    ((number, text),) = problems("0 3 * * * shop.tidy\n0 15 * * * shop.tidy\n")
    assert number == 2
    assert "line 1 is 'shop.tidy' already" in text
    assert "# name: shop.tidy.2" in text


@pytest.mark.parametrize(
    "line", ["0 3 * * *", "@daily", "@every 15m", "hello", "0 3 * * * t 'open", "0 3 * * * t {"]
)
def test_a_line_that_is_none_is_told_with_its_number_and_the_others_are_read(line: str) -> None:
    ((number, _),) = problems(f"0 3 * * * shop.tidy\n{line}\n0 4 * * * other\n")
    assert number == 2


def test_what_is_written_is_read_back() -> None:
    schedules = [
        stored("a", cron("0 3 * * *")),
        stored("b", cron("H 4 * * *", tz="Europe/Riga"), '{"text":"it\'s \\"so\\"","n":[1,null]}'),
        stored("c", cron("0 5 * * *", tz="Europe/Riga")),
    ]
    text, _, notes = write_crontab(schedules)
    assert notes == []
    assert text.count("CRON_TZ=") == 1
    found = entries(text)
    assert [entry["name"] for entry in found] == ["a", "b", "c"]
    assert [json.dumps(read_schedule(entry).trigger.to_spec()) for entry in found] == [
        row.trigger for row in schedules
    ]
    assert found[1]["arguments"] == json.loads(schedules[1].payload)


def test_what_no_line_can_say_is_a_comment_and_told() -> None:
    text, _, notes = write_crontab([stored("a", every("15m")), stored("b", cron("0 3 * * *"), paused_at=1)])
    assert entries(text) == []
    assert "every 15 minutes: shop.tidy" in text
    assert "# paused: 0 3 * * * shop.tidy" in text
    assert [note.partition(" ")[0].rstrip(":") for note in notes] == ["a", "b"]


def test_a_rule_with_a_year_is_read_back_as_it_was() -> None:
    rule = cron("0 0 9 ? * MON 2030-2035")
    (entry,) = entries(write_crontab([stored("a", rule)])[0])
    assert (cron(entry["cron"]), entry["task"]) == (rule, "shop.tidy")


def test_a_weekday_of_six_fields_that_would_be_read_as_the_task_makes_a_comment() -> None:
    text, size, notes = write_crontab(
        [stored("a", cron("0 0 9 * * Monday")), stored("b", cron("0 9 * * Monday"))]
    )
    assert size == 1
    assert [entry["name"] for entry in entries(text)] == ["b"]
    assert notes == ["a: a crontab takes Monday of 0 0 9 * * Monday for the task; it is only a comment"]


def test_a_count_leaves_out_what_is_only_a_comment() -> None:
    schedules = [stored("a", every("15m")), stored("b", cron("0 3 * * *"))]
    assert write_crontab(schedules)[1] == 1


def test_policies_that_no_line_can_say_are_told() -> None:
    text, _, notes = write_crontab([stored("a", cron("0 3 * * *"), queue="slow", retries=5, pause_after=3)])
    assert len(entries(text)) == 1
    assert notes == ["a: a crontab says nothing of its queue, retries, pause_after"]


@pytest.mark.parametrize("name", ["bad name!", "", "a # b"])
def test_a_name_above_a_line_that_is_none_is_refused_and_not_replaced_by_another(name: str) -> None:
    (entry,) = entries(f"# name: {name}\n0 3 * * * shop.tidy\n")
    with pytest.raises(InvalidName, match="schedule name"):
        read_schedule(entry)


def test_a_name_that_no_schedule_stands_below_is_told() -> None:
    crontab = read_crontab("# name: lost\n\n# name: other\n# name: kept\n# why\n0 3 * * * a\n# name: end")
    assert crontab.notes == [
        f"no schedule stands below the name '{name}'" for name in ("lost", "other", "end")
    ]


def test_arguments_that_are_nested_too_deep_are_refused_in_short() -> None:
    ((_, text),) = problems('0 3 * * * t {"a":' + "[" * 100_000)
    assert "cannot be read" in text
    assert len(text) < 300


@pytest.mark.parametrize(
    "trigger",
    [cron("0 3 * * *").between(end=NOON), cron("0 3 * * *").at_most(3), cron("0 3 * * *").jitter("5m")],
    ids=["end", "times", "jitter"],
)
def test_a_rule_with_bounds_is_no_line_since_it_would_lose_them(trigger: Trigger) -> None:
    text, size, notes = write_crontab([stored("a", trigger)])
    assert (entries(text), size) == ([], 0)
    assert "it is only a comment" in notes[0]


HOSTILE = ["\n", "\r", "\x85", "\u2028", "\u2029", "\x0b", "\x1b[2J", "\x9b2J", "\x7f", "\u202e"]
EVIL = "* * * * * evil"


@pytest.mark.covers("hostile-crontab")
@pytest.mark.parametrize("odd", [*HOSTILE, "%"])
def test_arguments_stay_on_their_line_and_are_read_back_as_they_were(odd: str) -> None:
    payload = {f"key{odd}{EVIL}": f"value{odd}{EVIL}"}
    text = write_crontab([stored("a", cron("0 3 * * *"), json.dumps(payload))])[0]
    assert text.replace("\n", "").isprintable()
    # Cron reads what follows a percent sign as another line.
    assert "%" not in text
    assert [line for line in text.splitlines() if line and not line.startswith("#")] == [text.split("\n")[3]]
    (entry,) = entries(text)
    assert entry["arguments"] == payload


@pytest.mark.covers("hostile-crontab")
@pytest.mark.parametrize("odd", [*HOSTILE, "%", " "])
@pytest.mark.parametrize("field", ["name", "task"])
def test_a_name_that_only_an_intruder_can_have_stored_is_a_comment_of_one_line(field: str, odd: str) -> None:
    fields: dict[str, Any] = {field: f"a{odd}{EVIL}"}
    bad = replace(stored("a", cron("0 3 * * *")), **fields)
    text, size, notes = write_crontab([bad, stored("b", cron("0 4 * * *"))])
    assert text.replace("\n", "").isprintable()
    assert size == 1
    assert [entry["name"] for entry in entries(text)] == ["b"]
    assert [line for line in text.splitlines() if line and not line.startswith("#")] == [
        "0 4 * * * shop.tidy"
    ]
    assert "is not allowed" in notes[0]
    assert notes[0].endswith("it is only a comment")


@pytest.mark.covers("hostile-crontab")
@pytest.mark.parametrize("odd", HOSTILE)
def test_a_rule_that_is_only_a_comment_is_one_line(odd: str) -> None:
    class Odd(Every):
        def describe(self) -> str:
            return f"every now and then{odd}{EVIL}"

    rule = Odd(interval=60_000_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "trigger_from_text", lambda _spec: rule)
        text = write_crontab([stored("a", every("15m"))])[0]
    assert text.replace("\n", "").isprintable()
    assert entries(text) == []


@pytest.mark.covers("hostile-crontab")
@pytest.mark.parametrize("odd", ["\r", "\x85", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c"])
def test_what_is_no_line_of_its_own_to_cron_is_none_here(odd: str) -> None:
    assert entries(f"# tidy{odd}{EVIL}\n0 3 * * * shop.tidy\r\n")[0]["task"] == "shop.tidy"
    assert len(entries(f"# tidy{odd}{EVIL}\n")) == 0
