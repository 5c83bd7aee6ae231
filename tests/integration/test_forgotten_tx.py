"""An `enqueue` without `tx` beside one's own open transaction on SQLite, which would wait for itself."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from sqlite3 import Connection, connect

import pytest

from duetime import Scheduler, current_job
from duetime.stores.sql.sqlite.lock_holders import own_transaction

SCRIPT = """
import asyncio, logging, sqlite3, time
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from duetime import Scheduler
from duetime.errors import StoreUnavailable
from duetime.stores.sql.sqlite import connection

connection._LONGEST_WAIT = 3
said = []

class Handler(logging.Handler):
    def emit(self, record):
        said.append((time.monotonic(), record.getMessage()))

logging.getLogger("duetime.store").addHandler(Handler())
scheduler = Scheduler("sqlite:///shop.db")
INSERT = "INSERT INTO orders VALUES ('tea')"

@scheduler.task
def send_receipt(item: str) -> None: ...

{caller}

with sqlite3.connect("shop.db") as file:
    file.execute("CREATE TABLE orders (item TEXT)")
scheduler.sync.jobs.list()  # opens it, with its tables
scheduler.sync.close()
began = time.monotonic()
try:
    asyncio.run(order()) if asyncio.iscoroutinefunction(order) else order()
except StoreUnavailable as error:
    [(at, text)] = said
    print(at - began)
    print(text)
    print(error)
else:
    raise SystemExit("it was stored")
with sqlite3.connect("shop.db") as file:
    print(file.execute("SELECT count(*) FROM orders").fetchone())
send_receipt.sync.enqueue("tea")  # now that the transaction is over
"""
CALLERS = {
    "sqlite3": """
        async def order():
            async with scheduler:
                with sqlite3.connect("shop.db") as shop:
                    shop.execute(INSERT)
                    await send_receipt.enqueue("tea")
        """,
    "sqlite3 without a loop": """
        def order():
            with sqlite3.connect("shop.db") as shop:
                shop.execute(INSERT)
                send_receipt.sync.enqueue("tea")
        """,
    "session": """
        async def order():
            async with scheduler:
                with Session(sa.create_engine("sqlite:///shop.db")) as session, session.begin():
                    session.execute(sa.text(INSERT))
                    await send_receipt.enqueue("tea")
        """,
    "session without a loop": """
        def order():
            with Session(sa.create_engine("sqlite:///shop.db")) as session, session.begin():
                session.execute(sa.text(INSERT))
                scheduler.sync.enqueue_many([send_receipt.call("tea"), send_receipt.call("salt")])
        """,
    "async session": """
        async def order():
            engine = create_async_engine("sqlite+aiosqlite:///shop.db")
            try:
                async with scheduler, AsyncSession(engine) as session, session.begin():
                    await session.execute(sa.text(INSERT))
                    await send_receipt.enqueue("tea")
            finally:
                await engine.dispose()
        """,
}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds the locks of a file")
@pytest.mark.parametrize("kind", CALLERS)
def test_a_caller_that_forgets_tx_is_told_so_long_before_it_would_give_up(kind: str, tmp_path: Path) -> None:
    script = SCRIPT.format(caller=textwrap.dedent(CALLERS[kind]))
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    seconds, text, error, orders = done.stdout.splitlines()
    assert float(seconds) < 3
    assert text == (
        "a transaction of this process keeps shop.db locked; to store a job in it, use options(tx=...) with its "
        "connection or session, else end it before you enqueue"
    )
    assert "options(tx=...)" in error
    assert orders == "(0,)"  # Rolled back by the error.


@pytest.fixture
def path(sqlite_url: str) -> str:
    scheduler = Scheduler(sqlite_url)
    scheduler.sync.jobs.list()
    scheduler.sync.close()
    return sqlite_url.removeprefix("sqlite:///")


@contextmanager
def writing(path: str) -> Generator[Connection]:
    with closing(connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


def test_a_transaction_of_another_process_is_waited_for(path: str) -> None:
    program = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('BEGIN IMMEDIATE'); print(flush=True); input()"
    command = [sys.executable, "-c", program, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with closing(connect(path)) as reader:  # One that reads is in no one's way.
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM duetime_jobs")
            assert own_transaction(path) is None
        other.communicate("\n")
    with writing(path):
        assert "tx=" in (own_transaction(path) or "")


async def test_a_handlers_transaction_is_waited_for(path: str, sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url)

    @scheduler.task(name="transfer")
    async def transfer() -> None:
        async with current_job().transaction():
            assert own_transaction(path) is None

    async with scheduler, scheduler.worker():
        await (await transfer.enqueue()).result(timeout=30)
    with writing(path):
        assert "tx=" in (own_transaction(path) or "")
