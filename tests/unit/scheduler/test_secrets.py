"""Secret arguments and results are stored, used and run again, and shown nowhere."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator

import msgspec
import pytest

from duetime import Ended, JobRequest, Limit, Scheduler, Secret, Task, cron, current_job
from duetime.errors import InvalidArguments, InvalidImport, InvalidOption, JobFailed
from duetime.runtime.upkeep.announcing import announcement
from duetime.testing import FakeClock, assert_enqueued, drain

WORD = "correct horse"
SEEN: list[str] = []


@pytest.fixture
async def scheduler(sqlite_url: str) -> AsyncIterator[Scheduler]:
    SEEN.clear()
    scheduler = Scheduler(sqlite_url, clock=FakeClock())

    @scheduler.task(name="ended")
    def ended(what: Ended) -> None:
        SEEN.append(json.dumps(msgspec.to_builtins(what)))

    @scheduler.task(name="login", on_success=ended, on_failure=ended)
    def login(user: str, password: Secret[str], *, fails: bool = False) -> Secret[str]:
        SEEN.append(password)
        logging.getLogger("app").warning("%s logs in with %s", user, password)
        current_job().progress(0.5, f"trying {password}")
        if fails:
            raise PermissionError(f"wrong password {password!r}")
        return f"token of {password}"

    @scheduler.task(name="named", secret=("key", "return"))
    def named(key: dict[str, int], other: int) -> int:
        return key["code"]

    async with scheduler:
        yield scheduler


async def shown(scheduler: Scheduler, job_id: str) -> str:
    """Everything that people are shown of a job."""
    jobs = scheduler.jobs
    told = [
        await jobs.get(job_id),
        *await jobs.list(),
        *await jobs.attempts(job_id),
        *await jobs.logs(job_id),
        await jobs.explain(job_id),
        *await scheduler.audit.list(),
    ]
    return json.dumps(msgspec.to_builtins(told, enc_hook=str))


async def test_a_secret_reaches_the_handler_and_no_record(scheduler: Scheduler) -> None:
    login = scheduler.tasks["login"]
    job = await scheduler.enqueue_by_name("login", {"user": "ann", "password": WORD})
    assert WORD not in await shown(scheduler, job.id)
    await drain(scheduler)
    record = await job.record()
    assert (record.arguments, record.result) == ({"user": "ann", "password": "***"}, "***")
    assert WORD not in await shown(scheduler, job.id)
    assert SEEN[0] == WORD
    # Who enqueued it has a right to what it returned.
    assert await job.result() == f"token of {WORD}"
    assert login.arguments.secrets == {"password", "return"}


async def test_what_a_job_called_back_is_given_is_masked(scheduler: Scheduler) -> None:
    await scheduler.enqueue_by_name("login", {"user": "ann", "password": WORD})
    await drain(scheduler)
    assert len(SEEN) == 2
    assert WORD not in SEEN[1]
    stored = await scheduler.store.get([job.id for job in await scheduler.jobs.list(task="ended")])
    assert WORD not in stored[0].payload


async def test_errors_tracebacks_logs_and_progress_are_masked(
    scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    job = await scheduler.enqueue_by_name("login", {"user": "ann", "password": WORD, "fails": True})
    with caplog.at_level(logging.ERROR, logger="duetime.worker"):
        await drain(scheduler)
    record = await job.record()
    assert record.error == "PermissionError: wrong password '***'"
    assert record.error_type == "PermissionError"
    assert record.traceback is not None
    assert WORD not in await shown(scheduler, job.id)
    stored = (await scheduler.store.get([job.id]))[0]
    assert WORD not in f"{stored.error}{stored.traceback}{stored.progress_note}"
    assert WORD not in "".join(part.text for part in await scheduler.store.logs(job.id))
    ours = [one for one in caplog.records if one.name == "duetime.worker"]
    assert all(WORD not in f"{one.getMessage()}{one.exc_text}{one.exc_info}" for one in ours)
    with pytest.raises(JobFailed) as caught:
        await job.result()
    assert WORD not in str(caught.value)


async def test_a_rerun_uses_the_real_ones_and_masks_them_too(scheduler: Scheduler) -> None:
    job = await scheduler.enqueue_by_name("login", {"user": "ann", "password": WORD})
    await drain(scheduler)
    again = await scheduler.jobs.rerun(job.id)
    await drain(scheduler)
    assert SEEN.count(WORD) == 2
    assert (await again.record()).arguments == {"user": "ann", "password": "***"}


async def test_arguments_may_be_named_on_the_task(scheduler: Scheduler) -> None:
    job = await scheduler.enqueue_by_name("named", {"key": {"code": 4711}, "other": 5})
    await drain(scheduler)
    record = await job.record()
    assert (record.arguments, record.result) == ({"key": "***", "other": 5}, "***")
    assert await job.result() == 4711


async def test_what_is_refused_does_not_show_the_value(scheduler: Scheduler) -> None:
    with pytest.raises(InvalidArguments) as refused:
        await scheduler.enqueue_by_name("login", {"user": 5, "password": WORD})
    assert WORD not in str(refused.value)
    with pytest.raises(InvalidArguments, match="'password' is masked"):
        await scheduler.enqueue_by_name("login", {"user": "ann", "password": "***"})
    with pytest.raises(InvalidOption, match="secret='pin' is not a parameter"):
        scheduler.task(name="other", secret=["pin"])(lambda word: None)
    with pytest.raises(InvalidOption, match="by='word' of limited is secret"):
        scheduler.task(name="limited", limit=Limit(1, by="word"))(limited)
    with pytest.raises(InvalidOption, match=r"'word' in lock='x\{word\}' of limited is secret"):
        scheduler.task(name="limited", lock="x{word}")(limited)


def limited(word: Secret[str]) -> None: ...


async def test_functions_that_see_requests_see_them_masked(scheduler: Scheduler) -> None:
    seen: list[object] = []

    @scheduler.on_enqueue
    def look(request: JobRequest) -> None:
        seen.append(request.arguments)

    await scheduler.enqueue_by_name("login", {"user": "ann", "password": WORD})
    assert seen == [{"user": "ann", "password": "***"}]


async def test_a_schedule_its_history_and_its_export_are_masked(scheduler: Scheduler) -> None:
    trigger = cron("0 3 * * *")
    await scheduler.schedules.put("nightly", trigger, "login", args=["ann", WORD])
    await scheduler.schedules.edit("nightly", args=["bob", "battery staple"])
    record = await scheduler.schedules.get("nightly")
    assert record.arguments == {"user": "bob", "password": "***"}
    changes = await scheduler.schedules.history("nightly")
    assert changes[0].detail["arguments"] == [
        {"user": "ann", "password": "***"},
        {"user": "bob", "password": "***"},
    ]
    exported = await scheduler.schedules.export()
    told = f"{record}{changes}{exported.text}{await scheduler.schedules.explain('nightly')}"
    assert WORD not in told
    assert "battery" not in told
    job = await scheduler.schedules.trigger("nightly")
    assert (await job.record()).arguments == {"user": "bob", "password": "***"}
    for check in (True, False):
        with pytest.raises(InvalidImport, match="'password' is masked"):
            await scheduler.schedules.import_(exported.text, check=check)
    real = exported.text.replace("***", "new words").replace("nightly", "weekly")
    await scheduler.schedules.import_(real, check=False)
    assert (await scheduler.schedules.get("weekly")).arguments == {"user": "bob", "password": "***"}


async def test_clients_without_the_code_mask_them_too(scheduler: Scheduler) -> None:
    await scheduler.store.announce([announcement(handler) for handler in scheduler.tasks.values()])
    async with Scheduler(scheduler.url, clock=scheduler.clock) as client:
        schema = (await client.announced.get("login")).schema
        assert schema["properties"]["password"] == {"type": "string", "writeOnly": True}
        job = await client.enqueue_by_name("login", {"user": "ann", "password": WORD})
        assert (await job.record()).arguments == {"user": "ann", "password": "***"}
        with pytest.raises(InvalidArguments, match=r"expected string, got \*\*\*"):
            await client.enqueue_by_name("login", {"user": "ann", "password": 4711})
        with pytest.raises(InvalidArguments, match="is masked"):
            await client.enqueue_by_name("login", {"user": "ann", "password": "***"})


async def test_the_testing_kit_finds_a_job_by_its_other_arguments(scheduler: Scheduler) -> None:
    await scheduler.enqueue_by_name("login", {"user": "ann", "password": WORD})
    task = Task[..., str](scheduler.tasks["login"], scheduler)
    await assert_enqueued(scheduler, task, "ann", password=WORD)
    with pytest.raises(AssertionError):
        await assert_enqueued(scheduler, task, "bob", password=WORD)
