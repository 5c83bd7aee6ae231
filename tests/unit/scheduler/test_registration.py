"""What can be a task, under which name, with which options."""

from __future__ import annotations

import functools
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, LiteralString, Never, Protocol, TypeVar

import pytest
from pydantic import BaseModel

from duetime import Job, Limit, Retry, Scheduler, Snooze, cron, every
from duetime.errors import (
    ConfigError,
    DuetimeError,
    DuplicateTask,
    InvalidArguments,
    InvalidName,
    InvalidOption,
    InvalidTask,
    InvalidTrigger,
)
from duetime.model.job import NO_TERMS, JobTerms


def plain(number: int) -> int:
    return number


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


class Opaque:
    def __call__(self) -> None: ...


class WithMethod:
    def run(self) -> None: ...


@pytest.fixture
def scheduler(sqlite_url: str) -> Scheduler:
    return Scheduler(sqlite_url)


def test_a_task_is_named_after_its_module_and_function(scheduler: Scheduler) -> None:
    assert scheduler.task(plain).name == f"{__name__}.plain"


def test_a_schedule_of_a_task_with_parameters_is_refused_with_where_to_write_them(
    scheduler: Scheduler,
) -> None:
    with pytest.raises(InvalidArguments, match=r"'number'; a schedule takes them as args= or kwargs=$"):
        scheduler.schedule(every("5m"))(plain)


def test_a_task_can_be_called_like_the_function_it_was(scheduler: Scheduler) -> None:
    assert scheduler.task(plain)(3) == 3


def test_what_somebody_has_noted_on_the_function_does_not_become_an_option(scheduler: Scheduler) -> None:
    def add(a: int, b: int) -> int:
        return a + b

    add.tx = "theirs"  # type: ignore[attr-defined]
    assert scheduler.task(name="add")(add).tx is None


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (lambda: None, "lambda"),
        (generator, "generator"),
        (async_generator, "generator"),
        (functools.partial(plain, 1), "partial"),
        (Opaque(), "plain or async function"),
        (Opaque, "class"),
        (len, "plain or async function"),
        (WithMethod.run, r"WithMethod\.run, a method, cannot be a task: move it out of its class"),
    ],
)
def test_what_cannot_be_a_task_is_refused_with_a_way_out(
    scheduler: Scheduler, function: Callable[..., Any], part: str
) -> None:
    with pytest.raises(InvalidTask, match=part):
        scheduler.task(function)
    assert not scheduler.tasks


class Lock(Protocol):
    def acquire(self) -> None: ...


class Shape(ABC):
    @abstractmethod
    def area(self) -> float: ...


class Words(Counter[str]):
    """Is written as a dict."""


@dataclass
class Held:
    lock: threading.Event


class Found(BaseModel):
    shape: int


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        (threading.Event, "threading.Event"),
        (threading.Event | None, "threading.Event"),
        (list[sqlite3.Connection], "sqlite3.Connection"),
        (dict[str, tuple[complex, int]], "builtins.complex"),
        (Held, "threading.Event"),
        (Iterator[int], "collections.abc.Iterator"),
        (Callable[[], int], "collections.abc.Callable"),
        (Awaitable[int], "collections.abc.Awaitable"),
        (type[int], "builtins.type"),
        (ValueError, "builtins.ValueError"),
    ],
    ids=str,
)
def test_what_returns_something_that_can_never_be_stored_is_refused_with_a_way_out(
    scheduler: Scheduler, kind: Any, named: str
) -> None:
    def make() -> None: ...

    make.__annotations__["return"] = kind
    with pytest.raises(
        InvalidTask, match=rf"^make\(\) -> .* returns {named}, which can never be stored as JSON"
    ) as e:
        scheduler.task(name="make")(make)
    assert "result_ttl=0" in str(e.value)
    assert not scheduler.tasks
    scheduler.task(name="make", result_ttl=0)(make)


@pytest.mark.parametrize(
    "kind",
    [
        None, Any, object, int, date | None, str | date, Found, list[Found] | Path, Words, Counter[str], Lock, Shape,
        Iterable[int], TypeVar("T"), Never, LiteralString, Snooze | int, Retry, int | threading.Event,
    ],
    ids=str,
)  # fmt: skip
def test_what_may_return_something_that_can_be_stored_is_taken(scheduler: Scheduler, kind: Any) -> None:
    def make() -> None: ...

    make.__annotations__["return"] = kind
    scheduler.task(name="make")(make)


