"""What a heartbeat has seen reaches the service that it concerns."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from duetime.model.job import Token
from duetime.runtime.options import WorkerOptions
from duetime.runtime.pacing import FleetPacing
from duetime.runtime.worker import Worker
from duetime.stores.base import Pulse, PulseFindings, Store

NOW = 1_000
NOTHING = PulseFindings(None, None, None, orphans=False)


class Journal:
    """Notes until when it is to note."""

    def __init__(self) -> None:
        self.until: int | None = None

    def attend(self, until: int | None) -> None:
        self.until = until


class Services:
    """All services in one, which note what they are told."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.crowd = FleetPacing()
        self.registered_at = NOW
        self.worker = Worker(cast("Store", None), {}, WorkerOptions(), make_lock=cast("Any", None))
        self.worker._fleet = self.crowd
        me = cast("Any", self)
        self.worker._dispatcher = self.worker._fetcher = self.worker._firer = self.worker._janitor = me
        self.worker._pulse = me
        self.worker._outcomes = cast("Any", SimpleNamespace(journal=Journal()))

    def hear(self, *, workers: int = 1, newest: int = NOW, **seen: Any) -> list[object]:
        """Take in the answer to a heartbeat and return what is done about it."""
        self.told.clear()
        quiet = Pulse(alive=True, now=NOW, workers=workers, newest=newest, sight=NOTHING)
        self.worker.attend(replace(quiet, **seen))
        return list(self.told)

    def stop_lost(self, _held: object, _asked_at: object) -> None: ...

    def drop_lost(self, _held: object, _asked_at: object) -> None: ...

    def cancel(self, _ids: object) -> None: ...

    def unknown(self, held: frozenset[Token]) -> frozenset[Token]:
        return held

    def holds(self, _token: Token) -> bool:
        return False

    def recall(self, strays: frozenset[Token]) -> frozenset[Token]:
        return strays

    def take_strays(self, strays: frozenset[Token]) -> None:
        self.told += strays

    def count_again(self) -> None: ...

    def expect_limited(self) -> None:
        self.told.append("limits")

    def look_soon(self) -> None:
        self.told.append("workers")

    def expect_end_of_lease(self, left: int) -> None:
        self.told.append(("lease", left))

    def sweep_soon(self) -> None:
        self.told.append("sweep")

    def expect(self, wait: object, now: int | None = None) -> None:
        if now is None:
            self.told.append(("job", wait))
        elif wait != NOTHING:
            self.told.append(("schedules", now))


def test_a_heartbeat_that_has_seen_nothing_has_nothing_done() -> None:
    services = Services()
    assert services.hear() == services.hear() == []
    assert services.crowd.workers == 1


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        ({"limited": True}, ["limits"]),
        ({"lease_ends": NOW + 7}, [("lease", 7)]),
        ({"sight": NOTHING._replace(orphans=True)}, [("schedules", NOW), "sweep"]),
        ({"sight": NOTHING._replace(due_at=NOW + 5)}, [("job", 5), ("schedules", NOW)]),
        ({"sight": None}, []),
    ],
)
def test_each_service_is_told_what_concerns_it(seen: dict[str, Any], told: list[object]) -> None:
    assert Services().hear(**seen) == told


def test_workers_that_were_there_before_this_one_are_known_and_those_that_came_since_are_not() -> None:
    assert Services().hear(workers=7, newest=NOW) == []
    assert Services().hear(workers=2, newest=NOW + 1) == ["workers"]


@pytest.mark.parametrize("fleet", [{"workers": 2}, {"workers": 4}, {"newest": NOW + 1, "workers": 3}])
def test_the_workers_are_looked_at_anew_when_some_have_come_or_gone(fleet: dict[str, int]) -> None:
    services = Services()
    services.hear(workers=3)
    assert services.hear(**fleet) == ["workers"]
    assert services.hear(**fleet) == []


def test_a_claim_that_is_not_known_is_taken_up_when_two_heartbeats_have_seen_it() -> None:
    services, stray = Services(), Token("job", 1, "claim")
    assert services.hear(held=frozenset({stray})) == []
    assert services.hear(held=frozenset({stray})) == [stray]


def test_that_someone_watches_reaches_the_journal() -> None:
    services = Services()
    services.hear(watched_until=NOW + 5)
    assert services.worker._outcomes.journal.until == NOW + 5
