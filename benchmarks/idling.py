"""A worker process without work; it loads what a worker needs and hardly more, since its memory is measured."""

from __future__ import annotations

import asyncio
from typing import Any

from benchmarks import children
from benchmarks.statements import tapped
from benchmarks.subject import Subject


async def worker(*, url: str) -> list[Any]:
    """Be idle, and return what was sent."""
    subject = Subject(url)
    async with subject.scheduler:
        sent = tapped(subject.scheduler.store)
        async with subject.scheduler.worker():
            await asyncio.to_thread(children.ready_then_wait)
            return list(sent)