def test_the_run_of_a_job_class_is_held_to_the_same(scheduler: Scheduler) -> None:
    with pytest.raises(InvalidTask, match=r"threading\.Event, which can never be stored"):

        class Wait(Job, scheduler=scheduler, name="wait"):
            def run(self) -> threading.Event:
                return threading.Event()


def test_a_nested_function_needs_an_explicit_name(scheduler: Scheduler) -> None:
    def inner() -> None: ...

    with pytest.raises(InvalidTask, match="name="):
        scheduler.task(inner)
    assert scheduler.task(name="inner")(inner).name == "inner"


async def asynchronous() -> None: ...


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (
            asynchronous,
            "asynchronous, an async function, cannot be a cpu task: cpu=True is for plain functions",
        ),
        (lambda: None, "cannot be a cpu task: a child process imports its module"),
    ],
    ids=["async", "inside a function"],
)
def test_what_no_child_process_could_run_is_refused_with_a_way_out(
    scheduler: Scheduler, function: Callable[..., Any], part: str
) -> None:
    with pytest.raises(InvalidTask, match=part):
        scheduler.task(name="named", cpu=True)(function)
    assert not scheduler.tasks


def test_a_second_task_under_one_name_is_refused(scheduler: Scheduler) -> None:
    scheduler.task(plain)
    with pytest.raises(DuplicateTask, match="is taken by plain"):
        scheduler.task(plain)


@pytest.mark.parametrize("name", ["", "two words", "x" * 201, "é", "-dash", "a\n"])
def test_odd_names_are_refused(scheduler: Scheduler, name: str) -> None:
    with pytest.raises(InvalidName):
        scheduler.task(name=name)(plain)


@pytest.mark.parametrize(
    "options",
    [
        {"priority": 10},
        {"priority": -1},
        {"priority": True},
        {"priority": 5.0},
        {"queue": "no spaces"},
        {"retries": -1},
        {"retries": "many"},
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": float("nan")},
        {"on_crash": "ignore"},
        {"cpu": "yes"},
    ],
)
def test_options_out_of_range_are_refused_when_they_are_written(
    scheduler: Scheduler, options: dict[str, Any]
) -> None:
    with pytest.raises(DuetimeError) as caught:
        scheduler.task(**options)
    assert isinstance(caught.value, ValueError)


def test_an_unknown_option_of_a_request_is_named_with_those_there_are(scheduler: Scheduler) -> None:
    task = scheduler.task(plain)
    with pytest.raises(InvalidOption, match=r"'dealy'.*delay"):
        task.options(dealy=3)  # type: ignore[call-arg]


def test_delay_and_at_together_are_refused(scheduler: Scheduler) -> None:
    task = scheduler.task(plain)
    with pytest.raises(InvalidOption, match="either"):
        task.options(delay=3, at=None)  # type: ignore[arg-type]


def test_a_parameter_that_cannot_be_rebuilt_from_json_is_refused_at_registration(
    scheduler: Scheduler,
) -> None:
    def takes(thing: Opaque) -> None: ...

    with pytest.raises(InvalidTask, match="rebuilt from JSON"):
        scheduler.task(name="takes")(takes)


def test_a_schedule_with_arguments_that_do_not_fit_is_refused(scheduler: Scheduler) -> None:
    with pytest.raises(InvalidArguments, match="number"):
        scheduler.schedule(every("1m"))(plain)


def test_a_second_schedule_on_a_task_needs_its_own_name(scheduler: Scheduler) -> None:
    decorated = scheduler.schedule(every("1m"), args=(1,))(plain)
    with pytest.raises(InvalidName, match="name="):
        scheduler.schedule(every("2m"), args=(1,))(decorated)
    assert scheduler.schedule(every("2m"), args=(1,), name="other")(decorated) is decorated


def test_a_schedule_needs_a_trigger(scheduler: Scheduler) -> None:
    with pytest.raises(InvalidTrigger, match="cron"):
        scheduler.schedule("* * * * *")  # type: ignore[arg-type]


def test_task_above_schedule_is_refused_with_the_right_order(scheduler: Scheduler) -> None:
    scheduled = scheduler.schedule(cron("0 3 * * *"), args=(1,))(plain)
    with pytest.raises(InvalidTask, match="below"):
        scheduler.task(scheduled)


@pytest.mark.parametrize("namespace", ["", "Upper", "a b", "1st", "x" * 32, "a;drop"])
def test_a_namespace_that_is_no_part_of_a_table_name_is_refused(sqlite_url: str, namespace: str) -> None:
    with pytest.raises(ConfigError, match="namespace"):
        Scheduler(sqlite_url, namespace=namespace)


