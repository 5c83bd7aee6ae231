"""A store reaches its Redis by TLS, and says what is wrong with certificates."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from duetime.errors import StoreError, StoreUnavailable, StoreUnusable
from duetime.stores.open import open_store
from tests.integration.redis.kit import lives_and_is_heard_of, opened, tell
from tests.integration.refusals import finding
from tools.servers import RedisServer
from tools.servers.certificates import Authority, Certificate
from tools.servers.process import HOST, free_port


class SecretiveRedis(RedisServer):
    """A Redis that also has a port for TLS."""

    def __init__(self, shown: Certificate, authority: Authority) -> None:
        self.tls_port = free_port()
        super().__init__(
            *("--tls-port", str(self.tls_port), "--tls-auth-clients", "no"),
            *("--tls-cert-file", str(shown.file), "--tls-key-file", str(shown.key)),
            *("--tls-ca-cert-file", str(authority.file)),
        )

    def tls_url(self, **options: object) -> str:
        """Return its address by TLS."""
        return f"rediss://{HOST}:{self.tls_port}/0?" + "&".join(
            f"{key}={value}" for key, value in options.items()
        )


@pytest.fixture(scope="module")
def server(authority: Authority) -> Iterator[SecretiveRedis]:
    with SecretiveRedis(authority.sign("server"), authority) as server:
        yield server


async def test_one_server_by_tls(server: SecretiveRedis, authority: Authority) -> None:
    server.flush()
    await lives_and_is_heard_of(server.tls_url(ssl_ca_certs=authority.file))


@pytest.mark.covers("password-in-clear")
async def test_the_doctor_says_how_the_connection_is_encrypted(
    server: SecretiveRedis, authority: Authority
) -> None:
    for url, says in (
        (server.tls_url(ssl_ca_certs=authority.file), "certificate and host name of the server are checked"),
        (
            server.tls_url(ssl_ca_certs=authority.file, ssl_check_hostname="false"),
            "the certificate of the server is checked, its host name is not",
        ),
        (
            server.tls_url(ssl_cert_reqs="none"),
            "the certificate of the server is not checked: another server may have answered",
        ),
    ):
        tls = await finding(url, "tls")
        assert tls.detail.startswith("TLSv1.")
        assert tls.detail.endswith(f"; {says}")
    tls = await finding(server.url(), "tls")
    assert tls.detail == "not encrypted; the server is on this host"


async def test_a_certificate_that_nobody_here_trusts_is_told_of_with_the_option_that_is_missing(
    server: SecretiveRedis,
) -> None:
    with Authority() as stranger:
        for url in (server.tls_url(), server.tls_url(ssl_ca_certs=stranger.file)):
            with pytest.raises(StoreUnusable, match=r"not trusted here .*\?ssl_ca_certs="):
                await open_store(url).open()
    async with opened(server.tls_url(ssl_cert_reqs="none")):
        pass


async def test_a_certificate_for_another_host_is_told_of_unless_hosts_are_not_checked(
    authority: Authority,
) -> None:
    with SecretiveRedis(authority.sign("elsewhere", host="DNS:elsewhere.example"), authority) as server:
        with pytest.raises(StoreUnusable, match="use a name in the URL that it is valid for"):
            await open_store(server.tls_url(ssl_ca_certs=authority.file)).open()
        async with opened(server.tls_url(ssl_ca_certs=authority.file, ssl_check_hostname="false")):
            pass


async def test_a_server_that_wants_to_see_a_certificate_is_shown_one(
    server: SecretiveRedis, authority: Authority
) -> None:
    await tell(server, "CONFIG", "SET", "tls-auth-clients", "yes")
    try:
        # The server hangs up; whether its reason arrives before that is a matter of luck.
        with pytest.raises(StoreError):
            await open_store(server.tls_url(ssl_ca_certs=authority.file)).open()
        own = authority.sign("client")
        shown = server.tls_url(ssl_ca_certs=authority.file, ssl_certfile=own.file, ssl_keyfile=own.key)
        async with opened(shown):
            pass
    finally:
        await tell(server, "CONFIG", "SET", "tls-auth-clients", "no")


async def test_a_port_that_answers_without_tls_is_told_of() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"-ERR what is that?\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, HOST) as plain:
        port = plain.sockets[0].getsockname()[1]
        with pytest.raises(StoreUnusable, match="does not speak TLS"):
            await open_store(f"rediss://{HOST}:{port}/0").open()


async def test_a_redis_without_tls_which_waits_for_more_is_told_of_as_one_by_tls(redis: RedisServer) -> None:
    with pytest.raises(StoreUnavailable, match=r"\(TLS\) at .* did not answer"):
        await open_store(f"rediss://{HOST}:{redis.port}/0?timeout=1").open()
