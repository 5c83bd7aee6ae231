"""Schedules move between databases through files, whole or not at all."""

from __future__ import annotations

import asyncio
import builtins
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from duetime import Scheduler, calendars, cron, every
from duetime.errors import InvalidImport, InvalidOption, MissingDriver, ScheduleNotFound
from duetime.model.schedule.record import ScheduleUpdate

YEAR = datetime(2030, 1, 1, tzinfo=UTC)


@asynccontextmanager
async def shop(url: str, *, namespace: str = "duetime") -> AsyncGenerator[Scheduler]:
    """An application with some tasks, open on a database."""
    scheduler = Scheduler(url, namespace=namespace)

    @scheduler.task(name="tidy")
    async def tidy(days: int = 1) -> None: ...

    @scheduler.task(name="mail", queue="post", limit=1, tags=["out"])
    async def mail(to: str, *more: str) -> None: ...

    @scheduler.task(name="alarm")
    async def alarm(ended: Any) -> None: ...

    async with scheduler:
        yield scheduler


async def fill(scheduler: Scheduler) -> None:
    put, tasks = scheduler.schedules.put, scheduler.tasks
    assert set(tasks) == {"tidy", "mail", "alarm"}
    await put("a", cron("0 3 * * *", tz="Europe/Riga"), "tidy", kwargs={"days": 7}, tags=["night"])
    await put("b", every("90s", start=YEAR), "mail", args=("ann", "bob"), overlap="allow", retries=2)
    await put("c", cron("H H * * *"), "tidy", misfire="all", misfire_limit=7, pause_after=3, timeout="90s")
    await scheduler.schedules.pause("c", reason="moving house", until=YEAR, by="ann")
    rule = (cron("0 3 * * *", tz="Asia/Tokyo") | every("7h", start=YEAR)) - calendars.days_off(
        tz="Asia/Tokyo"
    )
    await put("d", rule.between(end=YEAR.replace(year=2040)).jitter("30s").at_most(9), "tidy", expires="1h")
    await change(scheduler, "d", made=4)


async def change(scheduler: Scheduler, name: str, **fields: Any) -> None:
    (row,) = await scheduler.store.get_schedules([name])
    assert await scheduler.store.write_schedules([ScheduleUpdate(before=row, after=replace(row, **fields))])


async def exported(scheduler: Scheduler, style: str = "json") -> str:
    return (await scheduler.schedules.export(format=style)).text


@pytest.mark.parametrize("style", ["json", "yaml"])
async def test_what_is_exported_imported_elsewhere_and_exported_again_is_the_same(
    store_url: str, style: str
) -> None:
    async with shop(store_url) as here, shop(store_url, namespace="elsewhere") as there:
        await fill(here)
        text = await exported(here, style)
        done = await there.schedules.import_(text, format=style)
        assert done.schedules == dict.fromkeys("abcd", "created")
        assert await exported(there, style) == text
        again = await there.schedules.import_(text, format=style)
        assert set(again.schedules.values()) == {"unchanged"}
        assert [entry.verb for entry in await there.store.entries("a", limit=9)] == ["import"]
        paused = await there.schedules.get("c")
        assert (paused.paused_reason, paused.paused_by, paused.paused_until) == ("moving house", "ann", YEAR)
        assert (await there.schedules.get("d")).made == 4


async def test_tasks_that_nobody_knows_here_need_to_be_taken_unchecked(store_url: str) -> None:
    async with shop(store_url) as here, Scheduler(store_url, namespace="elsewhere") as there:
        await fill(here)
        text = await exported(here)
        with pytest.raises(InvalidImport, match="there is no task 'tidy' here"):
            await there.schedules.import_(text)
        assert await there.schedules.list() == []
        await there.schedules.import_(text, check=False)
        assert await exported(there) == text


