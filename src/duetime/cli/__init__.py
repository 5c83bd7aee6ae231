"""The command line: `duetime worker`, `workers`, `enqueue`, `jobs`, `queues`, `migrate`, `doctor` and `demo`."""

from __future__ import annotations

from duetime.cli.program import main

__all__ = ["main"]
