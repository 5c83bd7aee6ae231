"""Who sends a request: as the application says, or by a token or a session that the store knows."""

from __future__ import annotations

import inspect
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from duetime.errors import InvalidOption
from duetime.model.stored.credentials import Credential, CredentialKind, digest_of
from duetime.model.text import shown
from duetime.model.time import DAY, HOUR, MINUTE, SECOND, Instant, Micros
from duetime.scheduler.scheduler import Scheduler
from duetime.scheduler.tokens import NewToken
from duetime.web.guard import bearer_token
from duetime.web.problems import Problem
from duetime.web.users import Authenticate, User

Who: TypeAlias = Callable[[Request], Awaitable[User]]

_REMEMBERED: Final = 5.0
"""Seconds for which a secret that was good is taken for good without looking again."""
_MOST_REMEMBERED: Final = 1_000
_NOTED_EVERY: Final = MINUTE
"""How often it is noted that a secret is used."""
_IDLE: Final = 12 * HOUR
"""How long a session lasts that is not used."""
_LONGEST_SESSION: Final = 7 * DAY
_MOST_FAILURES: Final = 5
"""How many attempts to sign in may fail in a minute, from one address."""
_MOST_FAILURES_IN_ALL: Final = 60
_WINDOW: Final = 60.0


def not_signed_in(detail: str = "sign in, or send a token: Authorization: Bearer ...") -> Problem:
    """Return the answer to those who are not known."""
    return Problem(401, "Not signed in", detail, headers={"WWW-Authenticate": 'Bearer realm="duetime"'})


def asking(authenticate: Authenticate) -> Who:
    """Return what asks the application's own function; one that is not async runs in a thread."""
    if not callable(authenticate):
        raise InvalidOption("authenticate must be a function of the request that returns a User or None")
    is_async = inspect.iscoroutinefunction(authenticate)

    async def who(request: Request) -> User:
        found = authenticate(request) if is_async else await run_in_threadpool(authenticate, request)
        if inspect.isawaitable(found):
            found = await found
        if found is None:
            raise not_signed_in()
        if not isinstance(found, User):
            raise TypeError(f"authenticate returns a duetime.web.User or None, not {shown(found)}")
        return found

    return who


