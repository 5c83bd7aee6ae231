"""What those who watch read of jobs and workers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from duetime.model.job import JobId
from duetime.model.states import State
from duetime.model.time import Instant
from duetime.model.worker import WorkerId, WorkerState

MOST_NOTED: Final = 500
"""How many jobs a journal names at most: of more, it only says how many there were."""


class JobOutline(NamedTuple):
    """A job without what may be long or secret."""

    id: JobId
    task: str
    queue: str
    state: State
    schedule: str | None
    due_at: Instant
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    worker: WorkerId | None


class Journal(NamedTuple):
    """What a worker has noted of its jobs while it was watched."""

    total: int = 0
    """How many changes it has made since it was started, watched or not."""
    tallies: Mapping[str, Mapping[str, int]] = {}
    """How many it has noted, by queue and state."""
    latest: Sequence[JobId] = ()
    """The jobs of the last of them, in order; one that changed twice is named twice."""
    until: Instant = 0
    """Until when it goes on to note."""

    def text(self) -> str:
        """Return what is stored."""
        return json.dumps(self, separators=(",", ":"))

    @classmethod
    def read(cls, text: str | None) -> Journal:
        """Read what was stored; nothing where it cannot be read."""
        try:
            total, tallies, latest, until = json.loads(text or "")
            return cls(int(total), dict(tallies), [str(job_id) for job_id in latest], int(until))
        except (ValueError, TypeError, RecursionError):
            return cls()


class WatchedWorker(NamedTuple):
    """A worker as those see it who watch."""

    id: WorkerId
    name: str | None
    state: WorkerState
    paused: bool
    journal: str | None
    """What it has noted, as `Journal.text` wrote it."""
