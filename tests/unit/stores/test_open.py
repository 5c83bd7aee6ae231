from __future__ import annotations

import subprocess
import sys

import pytest

from duetime.errors import ConfigError
from duetime.stores.open import open_store, redact
from duetime.stores.sql.sqlite.driver import SqliteDriver
from duetime.stores.sql.sqlite.filesystem import StrPath
from duetime.stores.sql.store import SqlStore


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
        ("valkey://host", "not available in this version"),
        ("redis://host?pol=3", "unknown option 'pol'"),
        ("redis://host?pool=0", "pool must be a number from 1 to 1000"),
        ("redis://host?strict=perhaps", "strict must be true or false"),
        ("redis+sentinel://host", "names the service"),
        ("redis+proxy://host", "is not a way to reach Redis"),
        ("redis://host/jobs", "a database of Redis is a number, not 'jobs'"),
        ("redis+sentinel://host/jobs/one", "a database of Redis is a number, not 'one'"),
        ("redis://host?ssl_ca_certs=ca.pem", "ssl_ca_certs is for TLS: begin the URL with rediss"),
        ("rediss://host?ssl_ca_certs=missing.pem", "ssl_ca_certs=missing.pem"),
        ("rediss://host?ssl_keyfile=own.key", "ssl_keyfile=own.key"),
        ("rediss://host?ssl_cert_reqs=some", "ssl_cert_reqs must be one of required, optional, none"),
        ("rediss://host?ssl_check_hostname=perhaps", "ssl_check_hostname must be true or false"),
        ("oracle://host/db", "not a database we know"),
        ("postgresql://host/db?pool=many", "pool"),
        ("postgresql://host/db?pool=0", "pool"),
        ("postgresql://host/db?pooler=session", "pooler"),
        ("postgresql://host/db?colour=red", "unknown option 'colour'"),
        ("postgresql://host:port/db", "port"),
    ],
)
def test_a_bad_url_is_refused_with_what_to_write(url: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says.replace("?", r"\?")):
        open_store(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:secret@host/db?pool=none",
        "postgresql://me:secret@host:port/db",
        "mysql://me:secret@host",
        "oracle://me:secret@host/db",
        "me:secret@host/db",
    ],
)
def test_a_message_never_has_the_password(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        open_store(url)
    assert "secret" not in str(refused.value)


def test_a_redacted_url_keeps_all_but_the_password() -> None:
    assert redact("postgresql://me:s:e@cret@host:5/db?pool=3") == "postgresql://me:***@host:5/db?pool=3"
    assert redact("postgresql://me@host/db") == "postgresql://me@host/db"
    assert redact("sqlite:///jobs.db") == "sqlite:///jobs.db"


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