async def test_nothing_is_stored_when_anything_is_refused_and_every_problem_is_told(store_url: str) -> None:
    document = {
        "schedules": [
            {"name": "good", "task": "tidy", "cron": "0 3 * * *"},
            {"name": "late", "task": "tidy", "cron": "0 25 * * *"},
            {"name": "typo", "task": "tidi", "cron": "0 3 * * *"},
            {"name": "days", "task": "tidy", "cron": "0 3 * * *", "arguments": {"days": "many"}},
            {"name": "good", "task": "tidy", "cron": "0 4 * * *"},
            7,
            {"name": "often", "task": "tidy", "every": "10ms"},
            {"name": "past", "task": "tidy", "at": "2001-01-01T00:00:00Z"},
        ]
    }
    async with shop(store_url) as scheduler:
        with pytest.raises(InvalidImport) as caught:
            await scheduler.schedules.import_(json.dumps(document), source="shop.json")
        assert await scheduler.schedules.list() == []
    places = [problem.partition(": ")[2].partition(":")[0] for problem in caught.value.problems]
    assert places == ["late", "typo", "days", "good", "schedule 6", "often", "past"]
    late, typo, days, *_, often, past = caught.value.problems
    assert late.startswith("shop.json: late: bad hour '25'")
    assert "     ^^" in late
    assert "did you mean tidy?" in typo
    assert "days" in days
    assert "closer than 1 second" in often
    assert "never comes after" in past


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "this is no JSON"),
        ("[]", "a list of 'schedules'"),
        ('{"schedules": {}}', "a list of 'schedules'"),
        ('{"duetime": 9, "schedules": []}', "this code reads 1"),
    ],
)
async def test_a_file_of_another_kind_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    async with shop(f"sqlite:///{tmp_path}/shop.db") as scheduler:
        with pytest.raises(InvalidImport, match=problem):
            await scheduler.schedules.import_(text)
        with pytest.raises(InvalidOption, match="format must be one of"):
            await scheduler.schedules.import_(text, format="toml")


BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x]"]
    + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]" for n in range(1, 8)]
    + ["schedules: *a7"]
)


@pytest.mark.covers("hostile-schedule-file")
@pytest.mark.parametrize(
    ("style", "text", "problem"),
    [
        ("yaml", BOMB, r"line 2: \*a0 stands for another value; write the value itself"),
        ("yaml", "schedules:\n- &one {name: a}\n- *one", r"line 3: \*one stands for"),
        ("yaml", "schedules:\n- " + "[" * 100_000, "line 2: values are nested more than 110 deep"),
        ("yaml", "schedules: [" + "a," * 500_000 + "]", "line 1: there are more than 500,000 values; split"),
        ("yaml", "schedules: [", r"(?s)this is no YAML: .*line 2"),
        ("json", '{"schedules": ' + "[" * 100_000, "nested more than 110 deep"),
        ("json", '{"schedules": [' + '{"a":' * 200 + "1" + "}" * 200 + "]}", "nested more than 110 deep"),
        ("json", " " * 10_000_001, "more than 10,000,000 characters; split it"),
        ("yaml", " " * 10_000_001, "more than 10,000,000 characters; split it"),
        ("crontab", "#" * 10_000_001, "more than 10,000,000 characters; split it"),
    ],
)
async def test_a_file_that_would_take_more_than_it_says_is_refused_before_it_is_built(
    tmp_path: Path, style: str, text: str, problem: str
) -> None:
    async with shop(f"sqlite:///{tmp_path}/shop.db") as scheduler:
        with pytest.raises(InvalidImport, match=problem):
            await scheduler.schedules.import_(text, format=style, check=False)
        assert await scheduler.schedules.list() == []


@pytest.mark.covers("hostile-crontab")
async def test_json_for_people_has_letters_and_nothing_that_a_terminal_obeys(tmp_path: Path) -> None:
    odd = "Grüße\x1b[2J\x9b2J\x7f\x85\u2028\u202e\U000e0001"
    async with shop(f"sqlite:///{tmp_path}/shop.db") as scheduler:
        await scheduler.schedules.put("a", cron("0 3 * * *"), "mail", args=(odd,))
        text = await exported(scheduler, "json")
        assert "Grüße" in text
        assert text.replace("\n", "").isprintable()
        assert json.loads(text)["schedules"][0]["arguments"] == {"to": odd}


