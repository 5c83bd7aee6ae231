"""What every request must pass before any route sees it, and the headers that every answer has."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from duetime.errors import InvalidOption
from duetime.model.stored.credentials import Role
from duetime.model.text import shown
from duetime.web.problems import OURS, Problem, problem_of
from duetime.web.users import User

log = logging.getLogger("duetime.web")

MAX_BODY: Final = 512 * 1024
"""How many bytes a body may have: arguments, which take 256 KiB at most, with escapes and the rest."""
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    # Not no-referrer: forms of our own pages would then send `Origin: null`.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""The headers of every answer; a route that needs others sets its own."""
_RAW_HEADERS: Final = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]

USER_KEY: Final = "duetime.user"
"""Where in the scope of a request its user is."""
AGAIN_KEY: Final = "duetime.again"
"""Where in it the function is that tells who that is now, for answers that take long."""


class Guard:
    """Lets pass what is signed in and harmless; there is no route that it does not stand before."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        who: Callable[[Request, str], Awaitable[User]],
        public: Iterable[tuple[str, str]],
        harmless: Iterable[tuple[str, str]],
        hosts: Sequence[str],
        prepare: Callable[[], Awaitable[None]],
    ) -> None:
        """`public` are the methods and paths that need no user, `harmless` those that change nothing of the scheduler's; `who`, of a request and its path, raises `Problem` where there is none."""
        self.app = app
        self._who = who
        self._public = frozenset(public)
        self._harmless = frozenset(harmless)
        self._hosts = checked_hosts(hosts)
        self._prepare = prepare

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, _with_headers(send))
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        try:
            self._check_host(request)
            check_origin(request)
            check_body(request)
            path = route_path(scope)
            if (request.method, path) not in self._public:
                await self._prepare()
                scope[AGAIN_KEY] = known = partial(self._known, request, path)
                scope[USER_KEY] = await known()
        except Exception as error:
            if (problem := problem_of(error)) is None:
                log.exception("who sends a request cannot be told")
            await (problem or OURS).response()(scope, receive, send)
            return
        await self.app(scope, capped(receive), send)

    async def _known(self, request: Request, path: str) -> User:
        user = await self._who(request, path)
        # Each route asks for a role of its own; this holds for one that has forgotten to.
        harmless = request.method in _SAFE or (request.method, path) in self._harmless
        if not harmless and not user.may(Role.OPERATOR):
            raise role_missing(user, Role.OPERATOR)
        return user

    def _check_host(self, request: Request) -> None:
        """Refuse other names, by which a page of another site could reach this one."""
        host = host_name(request.headers.get("host", ""))
        if "*" in self._hosts or host in self._hosts or host.endswith(".localhost") or _is_address(host):
            return
        detail = (
            f"this API does not answer to the host {shown(host)}; name it where the API is made: hosts=[...]"
        )
        raise Problem(421, "Misdirected request", detail)


def role_missing(user: User, role: Role) -> Problem:
    """Return the answer to someone who may not do this."""
    return Problem(403, "Forbidden", f"this needs the role {role}; {user.name} is {user.role}")


def check_origin(request: Request) -> None:
    """Refuse a change that a page of another site has sent with the cookies of this one."""
    headers = request.headers
    if request.method in _SAFE or ("authorization" in headers and "cookie" not in headers):
        return
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        allowed = site == "same-origin"
    elif origin is not None:
        # Browsers send no Sec-Fetch-Site to plain HTTP beyond this machine.
        allowed = origin == f"{request.url.scheme}://{headers.get('host', '')}"
    else:
        # No browser; with a cookie it cannot be told.
        allowed = "cookie" not in headers
    if not allowed:
        detail = "a page of another origin has sent this; send it from a page of this one, or with a token and no cookie"
        raise Problem(403, "Cross-origin request", detail)


def check_body(request: Request) -> None:
    """Refuse a body that is not JSON or is known to be too long."""
    headers = request.headers
    length = headers.get("content-length", "0")
    if length == "0" and "transfer-encoding" not in headers:
        return
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        detail = f"a body is JSON, with Content-Type: application/json, not {shown(kind or 'none')}"
        raise Problem(415, "Unsupported media type", detail)
    if not length.isdecimal() or int(length) > MAX_BODY:
        raise _too_large()


def capped(receive: Receive) -> Receive:
    """Receive no more than a body may have, whatever its length was said to be."""
    left = MAX_BODY

    async def receive_part() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise _too_large()
        return message

    return receive_part


def _too_large() -> Problem:
    return Problem(413, "Content too large", f"a body has at most {MAX_BODY:,} bytes")


def route_path(scope: Scope) -> str:
    """Return the path below the place where the app is mounted."""
    path: str = scope["path"]
    root = scope.get("root_path", "")
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


def host_name(host: str) -> str:
    """Return a host without its port, in small letters."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def checked_hosts(hosts: Sequence[str]) -> frozenset[str]:
    """Return the names that are answered to, apart from addresses and those of this machine."""
    if isinstance(hosts, str) or not all(isinstance(host, str) and host for host in hosts):
        raise InvalidOption(f"hosts must be a list such as ['jobs.example.com'], not {shown(hosts)}")
    return frozenset({"localhost", *(host.lower() for host in hosts)})


def _is_address(host: str) -> bool:
    """Whether a host is an address, to which no other site can point a name of its own."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _with_headers(send: Send) -> Send:
    async def send_part(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = message["headers"]
            names = {name for name, _ in own}
            message["headers"] = [*own, *(header for header in _RAW_HEADERS if header[0] not in names)]
        await send(message)

    return send_part


def bearer_token(headers: Headers) -> str | None:
    """Return the token that a request brings; `None` if it brings none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None
