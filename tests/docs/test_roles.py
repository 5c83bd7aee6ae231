from __future__ import annotations

from collections.abc import Iterator

import pytest

from duetime import Scheduler
from tests.docs.snippets import ROOT, read_blocks
from tools.servers import Postgres

ROLE = "app"


@pytest.fixture
def role_url(postgres: Postgres, postgres_database: str) -> Iterator[str]:
    """The address of the database for a role that may do nothing yet."""
    role = f"{ROLE}_{postgres_database}"
    postgres.execute(f'CREATE ROLE "{role}" LOGIN')
    yield postgres.url(postgres_database).replace("postgres@", f"{role}@")
    postgres.execute(f'DROP OWNED BY "{role}"', database=postgres_database)
    postgres.execute(f'DROP ROLE "{role}"')


async def test_the_rights_that_the_guide_grants_are_enough_for_a_worker(
    postgres: Postgres, postgres_url: str, postgres_database: str, role_url: str
) -> None:
    async with Scheduler(postgres_url):
        pass  # The owner has made the tables.
    guide = (ROOT / "docs/how-to/postgresql.md").read_text(encoding="utf-8")
    (grants,) = (block.text for block in read_blocks(guide) if block.language == "sql")
    role = f'TO "{ROLE}_{postgres_database}"'
    postgres.execute(grants.replace(f"TO {ROLE}", role), database=postgres_database)

    scheduler = Scheduler(role_url, auto_migrate=False)

    @scheduler.task(name="add")
    async def add(a: int, b: int) -> int:
        return a + b

    async with scheduler, scheduler.worker() as worker:
        job = await add.options(delay=0.1).enqueue(1, 2)
        assert await job.result(timeout=20) == 3
        assert worker.health.healthy, worker.health.failing