async def test_a_dry_run_tells_the_same_and_stores_nothing(store_url: str) -> None:
    async with shop(store_url) as scheduler:
        await fill(scheduler)
        before = await exported(scheduler)
        document = json.loads(before)
        document["schedules"][0]["cron"] = "0 4 * * *"
        document["schedules"][2]["name"] = "e"
        text = json.dumps(document)
        foreseen = await scheduler.schedules.import_(text, dry_run=True)
        assert foreseen.schedules == {"a": "changed", "b": "unchanged", "e": "created", "d": "unchanged"}
        assert await exported(scheduler) == before
        assert await scheduler.schedules.import_(text) == foreseen


async def test_a_file_changes_what_it_has_and_leaves_the_rest_and_never_ends_a_pause(store_url: str) -> None:
    async with shop(store_url) as scheduler:
        await fill(scheduler)
        hand_written = {"name": "c", "task": "tidy", "cron": "H H * * *", "arguments": {"days": 2}}
        done = await scheduler.schedules.import_(json.dumps({"schedules": [hand_written]}), by="bob")
        assert done.schedules == {"c": "changed"}
        changed = await scheduler.schedules.get("c")
        assert (changed.arguments, changed.pause_after, changed.paused) == ({"days": 2}, None, True)
        assert len(await scheduler.schedules.list()) == 4
        assert (await scheduler.store.entries("c", limit=1))[0].who == "bob"


async def test_an_interval_that_has_no_start_keeps_the_one_it_got(store_url: str) -> None:
    text = json.dumps({"schedules": [{"name": "a", "task": "tidy", "every": "1h"}]})
    async with shop(store_url) as scheduler:
        await scheduler.schedules.import_(text)
        before = (await scheduler.schedules.get("a")).next_at
        assert (await scheduler.schedules.import_(text)).schedules == {"a": "unchanged"}
        assert (await scheduler.schedules.get("a")).next_at == before


async def test_a_crontab_is_read_by_the_signatures_of_its_tasks(store_url: str) -> None:
    crontab = """
MAILTO=ann
CRON_TZ=Europe/Riga
0 3 * * * tidy days=7
@daily mail ["ann", "bob"]
"""
    async with shop(store_url) as scheduler:
        done = await scheduler.schedules.import_(crontab, format="crontab")
        assert done.notes == ("line 2: MAILTO means nothing here and is left out",)
        mail, tidy = await scheduler.schedules.list()
        assert (tidy.arguments, tidy.trigger) == ({"days": 7}, cron("0 3 * * *", tz="Europe/Riga"))
        assert (mail.arguments, mail.queue) == ({"to": "ann", "more": ["bob"]}, "post")
        text = await exported(scheduler, "crontab")
        assert set((await scheduler.schedules.import_(text, format="crontab")).schedules.values()) == {
            "unchanged"
        }


async def test_a_crontab_of_a_system_is_read_without_its_users(tmp_path: Path) -> None:
    system, own = "0 3 * * *\troot\ttidy\tdays=7\n", "0 3 * * * tidy days=7\n"
    async with shop(f"sqlite:///{tmp_path}/shop.db") as scheduler:
        for text, style in ((system, "crontab"), (own, "system-crontab")):
            for check in (True, False):
                with pytest.raises(
                    InvalidImport, match=r"the format is system-crontab|has the format crontab"
                ):
                    await scheduler.schedules.import_(text, format=style, check=check)
        done = await scheduler.schedules.import_(system, format="system-crontab")
        assert done.notes == ("the users mean nothing here, since jobs run as their worker: root",)
        assert [one.arguments for one in await scheduler.schedules.list()] == [{"days": 7}]
        again = await scheduler.schedules.import_(own, format="crontab")
        assert set(again.schedules.values()) == {"unchanged"}
        with pytest.raises(InvalidOption, match="format"):
            await scheduler.schedules.export(format="system-crontab")


