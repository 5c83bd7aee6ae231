"""The command line: `duetime worker`, `migrate`, `doctor`, `enqueue`, `jobs` and `demo`."""

from __future__ import annotations

from duetime.cli.program import main

__all__ = ["main"]
