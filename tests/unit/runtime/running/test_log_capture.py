from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import logging
import threading
from collections.abc import Callable, Iterator

import pytest

from duetime import Scheduler
from duetime.runtime.options import worker_options
from duetime.runtime.running.log_capture import RunLogHandler, record_text, run_log_capture
from duetime.runtime.running.run import Run, RunOutput, current_run
from duetime.runtime.worker import Worker
from tests.unit.runtime.kit import claim

log = logging.getLogger("app.mail")


class Listening:
    """Hears everything, passes on nothing."""

    def __init__(self, *, captures_logs: bool = True) -> None:
        self.captures_logs = captures_logs

    def notice(self, output: RunOutput) -> None:
        pass


class Broken:
    def __str__(self) -> str:
        raise RuntimeError("no")


class Owner: ...


@pytest.fixture(autouse=True)
def collecting() -> Iterator[Callable[[], object]]:
    log.setLevel(logging.INFO)
    owner = Owner()
    detach = run_log_capture.attach(owner)
    yield detach
    detach()
    log.setLevel(logging.NOTSET)


def started(*, captures_logs: bool = True) -> Run:
    """Begin a run in this context."""
    run = Run(claim(), started_at=0, reader=Listening(captures_logs=captures_logs))
    current_run.set(run)
    return run


def lines(run: Run) -> list[str]:
    """What a run has logged, without the times."""
    assert run.output is not None
    text = "\n".join(part.text for part in run.output.take_rest().logs)
    return [line.partition("Z ")[2] or line for line in text.splitlines()]


async def test_a_run_collects_what_is_logged_in_its_context() -> None:
    run = started()
    log.info("to %s", "user 1")
    log.debug("below the level that was set up")
    assert lines(run) == ["INFO app.mail: to user 1"]


async def test_what_is_logged_outside_of_runs_passes() -> None:
    log.info("nobody")
    run = started()
    assert run.output is None


async def test_tasks_and_threads_of_a_handler_belong_to_its_run() -> None:
    run = started()

    async def inner() -> None:
        log.info("from a task")

    await asyncio.create_task(inner())
    await asyncio.to_thread(log.info, "from a thread")
    assert lines(run) == ["INFO app.mail: from a task", "INFO app.mail: from a thread"]


async def test_runs_at_the_same_time_do_not_mix() -> None:
    async def handler(name: str) -> list[str]:
        run = started()
        for n in range(3):
            log.info("%s %d", name, n)
            await asyncio.sleep(0)
        return lines(run)

    one, two = await asyncio.gather(handler("one"), handler("two"))
    assert one == [f"INFO app.mail: one {n}" for n in range(3)]
    assert two == [f"INFO app.mail: two {n}" for n in range(3)]


async def test_an_exception_is_logged_with_its_traceback() -> None:
    run = started()
    try:
        int("nobody")
    except ValueError:
        log.exception("sending failed")
    first, *rest, last = lines(run)
    assert first == "ERROR app.mail: sending failed"
    assert rest[0] == "Traceback (most recent call last):"
    assert last == "ValueError: invalid literal for int() with base 10: 'nobody'"


async def test_a_run_that_has_ended_collects_nothing_more() -> None:
    run = started()
    run.reader = None
    log.info("too late")
    assert run.output is None


async def test_a_worker_may_do_without() -> None:
    run = started(captures_logs=False)
    log.info("not kept")
    assert run.output is None


async def test_what_duetime_says_of_itself_is_not_the_jobs() -> None:
    run = started()
    logging.getLogger("duetime.worker").warning("about the worker")
    logging.getLogger("duetimers").warning("about another library")
    assert lines(run) == ["WARNING duetimers: about another library"]


async def test_a_record_that_logs_when_it_is_formatted_does_not_recurse() -> None:
    run = started()
    handler = RunLogHandler()

    class Chatty:
        def __str__(self) -> str:
            handler.handle(log.makeRecord("app.mail", logging.INFO, __file__, 1, "%s", (self,), None))
            return "chatty"

    handler.handle(log.makeRecord("app.mail", logging.INFO, __file__, 1, "%s", (Chatty(),), None))
    assert lines(run) == ["INFO app.mail: chatty"]


@pytest.mark.parametrize(("message", "args"), [("%s", (Broken(),)), ("%d", ("no number",)), ("%s %s", (1,))])
def test_a_record_that_cannot_be_formatted_becomes_a_line_that_says_so(
    message: str, args: tuple[object, ...]
) -> None:
    record = log.makeRecord("app.mail", logging.ERROR, __file__, 1, message, args, None)
    assert "Z ERROR app.mail: (a record that could not be written: " in record_text(record)


def test_the_handler_is_there_as_long_as_a_worker_wants_it(collecting: Callable[[], object]) -> None:
    owner = Owner()
    assert len(ours()) == 1
    detach = run_log_capture.attach(owner)
    assert len(ours()) == 1
    detach()
    assert len(ours()) == 1
    detach()
    assert len(ours()) == 1, "the other one wants it still"
    collecting()
    assert ours() == []


def test_the_handler_goes_with_an_event_loop_that_ends_before_its_worker_is_stopped(
    collecting: Callable[[], object], sqlite_url: str
) -> None:
    async def start() -> None:
        scheduler = Scheduler(sqlite_url)
        await scheduler.open()
        await Worker(scheduler.store, {}, worker_options(lease="1s"), make_lock=scheduler.lock).start()
        assert len(ours()) == 1

    collecting()
    asyncio.run(start())
    # The worker's pulse, in a thread, notices it with its next beat.
    for thread in threading.enumerate():
        if thread.name == "duetime-pulse":
            thread.join(10)
    gc.collect()
    assert ours() == []


def ours() -> list[logging.Handler]:
    return [handler for handler in logging.root.handlers if isinstance(handler, RunLogHandler)]


@contextlib.contextmanager
def nothing_set_up() -> Iterator[None]:
    """Take away all handlers of the root logger but ours."""
    others = [handler for handler in logging.root.handlers if not isinstance(handler, RunLogHandler)]
    for handler in others:
        logging.root.removeHandler(handler)
    yield
    for handler in others:
        logging.root.addHandler(handler)


def test_where_nobody_has_set_up_logging_warnings_are_still_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with nothing_set_up():
        log.warning("look")
        log.info("quiet")
    assert capsys.readouterr().err == "look\n"


def test_a_logger_with_a_handler_of_its_own_is_left_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    own = logging.NullHandler()
    logging.getLogger("app").addHandler(own)
    with nothing_set_up():
        log.warning("look")
    logging.getLogger("app").removeHandler(own)
    assert capsys.readouterr().err == ""


async def test_many_threads_of_one_run_lose_no_line() -> None:
    run = started()
    count, each = 8, 50

    def speak(n: int) -> None:
        for line in range(each):
            log.info("%d %d", n, line)

    threads = [threading.Thread(target=contextvars.copy_context().run, args=(speak, n)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines(run)) == count * each