async def test_a_list_of_arguments_cannot_be_taken_unchecked(tmp_path: Path) -> None:
    async with Scheduler(f"sqlite:///{tmp_path}/shop.db") as scheduler:
        with pytest.raises(InvalidImport, match="needs the code"):
            await scheduler.schedules.import_('@daily mail ["ann"]', format="crontab", check=False)
        await scheduler.schedules.import_("@daily mail to=ann n=2", format="crontab", check=False)
        (mail,) = await scheduler.schedules.list()
        assert mail.arguments == {"to": "ann", "n": 2}


async def test_a_crontab_names_the_lines_that_are_wrong(tmp_path: Path) -> None:
    async with shop(f"sqlite:///{tmp_path}/shop.db") as scheduler:
        with pytest.raises(InvalidImport) as caught:
            await scheduler.schedules.import_(
                "0 3 * * * tidy\n\n0 25 * * * tidy days=2\n0 4 * * * tidy days=many\n@reboot tidy days=3\n",
                format="crontab",
                source="crontab",
            )
    assert [problem.split(": ")[0] for problem in caught.value.problems] == [
        "crontab:3",
        "crontab:4",
        "crontab:5",
    ]


async def test_some_are_exported_by_name_and_an_unknown_one_is_refused(store_url: str) -> None:
    async with shop(store_url) as scheduler:
        await fill(scheduler)
        export = await scheduler.schedules.export(["a"])
        assert [entry["name"] for entry in json.loads(str(export))["schedules"]] == ["a"]
        assert (export.count, export.notes) == (1, ())
        with pytest.raises(ScheduleNotFound):
            await scheduler.schedules.export(["a", "nobody"])


async def test_what_is_parked_or_over_is_left_out_and_told(store_url: str) -> None:
    async with shop(store_url) as scheduler:
        await fill(scheduler)
        await change(scheduler, "a", next_at=None, parked_at=1)
        await change(scheduler, "b", next_at=None)
        export = await scheduler.schedules.export()
        assert [entry["name"] for entry in json.loads(export.text)["schedules"]] == ["c", "d"]
        assert export.notes == (
            "a is parked, since no code declares it any more; it is left out",
            "b has ended; it is left out",
        )


def test_blocking_callers_can_move_schedules_too(tmp_path: Path) -> None:
    scheduler = Scheduler(f"sqlite:///{tmp_path}/shop.db")
    text = '{"schedules": [{"name": "a", "task": "tidy", "every": "1h"}]}'
    try:
        assert scheduler.sync.schedules.import_(text, check=False).schedules == {"a": "created"}
        assert scheduler.sync.schedules.export().count == 1
    finally:
        scheduler.sync.close()


async def test_without_its_library_yaml_is_refused_with_the_name_of_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without_yaml(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "yaml":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_yaml)
    async with shop(f"sqlite:///{tmp_path}/shop.db") as scheduler:
        with pytest.raises(MissingDriver, match=r"duetime\[yaml\]"):
            await scheduler.schedules.export(format="yaml")
        with pytest.raises(MissingDriver, match=r"duetime\[yaml\]"):
            await scheduler.schedules.import_("schedules: []", format="yaml")


async def test_two_imports_at_once_agree(store_url: str) -> None:
    async with shop(store_url) as here, shop(store_url, namespace="elsewhere") as there:
        await fill(here)
        text = await exported(here)
        await asyncio.gather(*(there.schedules.import_(text) for _ in range(4)))
        assert await exported(there) == text


async def test_a_crontab_leaves_the_policies_of_a_schedule_that_is_there(store_url: str) -> None:
    async with shop(store_url) as scheduler:
        kept: dict[str, Any] = {
            "queue": "slow",
            "overlap": "queue_one",
            "retries": 5,
            "pause_after": 3,
            "tags": ["x"],
        }
        await scheduler.schedules.put("a", cron("0 3 * * *"), "tidy", kwargs={"days": 7}, **kept)
        export = await scheduler.schedules.export(format="crontab")
        assert "queue" in export.notes[0]
        same = await scheduler.schedules.import_(export.text, format="crontab")
        assert same.schedules == {"a": "unchanged"}
        later = export.text.replace("0 3 * * *", "0 4 * * *").replace("7", "8")
        assert (await scheduler.schedules.import_(later, format="crontab")).schedules == {"a": "changed"}
        record = await scheduler.schedules.get("a")
        assert (record.arguments, record.description) == ({"days": 8}, "at 04:00 every day, UTC")
        assert (record.queue, record.overlap, record.retries) == ("slow", "queue_one", 5)
        assert (record.pause_after, [*record.tags]) == (3, ["x"])


