"""The heart of the API on every kind of store: the tests of other files, with another scheduler."""

from __future__ import annotations

from typing import Final

import pytest

from duetime import Scheduler
from tests.web import test_job_changes, test_jobs, test_openapi, test_operations, test_schedules
from tests.web.kit import make_scheduler

CORE: Final = (
    test_jobs.test_a_list_is_read_page_by_page_newest_first,
    test_jobs.test_a_list_is_narrowed,
    test_job_changes.test_a_job_is_enqueued_with_its_options,
    test_job_changes.test_a_job_with_an_id_of_ones_own_is_stored_once,
    test_job_changes.test_a_job_is_run_again,
    test_job_changes.test_a_job_that_waits_is_changed,
    test_job_changes.test_a_change_of_what_one_has_not_seen_is_refused,
    test_job_changes.test_of_two_edits_at_once_one_is_made,
    test_job_changes.test_odd_texts_are_answered_as_they_came_or_refused,
    test_job_changes.test_many_jobs_are_counted_first_and_then_changed_step_by_step,
    test_operations.test_it_is_on_record_who_did_what,
    test_schedules.test_a_list_is_read_page_by_page_by_name,
    test_schedules.test_of_two_edits_at_once_one_is_made,
    test_schedules.test_a_schedule_is_triggered_skipped_and_backfilled,
    test_openapi.test_each_operation_succeeds_with_its_examples,
)


@pytest.fixture
def scheduler(store_url: str) -> Scheduler:
    """Stands in for the one on SQLite."""
    return make_scheduler(store_url)


# pytest finds tests by their names in this module.
globals().update({f"{one.__name__}_{one.__module__.rpartition('test_')[2]}": one for one in CORE})
