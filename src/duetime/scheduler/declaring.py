"""Brings what the code declares to the store."""

from __future__ import annotations

from collections.abc import Mapping

from duetime.model.declaring import declare
from duetime.model.instants import Instant
from duetime.model.schedule import Change, StoredSchedule
from duetime.scheduler.altering import Decision, alter_all
from duetime.scheduler.registry import Declared
from duetime.scheduler.who import this_code
from duetime.stores.base import Store


async def declare_all(store: Store, schedules: Mapping[str, Declared]) -> None:
    """Store the schedules that the code declares; what is unchanged is not written."""
    who = this_code()
    await alter_all(store, {name: _decision(declared, who) for name, declared in schedules.items()})


def _decision(declared: Declared, who: str) -> Decision:
    def decide(before: StoredSchedule | None, now: Instant) -> Change | None:
        return declare(before, declared.at(now), who=who, now=now)

    return decide