async def test_a_line_that_calls_another_task_has_the_policies_of_that(tmp_path: Path) -> None:
    async with shop(f"sqlite:///{tmp_path / 'one.db'}") as scheduler:
        await scheduler.schedules.put("a", cron("0 3 * * *"), "mail", args=("ann",), retries=5)
        await scheduler.schedules.import_("# name: a\n0 3 * * * tidy\n", format="crontab")
        record = await scheduler.schedules.get("a")
        assert (record.task, record.queue, record.retries) == ("tidy", "default", None)


@pytest.mark.parametrize("style", ["json", "yaml", "crontab"])
async def test_the_mark_that_some_editors_write_first_is_no_part_of_a_file(
    tmp_path: Path, style: str
) -> None:
    async with shop(f"sqlite:///{tmp_path / 'one.db'}") as scheduler:
        await scheduler.schedules.put("a", cron("0 3 * * *"), "tidy")
        text = await exported(scheduler, style)
        done = await scheduler.schedules.import_("\ufeff" + text, format=style)
        assert done.schedules == {"a": "unchanged"}


@pytest.mark.parametrize(
    ("value", "problem"),
    [(".nan", "cannot be written as JSON"), ("[-.inf]", "cannot be"), ("2030-01-01", "in quotes")],
)
async def test_an_argument_that_would_become_something_else_is_refused(
    tmp_path: Path, value: str, problem: str
) -> None:
    text = f"schedules:\n- name: a\n  task: b\n  cron: '@daily'\n  arguments: {{x: {value}}}\n"
    async with shop(f"sqlite:///{tmp_path / 'one.db'}") as scheduler:
        with pytest.raises(InvalidImport, match=problem):
            await scheduler.schedules.import_(text, format="yaml", check=False)
        assert await scheduler.schedules.list() == []


@pytest.mark.parametrize("arguments", ["[" * 100_000, "days=" + "[" * 100_000])
async def test_arguments_that_are_nested_too_deep_are_a_problem_of_their_line(
    tmp_path: Path, arguments: str
) -> None:
    async with shop(f"sqlite:///{tmp_path / 'one.db'}") as scheduler:
        with pytest.raises(InvalidImport, match="text:1"):
            await scheduler.schedules.import_(f"0 3 * * * tidy {arguments}", format="crontab")


async def test_a_text_is_no_list_of_names(tmp_path: Path) -> None:
    async with shop(f"sqlite:///{tmp_path / 'one.db'}") as scheduler:
        with pytest.raises(InvalidOption, match=r"such as \['nightly'\]"):
            await scheduler.schedules.export("nightly")


@pytest.mark.covers("deep-values")
@pytest.mark.parametrize("check", [True, False], ids=["checked", "unchecked"])
@pytest.mark.parametrize("name", ["arguments", "callbacks"])
async def test_values_that_are_nested_too_deep_are_refused(tmp_path: Path, check: bool, name: str) -> None:
    deep: Any = 1
    for _ in range(101):
        deep = [deep]
    own = {"arguments": {"days": deep}} if name == "arguments" else {"callbacks": {"failure": {"task": deep}}}
    entry = {"name": "s", "task": "tidy", "cron": "0 3 * * *"} | own
    async with shop(f"sqlite:///{tmp_path / 'a.db'}") as scheduler:
        with pytest.raises(InvalidImport, match=r"nested more than 100 deep|expected `int`, got `array`"):
            await scheduler.schedules.import_(json.dumps({"schedules": [entry]}), check=check)
        assert await scheduler.schedules.list() == []