@pytest.mark.parametrize(
    "settings",
    [
        {"concurrency": 0},
        {"concurrency": 1.5},
        {"queues": []},
        {"queues": "mail"},
        {"queues": {"mail": 0}},
        {"lease": "1ms"},
    ],
)
def test_worker_settings_that_cannot_work_are_refused_before_anything_starts(
    scheduler: Scheduler, settings: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError):
        scheduler.worker(**settings)


@pytest.mark.parametrize(
    ("call", "gate"),
    [
        (((1,), {}), "send[customer=1]"),
        (((), {"customer": 1}), "send[customer=1]"),
        (((), {}), "send[customer=0]"),
        (((0,), {}), "send[customer=0]"),
    ],
)
def test_the_value_of_an_argument_names_the_gate_also_when_it_is_the_default(
    scheduler: Scheduler, call: tuple[Any, Any], gate: str
) -> None:
    @scheduler.task(name="send", limit=Limit(1, by="customer"))
    def send(customer: int = 0) -> None: ...

    args, kwargs = call
    assert send.call(*args, **kwargs).job.terms.gate == gate
    assert send.options(tags=["x"]).call(*args, **kwargs).job.terms == JobTerms(tags=("x",), gate=gate)


def test_equal_values_have_one_gate_however_they_are_written(scheduler: Scheduler) -> None:
    @scheduler.task(name="send", limit=Limit(1, by="to"))
    def send(to: dict[str, float]) -> None: ...

    assert send.call({"a": 1, "b": 2}).job.terms.gate == send.call({"b": 2.0, "a": 1.0}).job.terms.gate


def test_a_limit_on_the_whole_task_has_one_gate_and_no_limit_has_none(scheduler: Scheduler) -> None:
    assert scheduler.task(name="a", rate="1/1s")(plain).call(1).job.terms.gate == "a"
    assert scheduler.task(name="b")(plain).call(1).job.terms is NO_TERMS


def test_a_limit_by_something_that_is_no_parameter_is_refused(scheduler: Scheduler) -> None:
    with pytest.raises(InvalidOption, match=r"by='customer' is not a parameter of .*plain\(number"):
        scheduler.task(limit=Limit(1, by="customer"))(plain)

    def rest(*args: int) -> None: ...

    with pytest.raises(InvalidOption, match="by='args' is not a parameter"):
        scheduler.task(name="rest", limit=Limit(1, by="args"))(rest)


def test_a_limit_by_a_parameter_whose_default_is_not_json_is_refused(scheduler: Scheduler) -> None:
    unset: Any = Opaque()

    def send(to: str = unset) -> None: ...

    with pytest.raises(InvalidOption, match="default that is not JSON"):
        scheduler.task(name="send", limit=Limit(1, by="to"))(send)


def test_a_schedule_of_a_limited_task_stores_the_gate(scheduler: Scheduler) -> None:
    @scheduler.schedule(every("1m"), args=(7,))
    @scheduler.task(name="send", limit=Limit(1, by="customer"))
    def send(customer: int) -> None: ...

    (declared,) = scheduler._registry.schedules.values()
    assert JobTerms.from_text(declared.at(0).terms) == JobTerms(gate="send[customer=7]")


@pytest.mark.parametrize("policy", [{"overlap": "queue_one"}, {"misfire": "all"}])
@pytest.mark.parametrize("limit", [{"limit": 3}, {"rate": "5/1m"}])
def test_a_limited_task_takes_no_schedule_whose_jobs_wait_for_each_other(
    scheduler: Scheduler, policy: dict[str, Any], limit: dict[str, Any]
) -> None:
    task = scheduler.task(name="send", **limit)(plain)
    with pytest.raises(InvalidOption, match=r"limit= or rate=.*task send"):
        scheduler.schedule(every("1h"), args=(1,), **policy)(task)
    scheduler.schedule(every("1h"), args=(1,))(task)


def test_a_lock_names_parameters_of_its_task(scheduler: Scheduler) -> None:
    locked = scheduler.task(name="locked", lock="plain:{number}")(plain)
    assert locked.handler.lock_name(locked.call(7).job.payload) == "plain:7"
    with pytest.raises(
        InvalidOption, match=r"'tenant' in lock='plain:{tenant}' is not a parameter of .*plain\(number"
    ):
        scheduler.task(lock="plain:{tenant}")(plain)
    with pytest.raises(InvalidOption, match=r"reindex:{tenant}"):
        scheduler.task(lock="{}")
