from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from duetime.errors import InvalidOption
from duetime.model.callbacks import Callback, bind_callbacks, call_back, overlay
from duetime.model.states import State
from tests.unit.model.test_job_once_more import OLD

OWNER = object()


class Target:
    """A task as far as callbacks know."""

    def __init__(self, name: str, owner: object = OWNER) -> None:
        self._callback = Callback(
            task=name, parameter="ended", queue="alerts", priority=1, on_crash="fail", terms=None, owner=owner
        )

    def as_callback(self) -> Callback:
        return self._callback


def bound(**values: Any) -> str | None:
    return bind_callbacks(values, owner=OWNER)


def names(text: str | None) -> dict[str, str]:
    return {kind: spec["task"] for kind, spec in json.loads(text or "{}").items()}


def test_callbacks_are_written_down_so_that_no_task_is_needed_to_read_them() -> None:
    text = bound(on_success=Target("cheer"), on_failure=Target("alert"), retries=3)
    assert names(text) == {"success": "cheer", "failure": "alert"}
    assert "owner" not in (text or "")
    assert bound(retries=3) is None


@pytest.mark.parametrize("target", [print, "alert", 7])
def test_what_is_no_task_is_refused(target: object) -> None:
    with pytest.raises(InvalidOption, match="on_failure must be a task"):
        bound(on_failure=target)


def test_a_task_of_another_scheduler_is_refused() -> None:
    with pytest.raises(InvalidOption, match="on_cancel=alert is a task of another scheduler"):
        bound(on_cancel=Target("alert", owner=object()))


def test_a_requests_callbacks_stand_before_its_tasks() -> None:
    task = bound(on_success=Target("cheer"), on_failure=Target("alert"))
    assert overlay(task, None) == task
    assert names(overlay(task, bound(on_failure=Target("page")))) == {"success": "cheer", "failure": "page"}
    assert names(overlay(task, bound(on_failure=None))) == {"success": "cheer"}
    assert overlay(None, bound(on_failure=None)) is None


ALL = bound(on_success=Target("cheer"), on_failure=Target("alert"), on_cancel=Target("forget"))


@pytest.mark.parametrize(
    ("state", "task"),
    [
        (State.SUCCEEDED, "cheer"),
        (State.FAILED, "alert"),
        (State.CANCELLED, "forget"),
        (State.SKIPPED, None),
        (State.PENDING, None),
        (State.RUNNING, None),
    ],
)
def test_the_end_of_a_job_chooses_the_callback(state: State, task: str | None) -> None:
    called = call_back(replace(OLD, state=state, callbacks=ALL))
    assert (None if called is None else called.task) == task
    assert call_back(replace(OLD, state=state, callbacks=None)) is None


def test_a_callback_is_a_job_that_names_the_other_and_has_no_callbacks_itself() -> None:
    called = call_back(replace(OLD, callbacks=ALL))
    assert called is not None
    assert (called.parent, called.queue, called.priority, called.on_crash) == ("old", "alerts", 1, "fail")
    assert (called.terms.callbacks, called.key, called.schedule) == (None, None, None)
    ended = json.loads(called.payload)["ended"]
    assert (ended["id"], ended["task"], ended["arguments"]) == ("old", "greet", {"name": "you"})
    assert (ended["state"], ended["error"], ended["reason"], ended["attempt"]) == (
        "failed", "boom", "error", 3,
    )  # fmt: skip
    assert (ended["key"], ended["tags"], ended["schedule"]) == ("k", ["a", "b"], "daily")


def test_a_result_is_passed_on_as_it_is() -> None:
    job = replace(OLD, state=State.SUCCEEDED, callbacks=ALL, result='{"rows":[1,2]}')
    called = call_back(job)
    assert called is not None
    assert json.loads(called.payload)["ended"]["result"] == {"rows": [1, 2]}


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"failure": 3}', '{"failure": {}}', '"x"', "[" * 50_000])
def test_callbacks_that_cannot_be_read_call_nobody(text: str) -> None:
    assert call_back(replace(OLD, callbacks=text)) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("task", 7),
        ("task", "a\nb"),
        ("queue", None),
        ("priority", 99),
        ("priority", "high"),
        ("on_crash", "maybe"),
    ],
)
def test_a_callback_that_no_store_could_keep_calls_nobody(name: str, value: object) -> None:
    spec = {
        "task": "tell",
        "parameter": "ended",
        "queue": "q",
        "priority": 5,
        "on_crash": "retry",
        "terms": None,
    }
    assert call_back(replace(OLD, callbacks=json.dumps({"failure": spec}))) is not None
    assert call_back(replace(OLD, callbacks=json.dumps({"failure": spec | {name: value}}))) is None


@pytest.mark.covers("deep-values")
@pytest.mark.parametrize("text", ["[" * 5_000 + "]" * 5_000, "[" * 800 + "]" * 800, "7" * 5_000, "[1"])
def test_a_callback_is_told_what_cannot_be_read_as_it_is_stored(text: str) -> None:
    spec = {
        "task": "tell",
        "parameter": "ended",
        "queue": "q",
        "priority": 5,
        "on_crash": "retry",
        "terms": None,
    }
    called = call_back(replace(OLD, callbacks=json.dumps({"failure": spec}), payload=text, result=text))
    assert called is not None
    told = json.loads(called.payload)["ended"]
    assert (told["arguments"], told["result"]) == (text, text)
