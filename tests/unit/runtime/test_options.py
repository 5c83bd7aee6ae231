from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from duetime.errors import ConfigError, DuetimeError
from duetime.model.time import MILLISECOND, SECOND
from duetime.runtime.options import WorkerOptions, worker_options


def test_without_a_word_the_defaults_hold() -> None:
    assert worker_options() == WorkerOptions()


def test_durations_may_be_numbers_texts_and_timedeltas() -> None:
    options = worker_options(grace=1.5, lease="3s", window=timedelta(milliseconds=200), retention=None)
    assert (options.grace, options.lease, options.window) == (
        1_500 * MILLISECOND,
        3 * SECOND,
        200 * MILLISECOND,
    )
    assert options.retention is None


def test_queues_may_be_a_list_or_a_mapping_to_limits() -> None:
    assert worker_options(queues=["mail", "default"]).queues == {"mail": None, "default": None}
    assert worker_options(queues={"mail": 2, "default": None}).queues == {"mail": 2, "default": None}


def test_queues_that_are_named_are_served_unless_some_were_chosen() -> None:
    assert list(worker_options().with_queues(["mail", "default", "bulk"]).queues) == [
        "default",
        "mail",
        "bulk",
    ]
    chosen = worker_options(queues={"mail": 2})
    assert chosen.with_queues(["default", "mail", "bulk"]) == chosen


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ({"concurrency": 0}, "concurrency must be a whole number from 1"),
        ({"concurrency": -1}, "not -1"),
        ({"concurrency": 10_001}, "to 10000"),
        ({"concurrency": True}, "not True"),
        ({"concurrency": 1.5}, "not 1.5"),
        ({"concurrency": "4"}, "not '4'"),
        ({"queues": []}, "name at least one"),
        ({"queues": "mail"}, r"such as \['mail'\]"),
        ({"queues": {"mail": 0}}, "limit of queue 'mail'"),
        ({"queues": {"mail": True}}, "not True"),
        ({"queues": ["no spaces please"]}, "queue"),
        ({"lease": 0.1}, "lease must be at least"),
        ({"lease": -1}, "lease"),
        ({"grace": float("nan")}, "grace"),
        ({"grace": float("inf")}, "grace"),
        ({"window": "soon"}, "window"),
        ({"retention": "-1d"}, "retention"),
        ({"cpu_children": 0}, "cpu_children must be a whole number from 1 to 1000, not 0"),
        ({"cpu_children": True}, "not True"),
        ({"cpu_children": 1_001}, "to 1000"),
        ({"max_jobs": 0}, "max_jobs must be a whole number from 1, not 0"),
        ({"name": "two words"}, "worker name"),
        ({"burst": True, "jobs": False}, "leave jobs=True"),
        ({"max_jobs": 5, "jobs": False}, "leave jobs=True"),
        ({"cpu_max_jobs": 0}, "cpu_max_jobs must be a whole number from 1, not 0"),
        ({"cpu_max_jobs": "9"}, "not '9'"),
        ({"cpu_max_memory": "much"}, "cpu_max_memory must be a number of bytes"),
        ({"cpu_max_memory": 0}, "not 0"),
    ],
    ids=str,
)
def test_a_setting_that_cannot_work_is_refused_by_name(settings: dict[str, Any], hint: str) -> None:
    with pytest.raises(ValueError, match=hint) as refusal:
        worker_options(**settings)
    assert isinstance(refusal.value, DuetimeError)


def test_a_refusal_is_a_config_error() -> None:
    with pytest.raises(ConfigError):
        worker_options(concurrency=0)


def test_a_worker_that_would_do_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="does nothing"):
        worker_options(jobs=False, schedules=False)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "100 slots, queues default, 7 tasks, fires schedules and declares 2"),
        (
            {"queues": {"default": None, "mail": 5}, "schedules": False, "concurrency": 3},
            "3 slots, queues default, mail=5, 7 tasks, fires no schedules",
        ),
        (
            {"name": "mail", "burst": True, "max_jobs": 1, "schedules": False},
            "called mail, until nothing is due, until 1 job has run, 100 slots, queues default, 7 tasks, fires no schedules",
        ),
        ({"jobs": False}, "runs no jobs, fires schedules and declares 2"),
    ],
)
def test_a_worker_says_what_it_serves(settings: dict[str, Any], said: str) -> None:
    assert worker_options(**settings).describe(tasks=7, declared=2) == said
