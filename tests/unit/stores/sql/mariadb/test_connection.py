"""What asyncmy's errors mean, and which servers will do."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Self

import asyncmy
import pytest

from duetime.errors import SchemaMismatch, StoreError, StoreUnavailable, StoreUnusable
from duetime.stores.sql.driver import AlreadyStored, ScriptUndone
from duetime.stores.sql.mariadb import connection as mariadb_connection
from duetime.stores.sql.mariadb.connection import MariaDbConnection, MariaDbConnector

CONNECTOR = MariaDbConnector("mariadb://ann:s3cret@db.example:3306/jobs")
ERRORS = CONNECTOR.errors


def refused(code: int, text: str = "no") -> asyncmy.OperationalError:
    return asyncmy.OperationalError(code, text)


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        (1045, StoreUnusable, "ann may not log in at db.example:3306"),
        (1049, StoreUnusable, 'there is no database "jobs"'),
        (1142, StoreUnusable, "grant ann the rights"),
        (1146, SchemaMismatch, "duetime migrate"),
        (1290, StoreUnavailable, "read-only"),
        (1665, StoreUnusable, "set binlog_format to ROW"),
        (3159, StoreUnusable, "ssl_ca"),
        (1114, StoreUnavailable, "disk"),
        (1040, StoreUnavailable, "max_connections"),
        (1969, StoreUnavailable, "took too long"),
        (2013, StoreUnavailable, "was lost"),
        (1213, StoreUnavailable, "too many others"),
        (1153, StoreError, "max_allowed_packet"),
        (1062, AlreadyStored, "no"),
        (1064, StoreError, "refused a statement"),
    ],
)
def test_a_refusal_is_told_in_our_own_words(code: int, kind: type[StoreError], said: str) -> None:
    with pytest.raises(kind, match=said) as told, CONNECTOR.errors:
        raise refused(code)
    assert type(told.value) is kind


def test_a_message_never_has_the_password() -> None:
    with pytest.raises(StoreError) as told, CONNECTOR.errors:
        raise refused(1045, "using s3cret")
    assert "s3cret" not in str(told.value)


@pytest.mark.parametrize("code", [1213, 1205, 1020])
def test_after_a_conflict_the_whole_verb_runs_again_on_the_same_connection(code: int) -> None:
    assert ERRORS.is_conflict(refused(code))
    assert ERRORS.spares_connection(refused(code))


@pytest.mark.parametrize("code", [2013, 1927, 1053])
def test_a_connection_that_is_lost_is_not_used_again(code: int) -> None:
    assert ERRORS.is_lost(refused(code))
    assert not ERRORS.spares_connection(refused(code))
    assert not ERRORS.was_never_sent(refused(code)), "it may have had its effect"


def test_what_was_never_sent_can_be_sent_again() -> None:
    assert ERRORS.was_never_sent(refused(2006))
    assert ERRORS.was_never_sent(asyncmy.InterfaceError(0, "Not connected"))


def test_a_read_only_server_is_left_for_another_connection() -> None:
    assert not ERRORS.spares_connection(refused(1290))


def test_a_script_that_takes_itself_back_spares_the_connection() -> None:
    assert ERRORS.spares_connection(ScriptUndone())


class Server:
    """A connection that has just been opened."""

    def __init__(self, version: str) -> None:
        self._version = version
        self.closed = False
        self.queries: list[str] = []

    def get_server_info(self) -> str:
        return self._version

    async def query(self, text: str) -> None:
        self.queries.append(text)

    def close(self) -> None:
        self.closed = True

    def cursor(self, _kind: object) -> Self:
        return self

    description = None
    rowcount = lastrowid = 0
    server_status = 0

    async def execute(self, text: str) -> None:
        self.queries.append(text)
        self.description = ("max",) if "max_allowed_packet" in text else None

    async def fetchall(self) -> list[tuple[int]]:
        return [(2**20,)]

    def literal(self, value: object) -> str:
        assert not isinstance(value, str), "the driver takes too long for it"
        return str(value)


async def connect(server: Server, monkeypatch: pytest.MonkeyPatch) -> MariaDbConnection:
    async def opened(**_: Any) -> Server:
        return server

    monkeypatch.setattr(mariadb_connection, "open_connection", opened)
    return await MariaDbConnector("mariadb://db.example/jobs").connect()


@pytest.mark.parametrize("version", ["10.5.29-MariaDB", "5.5.5-10.3.39-MariaDB-log", "5.7.44-log", "nothing"])
async def test_a_server_that_lacks_what_we_need_is_refused(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(version)
    with pytest.raises(StoreUnusable, match=r"use MariaDB 10\.6 or MySQL 8\.0, or a later one"):
        await connect(server, monkeypatch)
    assert server.closed
    assert server.queries == []


@pytest.mark.parametrize(
    "version",
    [
        "10.6.0-MariaDB",
        "5.5.5-10.11.19-MariaDB-0+deb12u1",
        "11.4.2-MariaDB-log",
        "8.0.36",
        "9.1.0-commercial",
    ],
)
async def test_a_newer_one_gets_our_settings(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(version)
    await connect(server, monkeypatch)
    assert any("READ COMMITTED" in text for text in server.queries)
    assert not server.closed


@pytest.mark.parametrize("version", ["8.0.36", "8.4.3-log"])
async def test_a_mysql_is_asked_for_nothing_that_only_mariadb_has(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(version)
    session = await connect(server, monkeypatch)
    await session.fetch("SELECT 'a' COLLATE utf8mb4_nopad_bin", {})
    asked = " ".join(server.queries)
    assert "utf8mb4_0900_bin" in asked
    for word in ("nopad_bin", "max_statement_time", "idle_transaction_timeout", "SIMULTANEOUS_ASSIGNMENT"):
        assert word not in asked


@pytest.mark.parametrize(
    ("status", "sent"),
    [(0, r"SELECT 'it''s \\ 100 %% %(n)s', 1"), (512, r"SELECT 'it''s \ 100 %% %(n)s', 1")],
    ids=["backslashes escape", "backslashes are letters"],
)
async def test_texts_are_quoted_as_the_server_reads_them(
    status: int, sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server("10.11.2-MariaDB")
    session = await connect(server, monkeypatch)
    server.server_status = status
    await session.fetch("SELECT %(text)s, %(n)s", {"text": r"it's \ 100 %% %(n)s", "n": 1})
    assert server.queries[-1] == sent


async def test_what_the_server_would_not_take_is_never_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server("10.11.2-MariaDB")
    session = await connect(server, monkeypatch)
    await session.fetch("SELECT %(text)s", {"text": "x" * 2**19})
    assert server.queries[-1].startswith("SELECT 'x")
    with pytest.raises(StoreError, match=r"max_allowed_packet \(1048576\); raise it") as told:
        await session.fetch("SELECT %(text)s", {"text": "\N{PILE OF POO}" * 2**18})
    assert type(told.value) is StoreError, "who tries again would fail again"
    assert ERRORS.spares_connection(told.value)
    assert server.queries[-1] == "SELECT @@max_allowed_packet"


async def test_a_small_statement_costs_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server("10.11.2-MariaDB")
    session = await connect(server, monkeypatch)
    await session.fetch("SELECT %(text)s", {"text": "x"})
    assert not any("max_allowed_packet" in text for text in server.queries)


class Deaf(Server):
    """Loses a cancellation that comes together with an answer, as the driver does."""

    async def query(self, text: str) -> None:
        await self.execute(text)

    async def execute(self, text: str) -> None:
        await super().execute(text)
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60 if text == "linger" else 0)


async def test_whoever_is_cancelled_ends_also_where_the_driver_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = await connect(Deaf("10.11.2-MariaDB"), monkeypatch)
    for call in (session.fetch("linger", {}), session.execute("linger")):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await call
