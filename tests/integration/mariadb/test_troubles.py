"""What is wrong with a MariaDB, or the way to it, is named with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from duetime.errors import StoreUnavailable, StoreUnusable
from tests.integration.refusals import finding, refusal
from tools.servers import MariaDb, MariaDbServer
from tools.servers.certificates import Authority
from tools.servers.process import free_port

pytestmark = pytest.mark.covers("unexplained-database")


class Odd(NamedTuple):
    """A server with TLS, a user with a password, and a binary log of statements; and the authority that signed its certificate."""

    place: str
    authority: Path


@pytest.fixture(scope="module")
def odd(authority: Authority) -> Iterator[Odd]:
    made = authority.sign("mariadb")
    settings = {
        "ssl-cert": str(made.file),
        "ssl-key": str(made.key),
        "log-bin": "log",
        "binlog-format": "STATEMENT",
    }
    with MariaDbServer(fsync=False, settings=settings) as server:
        server.create_database("jobs")
        server.execute("CREATE USER ann IDENTIFIED BY 'right'; GRANT ALL ON jobs.* TO ann")
        yield Odd(f"127.0.0.1:{server.port}/jobs", authority.file)


async def test_a_wrong_password_is_told_and_not_repeated(odd: Odd) -> None:
    refused = await refusal(f"mariadb://ann:wrong@{odd.place}")
    assert isinstance(refused, StoreUnusable)
    assert "ann may not log in" in str(refused)
    assert str(refused).endswith("; check the user and password in the URL")
    assert "wrong" not in str(refused)


async def test_a_certificate_of_an_unknown_authority_is_refused_with_the_option_to_name_it(odd: Odd) -> None:
    with Authority() as other:
        refused = await refusal(f"mariadb://ann:right@{odd.place}?ssl_ca={other.file}")
    assert isinstance(refused, StoreUnusable)
    assert "certificate that is not trusted" in str(refused)
    assert str(refused).endswith("; name who signed it: ?ssl_ca=ca.pem")


@pytest.mark.covers("password-in-clear")
async def test_the_host_of_a_certificate_is_checked(odd: Odd) -> None:
    elsewhere = odd.place.replace("127.0.0.1", "localhost")
    refused = await refusal(f"mariadb://ann:right@{elsewhere}?ssl_ca={odd.authority}")
    assert isinstance(refused, StoreUnusable)
    assert "localhost" in str(refused)


@pytest.mark.covers("password-in-clear")
async def test_the_doctor_says_how_the_connection_is_encrypted(odd: Odd) -> None:
    tls = await finding(f"mariadb://ann:right@{odd.place}?ssl_ca={odd.authority}", "tls")
    assert tls.ok
    assert tls.detail.startswith("TLSv1.")
    assert tls.detail.endswith("; certificate and host name of the server are checked")
    tls = await finding(f"mariadb://ann:right@{odd.place}", "tls")
    assert tls.detail == "not encrypted; the server is on this host"


async def test_a_binary_log_of_statements_is_named_by_the_error_and_by_the_doctor(odd: Odd) -> None:
    url = f"mariadb://ann:right@{odd.place}?ssl_ca={odd.authority}"
    refused = await refusal(url)
    assert isinstance(refused, StoreUnusable)
    assert str(refused).endswith("; set binlog_format to ROW")
    binlog = await finding(url, "binlog")
    assert not binlog.ok
    assert "STATEMENT" in binlog.detail


async def test_a_server_without_tls_is_told_as_such(mariadb: MariaDb, odd: Odd) -> None:
    refused = await refusal(f"{mariadb.url()}?ssl_ca={odd.authority}")
    assert isinstance(refused, StoreUnavailable)
    assert "by TLS" in str(refused)


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "nowhere.invalid"])
async def test_a_server_that_cannot_be_reached_is_told_with_its_address(host: str) -> None:
    place = host.format(port=free_port())
    refused = await refusal(f"mariadb://ann:secret@{place}/jobs")
    assert isinstance(refused, StoreUnavailable)
    assert f"MariaDB at {place} cannot be reached" in str(refused)
    assert str(refused).endswith("; check that it runs, and host and port in the URL")
