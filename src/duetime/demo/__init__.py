"""An example to run: a web application in four processes with schedules and jobs on one SQLite file."""

from __future__ import annotations

from duetime.demo.launch import run

__all__ = ["run"]
