"""The command line: `duetime worker`, `workers`, `schedules`, `enqueue`, `jobs`, `queues`, `migrate`, `copy`, `reopen`, `doctor`, `demo`."""

from __future__ import annotations

from duetime.cli.program import main

__all__ = ["main"]
