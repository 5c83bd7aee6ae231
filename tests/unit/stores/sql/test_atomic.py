"""What takes several statements is asked for as one transaction; what takes one is not, for it is quicker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import pytest

from duetime.model.job import Token
from duetime.model.outcome import Settlement
from duetime.model.reports import NewLogPart, Progress
from duetime.model.states import State
from duetime.stores.sql.driver import Driver, Row, Script
from duetime.stores.sql.postgres.dialect import POSTGRES
from duetime.stores.sql.store import SqlStore
from duetime.testing.clock import FakeClock

T = TypeVar("T")

TOKEN = Token("job", 1, "claim")
LOG = NewLogPart(TOKEN, 1, 1, "line")
SUCCESS = Settlement(TOKEN, State.SUCCEEDED, 1, 2)
ANSWERS: dict[str, list[Row]] = {"succeed": [(1,)], "settle": [TOKEN], "holders": [("job", "w1", 1)]}


class CountingDriver:
    """Plays scripts without a database, and notes what was asked for and what it took."""

    def __init__(self) -> None:
        self.atomic: bool | None = None
        self.statements: list[str] = []

    async def write(self, script: Callable[[], Script[T]], *, atomic: bool = True, **_: object) -> T:
        self.atomic = atomic
        steps = script()
        try:
            query = next(steps)
            while True:
                self.statements.append(query.statement.name)
                query = steps.send(ANSWERS.get(query.statement.name, []))
        except StopIteration as stop:
            answer: T = stop.value
            return answer

    def hint(self, hint: object) -> None:
        pass


@pytest.fixture
def driver() -> CountingDriver:
    return CountingDriver()


@pytest.fixture
def store(driver: CountingDriver) -> SqlStore:
    return SqlStore(
        cast("Driver", driver), POSTGRES, namespace="duetime", clock=FakeClock(), url="", auto_migrate=False
    )


@pytest.mark.parametrize(
    ("changes", "statements"),
    [
        ({}, ["succeed"]),
        ({"logs": (LOG,)}, ["succeed", "add_logs"]),
        ({"progress": Progress(TOKEN, 0.5)}, ["note_progress", "succeed"]),
        ({"state": State.FAILED, "error": "boom"}, ["settle"]),
        ({"state": State.PENDING, "attempt": "error"}, ["holders", "settle", "add_attempts"]),
    ],
)
async def test_settle(
    store: SqlStore, driver: CountingDriver, changes: dict[str, Any], statements: list[str]
) -> None:
    await store.settle([SUCCESS._replace(**changes)])
    assert driver.statements == statements
    assert driver.atomic is (len(statements) > 1)


@pytest.mark.parametrize(
    ("progress", "logs", "statements"),
    [
        ([], [], []),
        ([Progress(TOKEN, 0.5)], [], ["note_progress"]),
        ([], [LOG], ["add_logs"]),
        ([Progress(TOKEN, 0.5)], [LOG], ["note_progress", "add_logs"]),
        ([], [LOG._replace(drop=(1, 2))], ["add_logs", "drop_logs"]),
    ],
)
async def test_report(
    store: SqlStore,
    driver: CountingDriver,
    progress: list[Progress],
    logs: list[NewLogPart],
    statements: list[str],
) -> None:
    await store.report(progress, logs)
    assert driver.statements == statements
    assert bool(driver.atomic) is (len(statements) > 1)
