from __future__ import annotations

from duetime.model.schedule.occurrences import MOST_IN_A_SPAN, OccurrenceSpan, backfill_job, skipped_record
from tests.unit.model.schedule.firing_kit import record


def test_a_record_of_more_than_can_be_counted_says_as_many_as_can_be_written() -> None:
    assert skipped_record(record(), OccurrenceSpan(1, 2, 2**40), reason="paused").span_count == MOST_IN_A_SPAN


def test_a_job_that_makes_up_for_an_occurrence_says_so_and_is_due_at_once() -> None:
    job = backfill_job(record(), 7, in_turn=False)
    assert (job.occurrence, job.span_first, job.span_count, job.due_at) == (7, 7, 1, None)
