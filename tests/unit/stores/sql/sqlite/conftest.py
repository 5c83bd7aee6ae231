"""A database with one table."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from duetime.stores.sql.sqlite import database as database_module
from duetime.stores.sql.sqlite.database import Database
from tests.unit.stores.sql.sqlite.kit import write


@pytest.fixture(autouse=True)
def each_commit_looks_at_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks at the log are a few milliseconds apart, and these tests are quicker than that."""
    monkeypatch.setattr(database_module, "LOG_LOOKS", 0.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lane.db"


@pytest.fixture
async def database(path: Path) -> AsyncIterator[Database]:
    database = Database(path)
    await database.open()
    await write(database.writer, "CREATE TABLE t (n integer PRIMARY KEY)")
    yield database
    await database.close()
