"""The API by itself: for this machine alone, or for others once there are tokens."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import quote

import uvicorn

from duetime.errors import ConfigError
from duetime.model.stored.credentials import CredentialKind, Role
from duetime.model.time import MINUTE, SECOND
from duetime.scheduler.scheduler import Scheduler
from duetime.web.app import make_api

LOOPBACK: Final = "127.0.0.1"
_LINK_LASTS: Final = 5 * MINUTE


def serve(
    scheduler: Scheduler, *, host: str, port: int, hosts: Sequence[str], say: Callable[[str], object]
) -> None:
    """Serve until SIGINT or SIGTERM; on this machine alone, say a link by which one signs in once.

    Raises `ConfigError` for an address that others can reach while there is no token by which to tell them apart.
    """
    app = make_api(scheduler, hosts=hosts)
    server = uvicorn.Server(uvicorn.Config(app, host=host, port=port, log_level="warning", access_log=False))
    # Bound first: a link that leads nowhere is not to be said.
    with bound(server.config) as listening:
        address = f"http://{_in_url(host)}:{listening.getsockname()[1]}"
        for line in asyncio.run(_welcome(scheduler, host, address)):
            say(line)
        server.run(sockets=[listening])


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _welcome(scheduler: Scheduler, host: str, address: str) -> list[str]:
    async with scheduler:
        if not is_loopback(host):
            if not await scheduler.tokens.good():
                raise ConfigError(
                    f"others can reach {host}, and there is no token to tell them apart; make one first: "
                    "duetime tokens add NAME --role ROLE"
                )
            return [f"Serving on {address}; sign in with a token."]
        lasts = _LINK_LASTS / SECOND
        link = await scheduler.tokens.make(CredentialKind.LINK, "link", role=Role.ADMIN, expires=lasts)
        return [
            f"Serving on {address}, for this machine alone.",
            f"Sign in, once and within five minutes: {address}/sign-in?code={quote(link.secret)}",
        ]


def bound(config: uvicorn.Config) -> socket.socket:
    """Return a socket for a server; `ConfigError` where there can be none."""
    try:
        made = config.bind_socket()
    except SystemExit:
        where = f"{config.host}:{config.port}"
        raise ConfigError(f"{where} cannot be used; choose another port with --port") from None
    # Made anew it knows that it speaks TCP. Else asyncio lets the body of an answer wait until its head was
    # acknowledged, for 40 ms.
    return socket.socket(fileno=made.detach())


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
