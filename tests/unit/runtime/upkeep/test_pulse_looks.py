"""Which heartbeats look for what, and of which answers a worker has to hear."""

from __future__ import annotations

from dataclasses import replace

import pytest

from duetime.model.job import Token
from duetime.model.time import SECOND
from duetime.runtime.identity import WorkerIdentity
from duetime.runtime.service import FleetPacing
from duetime.runtime.upkeep import lease as module
from duetime.runtime.upkeep.lease import PulseLooks
from duetime.stores.base import Pulse, PulseFindings, PulseQuery

NOW = 1_700_000_000 * SECOND
NOTHING = PulseFindings(None, None, None, orphans=False)
QUIET = Pulse(alive=True, now=NOW, workers=1, newest=NOW, sight=NOTHING)
BEAT = 10 * SECOND


class Watched:
    """A lookout of a worker of a fleet, with the time in the hands of the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, workers: int = 1, fires: bool = True) -> None:
        self.now = 0
        monkeypatch.setattr(module, "monotonic", lambda: self.now)
        self.crowd = FleetPacing()
        self.crowd.workers = workers
        self.idle = True
        identity = WorkerIdentity(queues=("default",), slots=1, tasks=("greet",), fires=fires)
        self.lookout = PulseLooks(
            fleet=self.crowd, worker=identity.info, lease=30 * SECOND, is_idle=lambda: self.idle
        )

    def beat(self, answer: Pulse = QUIET) -> tuple[PulseQuery | None, bool]:
        wants = self.lookout.wants()
        news = self.lookout.is_news(answer, wants)
        self.now += BEAT
        return wants, news


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


def test_every_heartbeat_of_a_worker_that_is_alone_looks_for_everything(watched: Watched) -> None:
    everything = PulseQuery(queues=("default",), tasks=("greet",), schedules=True, orphans=True)
    assert [watched.beat()[0] for _ in range(3)] == [everything] * 3


def test_a_worker_that_fires_no_schedules_looks_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    wants, _ = Watched(monkeypatch, fires=False).beat()
    assert wants is not None
    assert not wants.schedules


@pytest.mark.covers("fleet-storm")
@pytest.mark.parametrize(("workers", "looks", "sweeps"), [(10, 60, 60), (100, 20, 20), (1_000, 20, 20)])
def test_the_heartbeats_of_a_fleet_look_in_turn(
    monkeypatch: pytest.MonkeyPatch, workers: int, looks: int, sweeps: int
) -> None:
    watched = Watched(monkeypatch, workers=workers)
    wants = [watched.beat()[0] for _ in range(60)]
    assert sum(one is not None and bool(one.queues) for one in wants) == looks
    assert sum(one is not None and one.orphans for one in wants) == sweeps


def test_a_look_whose_answer_did_not_come_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch, workers=1_000)
    assert watched.lookout.wants() == watched.lookout.wants() == watched.beat()[0]
    assert watched.lookout.wants() is None


def test_an_answer_that_says_what_the_last_one_said_is_no_news(watched: Watched) -> None:
    assert [watched.beat()[1] for _ in range(3)] == [True, False, False]


@pytest.mark.parametrize(
    "answer",
    [
        replace(QUIET, workers=2),
        replace(QUIET, newest=NOW + 1),
        replace(QUIET, limited=True),
        replace(QUIET, held=frozenset({Token("job", 1, "claim")})),
        replace(QUIET, sight=NOTHING._replace(orphans=True)),
        replace(QUIET, sight=NOTHING._replace(due_at=NOW - SECOND)),
        replace(QUIET, sight=NOTHING._replace(due_at=NOW + 60 * SECOND)),
        replace(QUIET, sight=NOTHING._replace(fires_at=NOW + 60 * SECOND)),
        replace(QUIET, sight=NOTHING._replace(resumes_at=NOW + 60 * SECOND)),
    ],
)
def test_what_the_worker_may_have_to_act_on_is_news(watched: Watched, answer: Pulse) -> None:
    watched.beat()
    assert watched.beat(answer)[1]


@pytest.mark.parametrize(("left", "news"), [(-SECOND, True), (15 * SECOND, True), (20 * SECOND, False)])
def test_a_lease_that_is_half_over_is_news_and_one_that_is_kept_is_not(
    watched: Watched, left: int, news: bool
) -> None:
    watched.beat()
    assert watched.beat(replace(QUIET, lease_ends=NOW + left))[1] is news


def test_what_comes_much_later_will_be_told_later(watched: Watched) -> None:
    watched.beat()
    later = PulseFindings(NOW + 3600 * SECOND, NOW + 3600 * SECOND, NOW + 3600 * SECOND, orphans=False)
    assert not watched.beat(replace(QUIET, sight=later))[1]


def test_a_worker_that_has_jobs_hears_every_answer(watched: Watched) -> None:
    watched.beat()
    watched.idle = False
    assert [watched.beat()[1] for _ in range(2)] == [True, True]
