from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from duetime.errors import InvalidName, InvalidOption
from duetime.model.job import FOREVER, NO_TERMS, JobTerms, Key
from duetime.model.task import job_options, task_options
from duetime.model.time import SECOND, from_datetime


def test_options_that_say_nothing_special_leave_the_terms_plain() -> None:
    assert task_options({"queue": "mail", "tags": [], "expires": None}).terms is NO_TERMS
    options = job_options({"delay": 1})
    assert options.terms is NO_TERMS
    assert options.over(NO_TERMS) is NO_TERMS


def test_no_time_to_live_means_for_ever() -> None:
    assert task_options({"result_ttl": None, "failure_ttl": 0}).terms == JobTerms(
        result_ttl=FOREVER, failure_ttl=0
    )


def test_terms_of_a_request_stand_before_those_of_the_task_and_tags_are_added() -> None:
    defaults = task_options({"expires": 1, "tags": ["a", "b"], "result_ttl": 5}).terms
    asked = job_options({"expires": 2, "tags": ["b", "c"]})
    assert asked.over(defaults) == JobTerms(expires=2 * SECOND, tags=("a", "b", "c"), result_ttl=5 * SECOND)


def test_a_deadline_may_be_a_moment() -> None:
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    assert job_options({"expires": moment}).expires_at == from_datetime(moment, what="expires")


def test_a_key_returns_the_existing_job_unless_told_otherwise() -> None:
    assert job_options({"key": "k"}).key == Key(value="k")


def test_debounce_waits_and_replaces() -> None:
    options = job_options({"key": "k", "debounce": 5})
    assert (options.delay, options.key) == (5 * SECOND, Key(value="k", if_exists="replace"))


def test_throttle_holds_the_key_for_its_period() -> None:
    assert job_options({"key": "k", "throttle": 60}).key == Key(value="k", period=60 * SECOND)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"if_exists": "raise"}, "if_exists= needs a key"),
        ({"debounce": 1}, "debounce= needs a key"),
        ({"key": "k", "if_exists": "ignore"}, "if_exists must be"),
        ({"key": "k", "debounce": 1, "throttle": 1}, "either debounce= or throttle="),
        ({"key": "k", "debounce": 1, "delay": 1}, "either delay="),
        ({"key": "k", "debounce": 1, "if_exists": "raise"}, "does not go with"),
        ({"key": "k", "throttle": 1, "if_exists": "replace"}, "does not go with"),
        ({"key": ""}, "key must be text"),
        ({"key": 5}, "key must be text"),
        ({"key": "x" * 501}, "key must be text"),
        ({"key": "a\0b"}, "key 'a.x00b' has NUL"),
        ({"key": "a\ud800b"}, "key 'a.ud800b' has NUL or half a pair of surrogates"),
        ({"tags": [f"t{n}" for n in range(33)]}, "33 tags; at most 32"),
        ({"tags": "urgent"}, "tags must be a list"),
        ({"colour": "red"}, "unknown option 'colour'; options are at, "),
        (
            {"max_retries": 3},
            r"unknown option 'max_retries'; did you mean retries\? options are at, ",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(values: Any, text: str) -> None:
    with pytest.raises(InvalidOption, match=text):
        job_options(values)


def test_the_tags_of_a_task_count_towards_those_of_its_jobs() -> None:
    defaults = JobTerms(tags=tuple(f"t{n}" for n in range(31)))
    assert len(job_options({"tags": ["t0", "a"]}).over(defaults).tags) == 32
    with pytest.raises(InvalidOption, match="33 tags; at most 32 are allowed"):
        job_options({"tags": ["a", "b"]}).over(defaults)


def test_a_tag_is_a_name() -> None:
    with pytest.raises(InvalidName, match=r"tag .a\|b."):
        task_options({"tags": ["a|b"]})
