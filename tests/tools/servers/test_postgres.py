from __future__ import annotations

import pytest

from tools.servers import PostgresServer
from tools.servers.process import ServerFailed, listening


def test_a_server_answers_while_it_is_open_and_leaves_nothing_behind() -> None:
    with PostgresServer() as server:
        assert server.execute("SELECT 1 + 1") == "2"
        folder = server._process.folder
    assert not listening(server.port)
    assert not folder.exists()


def test_committed_rows_survive_an_immediate_restart_and_a_kill(own_postgres: PostgresServer) -> None:
    own_postgres.create_database("kept")
    own_postgres.execute("CREATE TABLE kept AS SELECT 1 AS id", database="kept")

    own_postgres.restart("immediate")
    own_postgres.execute("INSERT INTO kept VALUES (2)", database="kept")
    own_postgres.kill()
    own_postgres.start()

    assert own_postgres.execute("SELECT sum(id) FROM kept", database="kept") == "3"


def test_a_server_is_durable_and_roomy_unless_told_otherwise(own_postgres: PostgresServer) -> None:
    assert own_postgres.execute("SHOW fsync") == "on"
    assert own_postgres.execute("SHOW max_connections") == "200"


def test_a_statement_that_fails_raises_what_the_server_said(own_postgres: PostgresServer) -> None:
    with pytest.raises(ServerFailed, match="does not exist"):
        own_postgres.execute("SELECT * FROM nowhere")
