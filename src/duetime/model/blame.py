"""Who is to blame for the death of a worker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from duetime.model.job import JobId


class Suspect(NamedTuple):
    """A job that was started in a worker when it died."""

    job_id: JobId
    crashes: int
    """How many workers had died around it before."""


def blamed(suspects: Iterable[Suspect]) -> JobId | None:
    """Return the only suspect among the jobs started in one dead worker, or `None` when there are several.

    A job that has been around a death before outweighs those that have not: if there is one such job, it
    is the suspect, however many others ran beside it.
    """
    started = tuple(suspects)
    repeated = tuple(suspect for suspect in started if suspect.crashes > 0)
    candidates = repeated or started
    return candidates[0].job_id if len(candidates) == 1 else None
