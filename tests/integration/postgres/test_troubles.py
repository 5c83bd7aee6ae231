"""What is wrong with a PostgreSQL, or the way to it, is named with what to do about it."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import asyncpg
import pytest

from duetime.errors import StoreUnavailable, StoreUnusable
from duetime.stores.open import open_store
from duetime.testing.conformance.kit import put
from tests.integration.refusals import finding, refusal
from tools.servers import Postgres, PostgresServer
from tools.servers.certificates import Authority
from tools.servers.process import free_port

pytestmark = pytest.mark.covers("unexplained-database")


class Guarded(NamedTuple):
    """A server that wants TLS and a password, and the authority that signed its certificate."""

    place: str
    authority: Path


@pytest.fixture(scope="module")
def guarded(authority: Authority) -> Iterator[Guarded]:
    with PostgresServer(fsync=False) as server:
        made = authority.sign("postgres")
        data = Path(server.execute("SHOW data_directory"))
        for name, file in (("server.crt", made.file), ("server.key", made.key)):
            shutil.copy(file, data / name)
            owner = data.stat()
            os.chown(data / name, owner.st_uid, owner.st_gid)
            (data / name).chmod(0o600)
        server.execute("CREATE ROLE ann LOGIN PASSWORD 'right'")
        (data / "pg_hba.conf").write_text("hostssl all all all scram-sha-256\n")
        server.execute("ALTER SYSTEM SET ssl = on")
        server.restart()
        yield Guarded(f"127.0.0.1:{server.port}/postgres", authority.file)


async def test_a_wrong_password_is_told_and_not_repeated(guarded: Guarded) -> None:
    refused = await refusal(f"postgresql://ann:wrong@{guarded.place}?sslmode=require")
    assert isinstance(refused, StoreUnusable)
    assert "ann may not log in" in str(refused)
    assert "; check the user and password in the URL" in str(refused)
    assert "wrong" not in str(refused)


async def test_a_server_that_wants_tls_says_so(guarded: Guarded) -> None:
    refused = await refusal(f"postgresql://ann:right@{guarded.place}?sslmode=disable")
    assert isinstance(refused, StoreUnusable)
    assert "no encryption" in str(refused)


async def test_a_certificate_of_an_unknown_authority_is_refused_with_the_option_to_name_it(
    guarded: Guarded,
) -> None:
    with Authority() as other:
        url = f"postgresql://ann:right@{guarded.place}?sslmode=verify-full"
        refused = await refusal(f"{url}&sslrootcert={other.file}")
        assert isinstance(refused, StoreUnusable)
        assert "certificate that is not trusted" in str(refused)
        assert str(refused).endswith("; name who signed it: ?sslrootcert=ca.pem")
    connection = await asyncpg.connect(f"{url}&sslrootcert={guarded.authority}")
    await connection.close()


@pytest.mark.covers("password-in-clear")
async def test_a_certificate_to_trust_has_the_server_checked_without_further_words(guarded: Guarded) -> None:
    url = f"postgresql://ann:right@{guarded.place}"
    with Authority() as other:
        refused = await refusal(f"{url}?sslrootcert={other.file}")
    assert isinstance(refused, StoreUnusable)
    assert "certificate that is not trusted" in str(refused)
    elsewhere = url.replace("127.0.0.1", "localhost")
    refused = await refusal(f"{elsewhere}?sslrootcert={guarded.authority}")
    assert isinstance(refused, StoreUnusable)
    assert "localhost" in str(refused)


@pytest.mark.covers("password-in-clear")
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("", "; the certificate of the server is not checked: another server may have answered"),
        ("?sslrootcert={authority}", "; certificate and host name of the server are checked"),
        (
            "?sslmode=verify-ca&sslrootcert={authority}",
            "; the certificate of the server is checked, its host name is not",
        ),
    ],
)
async def test_the_doctor_says_how_the_connection_is_encrypted(
    guarded: Guarded, options: str, says: str
) -> None:
    url = f"postgresql://ann:right@{guarded.place}{options.format(authority=guarded.authority)}"
    tls = await finding(url, "tls")
    assert tls.detail.startswith("TLSv1.")
    assert tls.detail.endswith(says)


@pytest.mark.covers("password-in-clear")
async def test_the_doctor_says_that_a_connection_is_not_encrypted(postgres_url: str) -> None:
    tls = await finding(postgres_url, "tls")
    assert tls.ok
    assert tls.detail == "not encrypted; the server is on this host"


# The driver forgets to close its socket then.
@pytest.mark.filterwarnings(
    "ignore:.*unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
async def test_a_server_without_tls_is_told_as_such(postgres: Postgres) -> None:
    refused = await refusal(f"{postgres.url()}?sslmode=require")
    gc.collect()
    assert isinstance(refused, StoreUnusable)
    assert str(refused).endswith("does not speak TLS; set ssl = on in its settings")


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "nowhere.invalid"])
async def test_a_server_that_cannot_be_reached_is_told_with_its_address(host: str) -> None:
    place = host.format(port=free_port())
    refused = await refusal(f"postgresql://ann:secret@{place}/jobs")
    assert isinstance(refused, StoreUnavailable)
    assert f"PostgreSQL at {place} cannot be reached" in str(refused)
    assert str(refused).endswith("; check that it runs, and host and port in the URL")


async def test_a_database_that_is_read_only_is_told_by_the_doctor_and_by_the_error(
    postgres: Postgres, postgres_database: str
) -> None:
    store = open_store(postgres.url(postgres_database))
    await store.open()
    await store.close()
    postgres.execute(f"ALTER DATABASE {postgres_database} SET default_transaction_read_only = on")
    await store.open()
    try:
        with pytest.raises(StoreUnavailable, match=r"read-only at present .*; connect to the primary"):
            await put(store)
        found = {check.name: check.ok for check in await store.doctor()}
        assert (found["writable"], found["writes"]) == (False, False)
    finally:
        await store.close()


class Old:
    """A connection to a server of another time."""

    ended = False
    _transport = None

    def get_server_version(self) -> object:
        return asyncpg.types.ServerVersion(9, 4, 0, "final", 0)

    def terminate(self) -> None:
        self.ended = True


async def test_a_server_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    old = Old()

    async def connect(*_: object, **__: object) -> Old:
        return old

    monkeypatch.setattr(asyncpg, "connect", connect)
    refused = await refusal("postgresql://db.example/jobs")
    assert isinstance(refused, StoreUnusable)
    assert str(refused) == "PostgreSQL at db.example has version 9.4; upgrade it to 12 or later"
    assert old.ended
