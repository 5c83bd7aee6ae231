"""Tasks written as classes: what registers, under which name, with which options."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import partialmethod
from typing import Any

import pytest

from duetime import Job, Scheduler, every
from duetime.errors import (
    DuetimeError,
    DuplicateTask,
    InvalidArguments,
    InvalidName,
    InvalidOption,
    InvalidTask,
)
from duetime.model.time import SECOND

here = Scheduler("sqlite://")


class Report(here.Job, queue="reports", retries=2):  # type: ignore[name-defined,misc,call-arg]
    """Counts."""

    @dataclass
    class Range:
        first: date
        last: date

    async def run(self, days: Range, *, step: int = 1) -> int:
        return (days.last - days.first).days // step


class Typed(Job, scheduler=here, name="typed"):
    def run(self, *names: str) -> list[str]:
        return list(names)


class Opaque: ...


@pytest.fixture
def scheduler(sqlite_url: str) -> Scheduler:
    return Scheduler(sqlite_url)


def test_a_class_is_registered_by_being_written() -> None:
    assert set(here.tasks) == {f"{__name__}.Report", "typed"}


def test_its_handler_has_the_parameters_of_run_its_keyword_options_and_its_docstring() -> None:
    handler = Report.task.handler
    assert list(inspect.signature(handler.function).parameters) == ["days", "step"]
    assert (handler.is_async, handler.options.queue, handler.options.retry.retries) == (True, "reports", 2)
    assert handler.function.__doc__ == "Counts."


def test_arguments_are_rebuilt_also_into_types_that_the_class_holds() -> None:
    days = Report.Range(date(2030, 1, 1), date(2030, 1, 9))
    call = Report.call(days, step=2)
    assert Report.task.handler.arguments.decode(call.job.payload) == ((days,), {"step": 2})
    with pytest.raises(InvalidArguments, match="step"):
        Report.call(days, step="two")


def test_options_of_one_request_go_before_those_of_the_class() -> None:
    days = Report.Range(date(2030, 1, 1), date(2030, 1, 9))
    assert Report.options(queue="urgent").call(days).job.queue == "urgent"


def test_run_can_be_called_without_a_job() -> None:
    assert Typed().run("a", "b") == ["a", "b"]


def test_the_base_of_a_scheduler_is_always_the_same(scheduler: Scheduler) -> None:
    assert scheduler.Job is scheduler.Job
    assert scheduler.Job is not here.Job


def test_options_are_inherited_and_can_be_written_anew(scheduler: Scheduler) -> None:
    class Base(Job, scheduler=scheduler, queue="reports", timeout="5s", priority=2): ...

    class Slow(Job, timeout="1m"): ...

    class One(Base, name="one", priority=7):
        def run(self) -> None: ...

    class Two(Slow, One, name="two"): ...

    one, two = One.task.handler.options, Two.task.handler.options
    assert (one.queue, one.timeout, one.priority) == ("reports", 5 * SECOND, 7)
    assert (two.queue, two.timeout, two.priority) == ("reports", 60 * SECOND, 7)


def test_a_name_is_not_inherited(scheduler: Scheduler) -> None:
    class One(Job, scheduler=scheduler, name="one"):
        def run(self) -> int:
            return 1

    with pytest.raises(InvalidTask, match="name="):

        class Two(One): ...

    class Three(One, name="three"): ...

    assert set(scheduler.tasks) == {"one", "three"}


def test_behaviour_is_shared_by_inheritance_and_each_run_has_a_fresh_instance(scheduler: Scheduler) -> None:
    class Counter(Job, scheduler=scheduler):
        total = 0

        def add(self, number: int) -> int:
            self.total += number
            return self.total

        @abstractmethod
        def weight(self) -> int: ...

        def run(self, number: int) -> int:
            return self.add(number * self.weight())

    class Double(Counter, name="double"):
        def weight(self) -> int:
            return 2

    function = Double.task.handler.function
    assert [function(1), function(2)] == [2, 4]
    assert set(scheduler.tasks) == {"double"}


def test_classes_that_are_still_abstract_are_not_registered_and_say_so(scheduler: Scheduler) -> None:
    class WithoutRun(Job, scheduler=scheduler):
        def helper(self) -> None: ...

    class Unfinished(WithoutRun):
        @property
        @abstractmethod
        def part(self) -> int: ...

        def run(self) -> None: ...

    assert not scheduler.tasks
    for unfinished in (Job, scheduler.Job, WithoutRun, Unfinished):
        with pytest.raises(InvalidTask, match="is abstract"):
            _ = unfinished.task
    with pytest.raises(TypeError, match="abstract"):
        Unfinished()  # type: ignore[abstract]


def test_a_subclass_that_is_abstract_again_is_no_task_though_its_base_is_one(scheduler: Scheduler) -> None:
    class Whole(Job, scheduler=scheduler, name="whole"):
        def run(self) -> None: ...

    class Again(Whole):
        @abstractmethod
        def run(self) -> None: ...

    with pytest.raises(InvalidTask, match="Again is abstract"):
        _ = Again.task
    assert Whole.task.name == "whole"


def test_an_abstract_class_has_no_name_to_give(scheduler: Scheduler) -> None:
    with pytest.raises(InvalidOption, match="name its subclasses"):

        class Base(Job, scheduler=scheduler, name="base"): ...


def test_a_class_without_a_scheduler_is_refused() -> None:
    with pytest.raises(InvalidTask, match="scheduler="):

        class Lost(Job, name="lost"):
            def run(self) -> None: ...


def test_a_class_inside_a_function_needs_an_explicit_name(scheduler: Scheduler) -> None:
    with pytest.raises(InvalidTask, match=r"defined inside a function.*name="):

        class Inner(Job, scheduler=scheduler):
            def run(self) -> None: ...

    assert not scheduler.tasks


async def test_a_class_that_a_decorator_makes_anew_is_one_task_with_all_that_it_was_written_with(
    scheduler: Scheduler,
) -> None:
    @dataclass(slots=True)
    class Slotted(Job, scheduler=scheduler, name="slotted", queue="q"):
        step: int = 2

        async def run(self, number: int) -> int:
            assert type(self) is Slotted
            return number * self.step

    @dataclass(slots=True)
    class Base(Job, ABC, scheduler=scheduler, queue="q"):
        step: int = 3

    class Sub(Base, name="sub"):
        def run(self) -> int:
            return self.step

    assert set(scheduler.tasks) == {"slotted", "sub"}
    assert Slotted.task.handler is scheduler.tasks["slotted"]
    assert {handler.options.queue for handler in scheduler.tasks.values()} == {"q"}
    assert await scheduler.tasks["slotted"].function(4) == 8
    assert scheduler.tasks["sub"].function() == 3


def test_a_mixin_before_the_base_may_have_class_keywords_of_its_own(scheduler: Scheduler) -> None:
    class Coloured:
        colour = ""

        def __init_subclass__(cls, *, colour: str = "", **rest: Any) -> None:
            super().__init_subclass__(**rest)
            cls.colour = colour

    class Paint(Coloured, Job, scheduler=scheduler, name="paint", colour="red", queue="q"):
        def run(self) -> None: ...

    assert (Paint.colour, Paint.task.handler.options.queue) == ("red", "q")


def test_a_second_class_under_one_name_is_refused(scheduler: Scheduler) -> None:
    class First(Job, scheduler=scheduler, name="same"):
        def run(self) -> None: ...

    with pytest.raises(DuplicateTask, match="First"):

        class Second(Job, scheduler=scheduler, name="same"):
            def run(self) -> None: ...


@pytest.mark.parametrize(
    ("keywords", "error", "part"),
    [
        ({"colour": "red"}, InvalidOption, "'colour'.*options are "),
        ({"priority": 10}, InvalidOption, "priority"),
        ({"queue": "two words"}, InvalidName, "queue"),
        ({"timeout": 0}, InvalidOption, "timeout"),
    ],
)
@pytest.mark.parametrize("body", [{}, {"run": lambda self: None}])
def test_bad_keywords_are_refused_where_they_are_written_abstract_or_not(
    scheduler: Scheduler,
    body: dict[str, Any],
    keywords: dict[str, Any],
    error: type[DuetimeError],
    part: str,
) -> None:
    with pytest.raises(error, match=part):
        type("Odd", (scheduler.Job,), body, **keywords)
    assert not scheduler.tasks


def generator(self: Any) -> Iterator[int]:
    yield 1


def without_self(*args: int) -> None: ...


def nothing() -> None: ...


def opaque(self: Any, *things: Opaque) -> None: ...


def unresolved(self: Any, thing: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("run", "part"),
    [
        (generator, "generator"),
        (without_self, "does not take self"),
        (nothing, "does not take self"),
        (staticmethod(nothing), "staticmethod"),
        (partialmethod(opaque), "partialmethod"),
        (opaque, "rebuilt from JSON"),
        (unresolved, "cannot be resolved"),
        (7, "int 7"),
    ],
)
def test_a_run_that_cannot_be_called_from_stored_arguments_is_refused(
    scheduler: Scheduler, run: Any, part: str
) -> None:
    with pytest.raises(InvalidTask, match=part):
        type("Odd", (scheduler.Job,), {"run": run}, name="odd")
    assert not scheduler.tasks


def test_a_class_that_needs_arguments_to_be_made_is_refused(scheduler: Scheduler) -> None:
    with pytest.raises(InvalidTask, match=r"'size'.*pass them to run"):

        class Sized(Job, scheduler=scheduler, name="sized"):
            def __init__(self, size: int) -> None:
                self.size = size

            def run(self) -> None: ...


class Mixin:
    def options(self) -> None: ...


@pytest.mark.parametrize("verb", ["call", "enqueue", "options", "sync", "task"])
def test_the_verbs_cannot_be_overridden(scheduler: Scheduler, verb: str) -> None:
    with pytest.raises(InvalidTask, match=f"defines {verb}"):
        type("Odd", (scheduler.Job,), {verb: None})
    if verb == "options":
        with pytest.raises(InvalidTask, match="defines options"):
            type("Odd", (Mixin, scheduler.Job), {})


def test_a_schedule_is_put_on_a_class_and_leaves_it_as_it_was(scheduler: Scheduler) -> None:
    class Tidy(Job, scheduler=scheduler, name="tidy"):
        def run(self, age: int) -> None: ...

    decorated = scheduler.schedule(every("1h"), args=(3,))(Tidy)
    assert decorated is Tidy
    with pytest.raises(InvalidArguments, match="age"):
        scheduler.schedule(every("1h"), name="other")(Tidy)


def test_a_schedule_on_an_abstract_class_is_refused(scheduler: Scheduler) -> None:
    with pytest.raises(InvalidTask, match="is abstract"):
        scheduler.schedule(every("1h"))(scheduler.Job)


def test_a_keyword_of_a_base_of_ones_own_is_taken_out_before(scheduler: Scheduler) -> None:
    class Flavoured(Job, scheduler=scheduler):
        flavour = "plain"

        def __init_subclass__(cls, *, flavour: str = "plain", **options: Any) -> None:
            cls.flavour = flavour
            super().__init_subclass__(**options)

    class Sweet(Flavoured, name="sweet", flavour="sweet", queue="kitchen"):
        def run(self) -> str:
            return self.flavour

    handler = scheduler.tasks["sweet"]
    assert (handler.function(), handler.options.queue) == ("sweet", "kitchen")
