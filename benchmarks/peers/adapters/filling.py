"""The job whose row is copied when a PostgreSQL system is filled with jobs for later."""

from __future__ import annotations

import time

from benchmarks.peers.adapters.base import Job

_DAY = 86_400


def first_job() -> Job:
    """Return a job for tomorrow."""
    return Job(0, time.time() + _DAY)
