"""What databases with tables share: how they go back to the state that every measure begins with."""

from __future__ import annotations

KEEP = "CREATE TABLE filling AS SELECT max(id) AS id FROM duetime_jobs"
TIDY = (
    # Job ids rise with time: those made after the filling are the measures' own.
    "DELETE FROM duetime_jobs WHERE id > (SELECT coalesce(max(id), '') FROM filling)",
    "DELETE FROM duetime_workers",
    "DELETE FROM duetime_schedules",
)
