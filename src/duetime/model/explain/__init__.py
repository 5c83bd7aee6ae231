"""Tells in sentences what happened to a job or a schedule, and why it has not run."""

from __future__ import annotations
