"""A job once more: what a new job takes over from one that has ended."""

from __future__ import annotations

from duetime.errors import JobActive
from duetime.model.ids import new_job_id
from duetime.model.job import NewJob
from duetime.model.stored import StoredJob
from duetime.model.task import JobOptions
from duetime.model.terms import Terms, split_tags


def repeat(old: StoredJob, options: JobOptions) -> NewJob:
    """Return a job like one that has ended, all but its deadline, its key and its place in a schedule."""
    if not old.state.terminal:
        text = f"job {old.id} of {old.task} is {old.state}; it can be run again when it has ended"
        raise JobActive(text)
    terms = Terms(
        tags=split_tags(old.tags),
        callbacks=old.callbacks,
        gate=old.gate,
        result_ttl=old.result_ttl,
        failure_ttl=old.failure_ttl,
    )
    return NewJob(
        id=new_job_id(),
        task=old.task,
        payload=old.payload,
        due_at=options.at,
        delay=options.delay,
        queue=old.queue if options.queue is None else options.queue,
        priority=old.priority if options.priority is None else options.priority,
        on_crash=old.on_crash,
        retries=old.retries if options.retries is None else options.retries,
        timeout=old.timeout if options.timeout is None else options.timeout,
        terms=options.over(terms),
        key=options.key,
        parent=old.id,
        expires_at=options.expires_at,
    )
