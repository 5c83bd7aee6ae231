"""Tasks that workers have announced, for clients without their code."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from duetime import Limit, Scheduler, State, cron
from duetime.errors import InvalidArguments, InvalidOption, PayloadTooLarge, UnknownTask
from duetime.model.stored.announced import TaskAnnouncement
from duetime.runtime.upkeep.announcing import announcement
from duetime.testing import FakeClock, drain
from duetime.testing.conformance.kit import hire


@pytest.fixture
async def app(sqlite_url: str) -> AsyncIterator[Scheduler]:
    """The scheduler that has the code, as far as it was announced."""
    app = Scheduler(sqlite_url, clock=FakeClock())

    @app.task(
        name="mail.send", queue="mail", priority=2, retries=3, timeout="1m", tags=["mail"], on_crash="fail"
    )
    def send(
        user_id: int, subject: str = "hello", *, ratio: float = 0.5, copies: list[str] | None = None
    ) -> str:
        """Send a message."""
        return f"{subject} {user_id} {ratio} {copies}"

    @app.task(name="limited", limit=Limit(1, by="customer"))
    def limited(customer: str, size: float = 1) -> None: ...

    @app.task(name="odd", limit=Limit(1, by="size"))
    def odd(size: float) -> None: ...

    async with app:
        await app.store.announce([announcement(handler) for handler in app.tasks.values()])
        yield app


@pytest.fixture
async def client(app: Scheduler) -> AsyncIterator[Scheduler]:
    """Another one, without any tasks."""
    async with Scheduler(app.url, clock=app.clock) as opened:
        yield opened


async def test_a_task_is_shown_as_it_was_announced(client: Scheduler) -> None:
    task = await client.announced.get("mail.send")
    assert (task.queue, task.priority, task.on_crash, task.retries, task.tags) == (
        "mail",
        2,
        "fail",
        3,
        ("mail",),
    )
    assert (str(task.timeout), task.cpu, task.doc, task.workers) == ("0:01:00", False, "Send a message.", 0)
    assert task.schema["required"] == ["user_id"]
    assert task.schema["properties"]["subject"] == {"type": "string", "default": "hello"}
    assert [one.name for one in await client.announced.list()] == ["limited", "mail.send", "odd"]


async def test_a_job_by_name_is_like_one_that_the_code_makes(app: Scheduler, client: Scheduler) -> None:
    job = await client.enqueue_by_name(
        "mail.send", {"user_id": 1, "copies": ["a"]}, headers={"a": "b"}, delay=0
    )
    record = await job.record()
    assert (record.queue, record.priority, record.on_crash, record.tags) == ("mail", 2, "fail", ("mail",))
    assert (record.arguments, record.headers) == ({"user_id": 1, "copies": ["a"]}, {"a": "b"})
    await drain(app)
    assert await job.result() == "hello 1 0.5 ['a']"


async def test_where_the_task_is_registered_its_code_checks_the_arguments(app: Scheduler) -> None:
    with pytest.raises(InvalidArguments, match=r"Expected `array \| null`, got `int` - at `\$.copies`"):
        await app.enqueue_by_name("mail.send", {"user_id": 1, "copies": 3})
    assert (await (await app.enqueue_by_name("mail.send", {"user_id": 1})).record()).queue == "mail"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "'user_id' is missing"),
        ({"user_id": 1, "user": 2}, "it has no 'user'; it takes user_id, subject, ratio and copies"),
        ({"user_id": "1"}, r"expected integer, got '1' - at `\$.user_id`"),
        ({"user_id": True}, r"expected integer, got True - at `\$.user_id`"),
        ({"user_id": 1, "copies": "a"}, r"got 'a' - at `\$.copies`"),
        ({"user_id": 1, "subject": object()}, "do not fit"),
        (["1"], "kwargs must be a dict"),
    ],
)
async def test_arguments_that_do_not_fit_the_schema_are_refused(
    client: Scheduler, arguments: Any, text: str
) -> None:
    with pytest.raises(InvalidArguments, match=text):
        await client.enqueue_by_name("mail.send", arguments)
    with pytest.raises(PayloadTooLarge):
        await client.enqueue_by_name("mail.send", {"user_id": 1, "subject": "x" * 300_000})
    assert await client.jobs.list() == []


async def test_an_unknown_name_or_option_is_refused(client: Scheduler) -> None:
    with pytest.raises(
        UnknownTask, match=r"no worker has announced a task 'mail.sent'.*did you mean mail.send\?"
    ):
        await client.enqueue_by_name("mail.sent")
    with pytest.raises(UnknownTask):
        await client.announced.get("mail.sent")
    with pytest.raises(InvalidOption, match="unknown option 'late'"):
        await client.enqueue_by_name("mail.send", {"user_id": 1}, late=True)  # type: ignore[call-arg]


async def test_a_limit_by_argument_holds_where_values_can_be_told_apart(
    app: Scheduler, client: Scheduler
) -> None:
    mine = await client.enqueue_by_name("limited", {"customer": "acme"})
    theirs = await app.enqueue_by_name("limited", {"customer": "acme"})
    gates = [job.gate for job in await app.store.get([mine.id, theirs.id])]
    assert gates[0] == gates[1] is not None
    with pytest.raises(InvalidArguments, match="its limit is for each 'size'"):
        await client.enqueue_by_name("odd", {"size": 1.0})


async def test_a_schedule_may_name_an_announced_task(app: Scheduler, client: Scheduler) -> None:
    trigger = cron("0 9 * * *")
    await client.schedules.put("daily", trigger, "mail.send", kwargs={"user_id": 1})
    by_code = await app.schedules.put("daily", trigger, "mail.send", kwargs={"user_id": 1})
    assert by_code == "unchanged"
    await client.schedules.edit("daily", args=[2, "hi"])
    job = await client.schedules.trigger("daily", kwargs={"user_id": 3})
    assert (await job.record()).arguments == {"user_id": 3}
    assert (await client.schedules.get("daily")).arguments == {"user_id": 2, "subject": "hi"}
    with pytest.raises(InvalidArguments, match="twice"):
        await client.schedules.edit("daily", args=[2], kwargs={"user_id": 2})
    with pytest.raises(UnknownTask):
        await client.schedules.put("other", trigger, "none")


async def test_arguments_of_a_waiting_job_can_be_changed_without_the_code(client: Scheduler) -> None:
    job = await client.enqueue_by_name("mail.send", {"user_id": 1}, delay="1h")
    await client.jobs.edit(job.id, kwargs={"user_id": 2})
    assert (await job.record()).arguments == {"user_id": 2}


async def test_a_job_of_a_task_that_no_worker_knows_waits_and_says_so(
    app: Scheduler, client: Scheduler
) -> None:
    await app.store.announce([TaskAnnouncement(name="gone", queue="default", options="{}", schema="{}")])
    job = await client.enqueue_by_name("gone")
    await drain(app)
    assert (await job.record()).state is State.PENDING
    await hire(app.store, "w1")
    assert "No worker knows task gone" in str(await client.jobs.explain(job.id))


async def test_what_another_version_has_announced_is_read_as_far_as_it_can_be(client: Scheduler) -> None:
    later = TaskAnnouncement(
        name="later", queue="q", options='{"priority":"soon","on_crash":"retry"}', schema="["
    )
    await client.store.announce([later])
    task = await client.announced.get("later")
    assert (task.queue, task.priority, task.schema) == ("q", 5, {})
    with pytest.raises(InvalidArguments, match="it takes nothing"):
        await client.enqueue_by_name("later", {"a": 1})


def test_a_blocking_caller_enqueues_by_name(sqlite_url: str) -> None:
    app = Scheduler(sqlite_url)
    app.task(name="greet")(print_name)
    client = Scheduler(sqlite_url)
    try:
        app.sync.run(app.open())
        app.sync.run(announce(app))
        assert client.sync.enqueue_by_name("greet", {"name": "you"}).record().arguments == {"name": "you"}
        assert [task.name for task in client.sync.announced.list()] == ["greet"]
    finally:
        client.sync.close()
        app.sync.close()


def print_name(name: str) -> None: ...


async def announce(app: Scheduler) -> None:
    await app.store.announce([announcement(handler) for handler in app.tasks.values()])
    assert json.loads((await app.store.announced())[0].schema)["required"] == ["name"]
