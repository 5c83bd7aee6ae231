"""The live stream: what changes, as it changes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Header, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from duetime.errors import StoreError
from duetime.web.access import Viewer
from duetime.web.answers import plain
from duetime.web.guard import AGAIN_KEY
from duetime.web.problems import Problem, documented
from duetime.web.users import User
from duetime.web.watch import Watch, WatchEvent

log = logging.getLogger("duetime.web")
router = APIRouter(tags=["events"])

_HEARTBEAT: Final = 15.0
"""Seconds after which a quiet stream gives a sign of life: proxies cut connections that are silent for a minute."""
_ASK_AGAIN: Final = 5.0
"""Seconds after which it is asked again who reads, and what may be seen."""
_SLOWEST: Final = 20.0
"""How many seconds a reader may take for one part; the stream ends then."""
_LAST_WORD: Final = 0.5
"""How many seconds it may take once the process is told to stop."""
_LONGEST: Final = 55.0
"""Seconds after which a stream ends by itself where nothing tells that the process is to stop."""
_RETRY: Final = b"retry: 1000\n\n"
_HEADERS: Final = {"X-Accel-Buffering": "no"}
_STREAM: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}
}


@router.get("/events", response_class=Response, responses=_STREAM | documented(401))
async def follow_events(
    access: Viewer,
    request: Request,
    last_event_id: Annotated[
        str | None,
        Header(description="The id of the last event that was read, to go on from there.", max_length=100),
    ] = None,
) -> Response:
    """Follow what changes, as server-sent events, until the client leaves.

    These are `open`, `jobs`, `schedules`, `queues`, `workers`, `sampled`, `resync`, `down` and `bye`. A job comes as it is now, without arguments and result. Above 1,000 changes a second some are told, and `sampled` counts them. `resync` says that something was missed: read the lists again.
    """
    return EventStream(request.app.state.watch, access.user, request.scope[AGAIN_KEY], last_event_id)


class EventStream(Response):
    """An answer that goes on while there is someone to read it."""

    media_type = "text/event-stream"

    def __init__(
        self, watch: Watch, user: User, again: Callable[[], Awaitable[User]], last: str | None
    ) -> None:
        """`again` tells who reads it now, and raises `Problem` when no one may any more."""
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._watch = watch
        self._user = user
        self._again = again
        self._last = last
        self._number = 0
        """That of the last event that was passed on."""
        self._begun = False
        self._begun_at = self._asked_at = self._said_at = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the reader leaves, may not read any more or is too slow, or the process is to stop."""
        del scope
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            with self._watch.open():
                await self._follow(send, gone)
        finally:
            gone.cancel()

    async def _follow(self, send: Send, gone: asyncio.Future[None]) -> None:
        self._number = self._watch.number
        part, ends = _RETRY, None
        while ends is None:
            ends = await self._why_it_ends(gone)
            part += self._news() if ends is None else self._text("bye", {"reason": ends})
            part = part or self._sign_of_life()
            if part and not await self._pass_on(send, part):
                return
            part = b""
            if ends is None:
                await self._wait(gone)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _why_it_ends(self, gone: asyncio.Future[None]) -> str | None:
        """Tell why the stream ends, if it does; now and then it is asked again who reads."""
        now = time.monotonic()
        if self._watch.stopping:
            return "the process stops"
        if gone.done():
            return "you have left"
        if not self._watch.heeds_signals and now - self._begun_at > _LONGEST:
            return "come back"
        if now - self._asked_at >= _ASK_AGAIN:
            self._asked_at = now
            try:
                self._user = await self._again()
            except Problem:
                return "sign in again"
            except StoreError:
                """Nothing is read now that could be told."""
        return None

    def _sign_of_life(self) -> bytes:
        """Return a comment if the stream has been quiet for long, and where to go on from."""
        quiet = time.monotonic() - self._said_at >= _HEARTBEAT
        return f": still here\nid: {self._id}\n\n".encode() if quiet else b""

    async def _wait(self, gone: asyncio.Future[None]) -> None:
        """Wait for news, but no longer than until it is to be asked again who reads."""
        if self._begun and self._number != self._watch.number:
            return
        news = asyncio.ensure_future(self._watch.news())
        either: set[asyncio.Future[Any]] = {news, gone}
        try:
            await asyncio.wait(either, timeout=_ASK_AGAIN, return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()

    async def _pass_on(self, send: Send, part: bytes) -> bool:
        """Send a part; false when the reader does not take it, in time or before the process is to stop."""
        self._said_at = time.monotonic()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_SLOWEST) as patience:
                with self._watch.on_stop(lambda: patience.reschedule(loop.time() + _LAST_WORD)):
                    await send({"type": "http.response.body", "body": part, "more_body": True})
        except TimeoutError:
            log.info("a reader of the stream does not take what it is sent; the stream ends")
            return False
        return True

    def _news(self) -> bytes:
        """Return what has come since the last part."""
        if not self._begun:
            return self._beginning()
        events = self._watch.since(self._number)
        if events is None:
            self._number = self._watch.number
            return self._text("resync", {"reason": "this was read too slowly"})
        return b"".join(map(self._read, events))

    def _beginning(self) -> bytes:
        """Return how the stream begins, as soon as the watch has."""
        watch = self._watch
        if not (watch.ready or watch.down):
            return b""
        self._begun = True
        nonce, _, number = (self._last or "").partition("-")
        resumes = nonce == watch.nonce and number.isdecimal()
        if resumes and (events := watch.since(int(number))) is not None:
            self._number = int(number)
            return b"".join(map(self._read, events))
        self._number = watch.number
        if watch.down:
            return self._text("down", {"reason": watch.down})
        if self._last is not None:
            return self._text("resync", {"reason": "what came since then is not known here"})
        return self._text("open", {})

    def _read(self, event: WatchEvent) -> bytes:
        """Return an event as this reader may see it; nothing if there is nothing to see."""
        self._number = event.number
        seen = [change.said for change in event.changes if self._sees(change.queue)]
        if event.changes and not seen and not event.said:
            return b""
        said = {"items": seen} if event.changes else {}
        return self._text(event.kind, said | dict(event.said))

    def _sees(self, queue: str | None) -> bool:
        return self._user.queues is None if queue is None else self._user.sees(queue)

    @property
    def _id(self) -> str:
        return f"{self._watch.nonce}-{self._number}"

    def _text(self, kind: str, said: Mapping[str, Any]) -> bytes:
        return b"id: %b\nevent: %b\ndata: %b\n\n" % (
            self._id.encode(),
            kind.encode(),
            msgspec.json.encode(plain(said)),
        )


async def _disconnected(receive: Receive) -> None:
    """Wait until the client leaves."""
    while (await receive())["type"] != "http.disconnect":
        pass
