from __future__ import annotations

from dataclasses import replace

import pytest

from duetime.errors import JobActive
from duetime.model.job import JobTerms
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob, job_once_more
from duetime.model.task import JobOptions, job_options
from duetime.model.time import SECOND

OLD = StoredJob(
    id="old", task="greet", payload='{"name":"you"}', queue="mail", priority=2, state=State.FAILED, due_at=5,
    created_at=1, started_at=6, finished_at=7, worker="w1", fence=3, failures=2, crashes=1, blames=1,
    on_crash="fail", retries=4, timeout=9 * SECOND, result=None, result_error=None, error="boom",
    traceback="line 1", reason="error", cancel_requested_at=3, schedule="daily", occurrence=5, span_first=None,
    span_count=1, key="k", tags="|a|b|", parent="older", callbacks="{}", expires_at=8, result_ttl=-1,
    failure_ttl=0, headers='{"a":"b"}', gate="greet:you",
)  # fmt: skip


def test_what_was_asked_for_is_asked_for_again() -> None:
    new = job_once_more(OLD, JobOptions())
    assert (new.task, new.payload, new.queue, new.priority) == ("greet", '{"name":"you"}', "mail", 2)
    assert (new.on_crash, new.retries, new.timeout) == ("fail", 4, 9 * SECOND)
    assert new.terms == JobTerms(
        tags=("a", "b"),
        callbacks="{}",
        gate="greet:you",
        result_ttl=-1,
        failure_ttl=0,
        headers='{"a":"b"}',
    )


def test_the_new_job_is_its_own_and_names_the_old_one() -> None:
    new = job_once_more(OLD, JobOptions())
    assert new.id != OLD.id
    assert (new.parent, new.state, new.due_at, new.delay) == ("old", State.PENDING, None, 0)
    assert (new.key, new.expires_at, new.schedule, new.occurrence) == (None, None, None, None)


def test_options_stand_before_those_of_the_old_job() -> None:
    new = job_once_more(
        OLD,
        job_options({"delay": 5, "queue": "slow", "priority": 9, "retries": 0, "tags": ["c"], "key": "x"}),
    )
    assert (new.delay, new.queue, new.priority, new.retries) == (5 * SECOND, "slow", 9, 0)
    assert new.terms.tags == ("a", "b", "c")
    assert new.key is not None
    assert new.key.value == "x"


@pytest.mark.parametrize("state", [State.PENDING, State.RUNNING])
def test_a_job_that_has_not_ended_is_not_repeated(state: State) -> None:
    with pytest.raises(JobActive, match=f"job old of greet is {state}"):
        job_once_more(replace(OLD, state=state), JobOptions())
