from __future__ import annotations

import subprocess
import sys
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

import pytest
from asyncpg import connect_utils

from duetime.errors import ConfigError
from duetime.stores.open import open_store
from duetime.stores.sql.postgres.connection import PostgresConnector
from duetime.stores.sql.postgres.driver import PostgresDriver
from duetime.stores.sql.sqlite.driver import SqliteDriver
from duetime.stores.sql.sqlite.errors import StrPath
from duetime.stores.sql.store import SqlStore


def dsn(url: str) -> str:
    store = open_store(url)
    assert isinstance(store, SqlStore)
    assert isinstance(store._driver, PostgresDriver)
    connector = store._driver._connector
    assert isinstance(connector, PostgresConnector)
    return connector._dsn


def dsn_options(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(dsn(url)).query))


def read_by_driver(url: str) -> Any:
    names = "host port user password passfile database ssl service servicefile direct_tls server_settings"
    more = "target_session_attrs krbsrvname gsslib"
    read = cast("Any", connect_utils)._parse_connect_dsn_and_args
    return read(dsn=dsn(url), **dict.fromkeys(f"{names} {more}".split()))


def sqlite_path(url: str) -> StrPath | None:
    store = open_store(url)
    assert isinstance(store, SqlStore)
    assert isinstance(store._driver, SqliteDriver)
    return store._driver._database.path


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///jobs.db", "jobs.db"),
        ("sqlite:///data/jobs.db", "data/jobs.db"),
        ("sqlite:////var/lib/jobs.db", "/var/lib/jobs.db"),
        ("sqlite+aiosqlite:///jobs.db", "jobs.db"),
        ("sqlite+pysqlite:////jobs.db", "/jobs.db"),
        ("SQLite:///jobs.db", "jobs.db"),
        ("sqlite:///with%20space.db", "with space.db"),
        ("sqlite:///jobs.db?synchronous=normal", "jobs.db"),
        ("sqlite:///data/jobs.db/", "data/jobs.db"),
        ("sqlite:////", "/"),
        ("sqlite://", None),
        ("sqlite:///:memory:", None),
    ],
)
def test_a_sqlite_url_names_a_file_or_memory(url: str, path: str | None) -> None:
    assert sqlite_path(url) == path


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("jobs.db", "has no ://"),
        ("", "has no ://"),
        ("sqlite://jobs.db", "sqlite:///jobs.db"),
        ("sqlite:///jobs.db?synchronous=off", "FULL, NORMAL"),
        ("sqlite:///jobs.db?journal=wal", "unknown option 'journal'"),
        ("mysql://host", "names no database"),
        ("mariadb://host/db?sslmode=on", "unknown option"),
        ("valkey://host", "not a database we know"),
        ("redis://host?pol=3", "unknown option 'pol'"),
        ("redis://host?pool=0", "pool must be a number from 1 to 1000"),
        ("redis://host?strict=perhaps", "strict must be one of false, true"),
        ("redis+sentinel://host", "names the service"),
        ("redis+proxy://host", "is not a way to reach Redis"),
        ("redis://host/jobs", "a database of Redis is a number, not 'jobs'"),
        ("redis+sentinel://host/jobs/one", "a database of Redis is a number, not 'one'"),
        ("redis://host?ssl_ca_certs=ca.pem", "ssl_ca_certs is for TLS: begin the URL with rediss"),
        ("rediss://host?ssl_ca_certs=missing.pem", "ssl_ca_certs=missing.pem"),
        ("rediss://host?ssl_keyfile=own.key", "ssl_keyfile=own.key"),
        ("rediss://host?ssl_cert_reqs=some", "ssl_cert_reqs must be one of required, optional, none"),
        ("rediss://host?ssl_check_hostname=perhaps", "ssl_check_hostname must be one of true, false"),
        ("oracle://host/db", "not a database we know"),
        ("postgresql://host/db?pool=many", "pool"),
        ("postgresql://host/db?pool=0", "pool"),
        ("postgresql://host/db?pooler=session", "pooler"),
        ("postgresql://host/db?colour=red", "unknown option 'colour'; options are"),
        ("postgresql://host/db?sslmod=require", "unknown option 'sslmod'; did you mean sslmode? options are"),
        ("postgresql://host:port/db", "the port in the URL is not a number from 1 to 65535"),
        ("postgresql://host:99999/db", "the port in the URL"),
        ("postgresql://host:0/db", "the port in the URL"),
        ("postgresql://host:٣/db", "the port in the URL"),
        ("postgresql://host/db?port=x", "the port in the URL"),
        ("postgresql://host/db?port=1,x", "the port in the URL"),
        ("postgresql://one,,two/db", "empty place"),
        ("postgresql://host/db?host=one,,two", "empty place"),
        ("postgresql://host/db?sslmode=", "the option sslmode in the URL has no value"),
        ("postgresql://[::1/db", "the host in the URL is not one"),
        ("postgresql://::1/db", "the host in the URL is not one"),
        ("postgresql://[host]/db", "the host in the URL is not one"),
        ("postgresql://a%20host/db", "the host in the URL is not one"),
        (f"postgresql://{'a' * 64}/db", "the host in the URL is not one"),
        ("postgresql://a..b/db", "the host in the URL is not one"),
        ("mariadb://host:x/db", "the port in the URL"),
        ("mariadb://[::1/db", "the host in the URL is not one"),
        ("mariadb://one,two/db", "names one host"),
        ("redis://host:x", "the port in the URL"),
        ("redis://host:99999", "the port in the URL"),
        ("redis://[::1", "the host in the URL is not one"),
        ("unix://host/run/redis.sock", "names no host"),
        ("redis://one,two", "several hosts are for Sentinel or a cluster"),
        ("redis://host/٣", "a database of Redis is a number"),
        ("redis+cluster://one,two:x", "the port in the URL"),
        ("postgresql://me@host/db\n", "a line break or a control character"),
        ("postgresql://me:pass word@host/db", "a space, a line break or a control character"),
        ("postgresql://me@host/d%00b", "a NUL"),
        ("sqlite:///d%00b", "a NUL"),
        (f"postgresql://host/db?sslrootcert={__file__}&sslmode=prefer", "use sslmode=verify-full"),
        (f"postgresql://host/db?sslrootcert={__file__}&sslmode=disable", "use sslmode=verify-full"),
        ("postgresql://host/db?sslrootcert=missing.pem", "the file that sslrootcert names .* 'missing.pem'"),
        ("postgresql://host/db?sslkey=/", "the file that sslkey names in the URL cannot be read"),
        ("mariadb://host/db?ssl_ca=missing.pem", "the file that ssl_ca names .* 'missing.pem'"),
        (f"postgresql://host/{'x' * 1_000_000}", "at most 4,096 characters; this one has 1,000,018"),
        (f"redis://host?{'x' * 4_000}=1", "unknown option 'xxxx"),
    ],
)
def test_a_bad_url_is_refused_with_what_to_write(url: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says.replace("?", r"\?")) as refused:
        open_store(url)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:secret@host/db?pool=none",
        "postgresql://me:secret@host:port/db",
        "mysql://me:secret@host",
        "oracle://me:secret@host/db",
        "me:secret@host/db",
        "sqlite://me:secret@host/db",
        *(
            f"{scheme}://me:{password}@host/0"
            for scheme in ("postgresql", "mariadb", "redis", "redis+sentinel")
            for password in (
                "#secret",
                "secret#1",
                "/secret",
                "sec/secret",
                "?secret",
                "secret?pool=3",
                "a@secret/1",
            )
        ),
        "postgresql://me:secret",
        "mariadb://me:secret/db",
        "redis://:secret",
        "redis://:1234?secret@host",
    ],
)
def test_a_message_never_has_the_password(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        open_store(url)
    assert "sec" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "mode"),
    [
        ("postgresql://host/db", None),
        (f"postgresql://host/db?sslrootcert={__file__}", "verify-full"),
        (f"postgresql://host/db?sslrootcert={__file__}&sslmode=verify-ca", "verify-ca"),
        (f"postgresql://host/db?sslrootcert={__file__}&sslmode=require", "require"),
    ],
)
def test_who_names_a_certificate_to_trust_has_the_server_checked(url: str, mode: str | None) -> None:
    assert dsn_options(url).get("sslmode") == mode


