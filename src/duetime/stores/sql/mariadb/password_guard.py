"""Keeps asyncmy from giving a password away to another host without TLS, whatever a server asks for.

If a server asks for it, the driver sends it in clear, or encrypted for a key that the same server has just sent.
"""

from __future__ import annotations

from typing import Any, Final, cast

import asyncmy

from duetime.stores.base.encryption import may_send_password
from duetime.stores.sql.pool.errors import PasswordAsked

_IN_CLEAR: Final = frozenset({b"mysql_clear_password", b"dialog"})
"""Ways to log in by which the driver sends the password as it is."""


class PasswordGuardConnection(asyncmy.Connection):
    """A connection that raises `PasswordAsked` rather than give the password away."""

    _password: bytes
    _transport: Any
    _key: bytes | None = None

    async def _process_auth(self, plugin_name: bytes, auth_packet: Any) -> Any:
        if plugin_name in _IN_CLEAR:
            self._check_trust()
        return await cast("Any", super())._process_auth(plugin_name, auth_packet)  # noqa: SLF001 -- the types lack it

    @property
    def _server_public_key(self) -> bytes | None:
        return self._key

    @_server_public_key.setter
    def _server_public_key(self, key: bytes | None) -> None:
        if key is not None:
            self._check_trust()
        self._key = key

    def _check_trust(self) -> None:
        if self._password and not may_send_password(self._transport):
            raise PasswordAsked


async def open_connection(**options: Any) -> Any:
    """Open a connection, as the driver's own function of this name does."""
    connection = cast("Any", PasswordGuardConnection)(**options)
    await connection.connect()
    return connection