class Secrets:
    """Finds out whose a secret is, and remembers it for a few seconds."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._remembered: OrderedDict[str, tuple[Credential, float]] = OrderedDict()

    async def find(self, secret: str, kind: CredentialKind) -> Credential | None:
        """Return what is known of a secret of this kind; `None` for one that is not good."""
        digest, now = digest_of(secret), time.monotonic()
        found, until = self._remembered.get(digest, (None, 0.0))
        if found is None or now >= until:
            self._remembered.pop(digest, None)
            # By its digest, so that how long it takes says nothing of the secret.
            found = await self._scheduler.store.find_credential(digest)
            if found is None:
                return None
            await self._note_use(found)
            self._remembered[digest] = found, now + _REMEMBERED
            if len(self._remembered) > _MOST_REMEMBERED:
                self._remembered.popitem(last=False)
        return found if found.kind is kind else None

    def forget(self, secret: str) -> None:
        """Look again the next time."""
        self._remembered.pop(digest_of(secret), None)

    async def _note_use(self, found: Credential) -> None:
        store = self._scheduler.store
        now = await store.now()
        if found.used_at is not None and now - found.used_at < _NOTED_EVERY:
            return
        is_session = found.kind is CredentialKind.SESSION
        lifetime = await self._session_lifetime(found, now) if is_session else None
        await store.touch_credential(found.id, lifetime=lifetime)

    async def _session_lifetime(self, session: Credential, now: Instant) -> Micros:
        """Return how long a session that is used lasts from now: a while, a week in all, and no longer than its token."""
        ends = [now + _IDLE, session.created_at + _LONGEST_SESSION]
        if session.parent is not None:
            tokens = await self._scheduler.store.credentials(CredentialKind.TOKEN)
            ends += [
                one.expires_at for one in tokens if one.id == session.parent and one.expires_at is not None
            ]
        return max(1, min(ends) - now)


class FailedAttempts:
    """Counts attempts to sign in that have failed, and refuses more for a while."""

    def __init__(self) -> None:
        self._at: deque[tuple[float, str]] = deque()

    def check(self, address: str) -> None:
        """Refuse another attempt from an address that has failed too often, or if all have."""
        now = time.monotonic()
        while self._at and self._at[0][0] <= now - _WINDOW:
            self._at.popleft()
        own = [at for at, who in self._at if who == address]
        if len(own) >= _MOST_FAILURES or len(self._at) >= _MOST_FAILURES_IN_ALL:
            wait = _WINDOW - (now - (own or [self._at[0][0]])[0])
            after = {"Retry-After": str(max(1, round(wait)))}
            raise Problem(429, "Too many attempts", "too many attempts to sign in have failed", headers=after)

    def add(self, address: str) -> None:
        """Note one that has failed."""
        self._at.append((time.monotonic(), address))


class SignIn:
    """Knows people and programs by tokens and sessions."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._secrets = Secrets(scheduler)
        self._failed = FailedAttempts()

    async def who(self, request: Request) -> User:
        """Return who sends a request; raise `Problem` where that is not known."""
        kind, secret = CredentialKind.TOKEN, bearer_token(request.headers)
        if secret is None:
            kind, secret = CredentialKind.SESSION, self._session(request)
        if secret is None:
            raise not_signed_in()
        found = await self._secrets.find(secret, kind)
        if found is None:
            raise not_signed_in("it is not good, or not any more; sign in again")
        return user_of(found)

    async def begin(self, secret: str, request: Request) -> tuple[NewToken, User]:
        """Make a session from a token, or from a link that has not been used; raise `Problem` for anything else."""
        address = "" if request.client is None else request.client.host
        self._failed.check(address)
        store = self._scheduler.store
        found = await store.find_credential(digest_of(secret))
        fits = found is not None and found.kind in {CredentialKind.TOKEN, CredentialKind.LINK}
        if found is None or not fits or (found.kind is CredentialKind.LINK and not await self._spend(found)):
            self._failed.add(address)
            raise not_signed_in("this is not good, or not any more")
        now = await store.now()
        left = _LONGEST_SESSION if found.expires_at is None else found.expires_at - now
        is_token = found.kind is CredentialKind.TOKEN
        new = await self._scheduler.tokens.make(
            CredentialKind.SESSION,
            found.name,
            role=found.role,
            queues=found.queues,
            expires=(min(_IDLE, left) if is_token else _IDLE) / SECOND,
            parent=found.id if is_token else None,
        )
        return new, user_of(found)

    async def end(self, request: Request) -> None:
        """End the session of a request."""
        session = self._session(request)
        found = None if session is None else await self._secrets.find(session, CredentialKind.SESSION)
        if session is not None and found is not None:
            await self._scheduler.store.revoke_credentials([found.id])
            self._secrets.forget(session)

    async def _spend(self, link: Credential) -> bool:
        """Use a link; false if another request has."""
        return bool(await self._scheduler.store.revoke_credentials([link.id]))

    def cookie_name(self, request: Request) -> str:
        """Return the name of the cookie; where there is HTTPS, browsers let no other host set one of that name."""
        secure = "__Host-" if request.scope["scheme"] == "https" else ""
        return f"{secure}{self._scheduler.namespace}_session"

    def _session(self, request: Request) -> str | None:
        return request.cookies.get(self.cookie_name(request))


class CalendarKeys:
    """Lets in those who ask for a calendar with the key in its address, whatever else tells who asks."""

    def __init__(self, scheduler: Scheduler, path: str, otherwise: Who) -> None:
        self._secrets = Secrets(scheduler)
        self._path = path
        self._otherwise = otherwise

    async def who(self, request: Request, path: str) -> User:
        """Return who sends a request."""
        key = request.query_params.get("key") if path == self._path and request.method == "GET" else None
        if key is None:
            return await self._otherwise(request)
        found = await self._secrets.find(key, CredentialKind.CALENDAR)
        if found is None:
            raise not_signed_in("this address of a calendar is not good any more")
        return user_of(found)


def user_of(found: Credential) -> User:
    """Return whose a secret is."""
    queues = None if found.queues is None else frozenset(found.queues)
    token = found.id if found.kind is CredentialKind.TOKEN else found.parent
    return User(found.name, found.role, queues, token)