def test_a_certificate_of_the_environment_counts_as_one_of_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSSLROOTCERT", "ca.pem")
    assert dsn_options("postgresql://host/db")["sslmode"] == "verify-full"
    monkeypatch.setenv("PGSSLMODE", "require")
    assert "sslmode" not in dsn_options("postgresql://host/db")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://a%2Fb:s%23%2F%3F%40%25t@db.example:5433,[::1]:7/my%20jobs?application_name=a%26b",
        "postgresql://a%2Fb:s#/?@%t@db.example:5433,[::1]:7/my%20jobs".replace("#/?@%", "%23%2F%3F@%25"),
    ],
)
def test_the_driver_reads_what_was_meant(url: str) -> None:
    [*addresses], params = read_by_driver(url)
    assert addresses == [("db.example", 5433), ("::1", 7)]
    assert (params.user, params.password, params.database) == ("a/b", "s#/?@%t", "my jobs")


def test_a_namespace_that_cannot_be_a_table_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="namespace"):
        open_store("sqlite://", namespace="drop table")


def test_no_driver_is_imported_before_a_url_asks_for_it() -> None:
    code = (
        "import sys, duetime, duetime.stores.open as o; before = {'asyncpg', 'sqlite3'} & set(sys.modules); "
        "o.open_store('sqlite://'); after = {'asyncpg', 'sqlite3'} & set(sys.modules); print(before, after)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set() {'sqlite3'}"
