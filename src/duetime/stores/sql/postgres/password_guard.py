"""Keeps asyncpg from sending a password in clear to another host without TLS, whatever a server asks for.

The driver answers each request for a password, and by default goes on without TLS if a server refuses it: a rogue server, or
a host in between, would get the password. The driver has no setting against that, but it accepts an event loop, by which
it makes its connections.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any, Final

from duetime.stores.base.encryption import may_send_password

_HASH: Final = re.compile(rb"md5[0-9a-f]{32}\0")


class PasswordGuardLoop:
    """The running event loop, on whose plain connections to other hosts no password is sent in clear."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.refused = False
        """Whether a server has asked for the password in clear, and did not get it."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._loop, name)
        # Found without us from now on: some are called for each statement.
        setattr(self, name, value)
        return value

    async def create_connection(self, make: Callable[[], Any], *args: Any, **options: Any) -> Any:
        """Connect; the driver speaks by our transport, whether it is handed over here or by the event loop."""

        def cautious() -> Any:
            protocol = make()

            def begin(transport: Any) -> None:
                del protocol.connection_made
                protocol.connection_made(self._guarded(transport))

            protocol.connection_made = begin
            return protocol

        transport, protocol = await self._loop.create_connection(cautious, *args, **options)
        return self._guarded(transport), protocol

    async def start_tls(self, transport: Any, *args: Any, **options: Any) -> Any:
        """Encrypt a connection, which then needs no guard."""
        return await self._loop.start_tls(getattr(transport, "plain", transport), *args, **options)

    def release(self, connection: Any) -> None:
        """Have a connection that has logged in use the event loop itself, and its own transport."""
        connection._loop = self._loop  # noqa: SLF001 -- asyncio knows its tasks by their loop
        connection._transport = getattr(connection._transport, "plain", connection._transport)  # noqa: SLF001

    def _guarded(self, transport: Any) -> Any:
        if may_send_password(transport):
            return transport
        return _PasswordGuardTransport(transport, self)


class _PasswordGuardTransport:
    """A transport that hangs up rather than send a password in clear."""

    def __init__(self, plain: Any, guard: PasswordGuardLoop) -> None:
        self.plain = plain
        self._guard = guard

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)

    def write(self, data: bytes) -> None:
        """Send something, unless it is a password."""
        if is_password_in_clear(data):
            self._guard.refused = True
            self.plain.abort()
        else:
            self.plain.write(data)


def is_password_in_clear(message: bytes) -> bool:
    """Whether a message of the client is a password as it is.

    Among the answers to a request to log in, only a password and its hash end with their only NUL, and the hash has a form
    of its own.
    """
    if bytes(message[:1]) != b"p":
        return False
    text = bytes(message[5:])
    return len(text) > 1 and text.find(0) == len(text) - 1 and not _HASH.fullmatch(text)
