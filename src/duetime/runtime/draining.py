"""The end of a worker's jobs when it is stopped: a grace time, then they are cancelled."""

from __future__ import annotations

import asyncio
import logging

from duetime.model import durations
from duetime.model.instants import SECOND, Micros
from duetime.model.names import named
from duetime.model.outcome import Interrupted
from duetime.runtime.dispatcher import Dispatcher

log = logging.getLogger("duetime.worker")

LAST_WAIT = 5.0
"""Seconds that cancelled handlers and the last settlements get before stopping gives up on them."""


async def drain(dispatcher: Dispatcher, *, grace: Micros, hurry: asyncio.Event) -> None:
    """Wait for running jobs: for the grace time, or until it is cut short, then, cancelled, a little longer."""
    if dispatcher.runs:
        log.info("waiting up to %s for %d running job(s)", durations.describe(grace), len(dispatcher.runs))
    done = asyncio.ensure_future(dispatcher.drained())
    hurried = asyncio.ensure_future(hurry.wait())
    await asyncio.wait({done, hurried}, timeout=grace / SECOND, return_when=asyncio.FIRST_COMPLETED)
    if not done.done():
        dispatcher.stop_all(Interrupted(reason="the worker was stopped before the job ended"))
        await asyncio.wait({done}, timeout=LAST_WAIT)
    for waiter in (done, hurried):
        waiter.cancel()
    if dispatcher.runs:
        tasks = [run.claim.task for run in dispatcher.runs.values()]
        log.error(
            "%d job(s) do not end; their claims are kept until they do or this process ends: %s",
            len(dispatcher.runs),
            named(tasks),
        )
