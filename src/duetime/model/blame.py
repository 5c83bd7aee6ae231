"""Who is to blame for the death of a worker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from duetime.model.job import JobId

MAX_BLAMES: Final = 3
"""How many workers a job may take down as the only suspect before it is given up."""
MAX_CRASHES: Final = 4
"""How many in all, if it was the only suspect for at least two of them."""


class Suspect(NamedTuple):
    """A job that was started in a worker when it died, or may have been: it was due, and its start not yet noted."""

    job_id: JobId
    crashes: int
    """How many workers had died around it before."""


def blamed(suspects: Iterable[Suspect]) -> JobId | None:
    """Return the suspect that has been around the most deaths, or `None` when several have been around as many.

    A job that kills its workers is around each of those deaths, so no other job has seen more of them.
    """
    found = tuple(suspects)
    most = max((suspect.crashes for suspect in found), default=0)
    foremost = [suspect.job_id for suspect in found if suspect.crashes == most]
    return foremost[0] if len(foremost) == 1 else None


def is_poison(*, crashes: int, blames: int) -> bool:
    """Whether a job has taken down too many workers to be tried again."""
    return blames >= MAX_BLAMES or (crashes >= MAX_CRASHES and blames > 1)
