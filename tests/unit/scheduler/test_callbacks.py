from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from duetime import Ended, Job, Limit, Scheduler, State, every
from duetime.errors import InvalidOption, InvalidTask
from duetime.model.time import SECOND


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler("sqlite:///unused.db")


ENDED = Ended(
    id="a", task="work", arguments={}, state=State.FAILED, result=None, error="boom", traceback=None, reason="error",
    attempt=1, finished_at=datetime(2030, 1, 1, tzinfo=UTC), schedule=None, key=None, tags=(),
)  # fmt: skip


def callbacks_of(call: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call.job.terms.callbacks or "{}")
    return found


def nothing() -> None: ...


def test_a_job_carries_the_callbacks_of_its_task_and_its_own(scheduler: Scheduler) -> None:
    @scheduler.task(name="cheer")
    async def cheer(ended: Ended) -> None: ...

    @scheduler.task(name="alert", queue="alerts", priority=0, expires="1h", tags=["noise"])
    def alert(what: Ended) -> None: ...

    task = scheduler.task(name="work", on_failure=alert)(nothing)
    carried = callbacks_of(task.options(on_success=cheer).call())
    assert (carried["success"]["task"], carried["success"]["parameter"]) == ("cheer", "ended")
    assert (carried["failure"]["parameter"], carried["failure"]["queue"]) == ("what", "alerts")
    assert json.loads(carried["failure"]["terms"]) == {"expires": 3600 * SECOND, "tags": ["noise"]}
    assert callbacks_of(task.options(on_failure=None).call()) == {}


def test_a_callback_takes_none_of_its_own_tasks_callbacks_along(scheduler: Scheduler) -> None:
    @scheduler.task(name="last")
    def last(ended: Ended) -> None: ...

    @scheduler.task(name="alert", on_failure=last)
    def alert(ended: Ended) -> None: ...

    task = scheduler.task(name="work", on_failure=alert)(nothing)
    assert callbacks_of(task.call())["failure"]["terms"] is None


def test_a_job_class_can_be_a_callback_and_have_them(scheduler: Scheduler) -> None:
    class Alert(Job, scheduler=scheduler, name="alert"):
        def run(self, ended: Ended) -> None: ...

    class Work(Job, scheduler=scheduler, name="work", on_failure=Alert):
        def run(self) -> None: ...

    assert callbacks_of(Work.call())["failure"]["task"] == "alert"


def test_a_schedule_carries_the_callbacks_of_its_task(scheduler: Scheduler) -> None:
    @scheduler.task(name="alert")
    def alert(ended: Ended) -> None: ...

    scheduler.schedule(every("1h"))(scheduler.task(name="work", on_failure=alert)(nothing))
    [declared] = scheduler._registry.schedules.values()
    terms = json.loads(declared.at(0).terms or "{}")
    assert json.loads(terms["callbacks"])["failure"]["task"] == "alert"


def two(ended: Ended, more: int) -> None: ...
def wrong(ended: int) -> None: ...
def keyword(*, ended: Ended) -> None: ...
def any_number(*ended: Ended) -> None: ...


@pytest.mark.parametrize("function", [nothing, two, wrong, keyword, any_number])
def test_a_callback_that_cannot_be_called_with_an_ended_job_is_refused(
    scheduler: Scheduler, function: Any
) -> None:
    task = scheduler.task(function)
    with pytest.raises(
        InvalidTask, match=r"cannot be a callback, which takes one argument, `ended: duetime.Ended`"
    ):
        scheduler.task(name="work", on_failure=task)


def test_a_callback_may_have_more_parameters_with_defaults_or_no_annotation(scheduler: Scheduler) -> None:
    def more(ended: Ended, more: int = 1) -> None: ...

    def bare(ended) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001

    for name, callback in (("one", more), ("two", bare)):
        scheduler.task(name=name, on_failure=scheduler.task(name=callback.__name__)(callback))


def test_a_callback_is_limited_as_its_task_is(scheduler: Scheduler) -> None:
    @scheduler.task(name="alert", limit=1)
    def alert(ended: Ended) -> None: ...

    @scheduler.task(name="by", limit=Limit(1, by="volume"))
    def by(ended: Ended, volume: int = 1) -> None: ...

    task = scheduler.task(name="work", on_failure=alert)(nothing)
    terms = json.loads(callbacks_of(task.call())["failure"]["terms"])
    assert terms == {"gate": alert.call(ENDED).job.terms.gate}
    with pytest.raises(InvalidTask, match="its limit is for each 'volume'"):
        task.options(on_failure=by)


def test_what_is_no_task_of_this_scheduler_is_refused(scheduler: Scheduler) -> None:
    @Scheduler("sqlite:///other.db").task(name="foreign")
    def foreign(ended: Ended) -> None: ...

    task = scheduler.task(name="work")(nothing)
    with pytest.raises(InvalidOption, match="another scheduler"):
        task.options(on_failure=foreign)
    with pytest.raises(InvalidOption, match="on_success must be a task"):
        task.options(on_success=nothing)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="another scheduler"):
        scheduler.task(name="more", on_cancel=foreign)
    assert "more" not in scheduler.tasks
