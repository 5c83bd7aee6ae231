"""`duetime tasks`: what workers can run, without the code."""

from __future__ import annotations

import pytest

from tests.acceptance.kit import URL, duetime, from_json, until, worker

pytestmark = pytest.mark.usefixtures("folder")


def test_a_task_that_a_worker_has_announced_is_shown_and_enqueued_by_name() -> None:
    with worker() as process:
        until(process, "started")
        tasks = {task["name"]: task for task in from_json("tasks", "list", *URL)}
        assert tasks["shop.greet"]["workers"] == 1
        assert "shop.greet" in duetime("tasks", "list", *URL).stdout
        shown = from_json("tasks", "show", "shop.greet", *URL)
        assert shown["schema"]["required"] == ["name"]
        # The text of a number stays a text where the task takes one.
        assert duetime("tasks", "enqueue", "shop.greet", "name=17", "times=2", *URL).exit_code == 0
        until(process, "hello 17 2 None None")
        values = '{"name": "ann", "more": [1, 2]}'
        assert from_json("tasks", "enqueue", "shop.greet", values, *URL)["task"] == "shop.greet"
        until(process, "hello ann 1 None [1, 2]")


def test_what_does_not_fit_is_refused() -> None:
    with worker() as process:
        until(process, "started")
    for arguments, text in (
        (["times=2"], "'name' is missing"),
        (["name=ann", "times=two"], "expected integer, got 'two'"),
        (["ann"], "'ann' is given without a name; write 'name=ann', or a JSON object"),
        (["{"], "not a JSON object"),
    ):
        result = duetime("tasks", "enqueue", "shop.greet", *arguments, *URL)
        assert (result.exit_code, text in result.output) == (2, True), result.output
    missing = duetime("tasks", "show", "shop.great", *URL)
    assert (missing.exit_code, "did you mean shop.greet" in missing.output) == (3, True), missing.output


def test_where_no_worker_has_been_it_says_so() -> None:
    duetime("migrate", *URL)
    assert duetime("tasks", "list", *URL).stdout == "no worker has announced a task\n"
