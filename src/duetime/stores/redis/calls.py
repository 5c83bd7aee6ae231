"""Calls of our functions in the server, which are loaded when it does not know them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol, TypeVar

from redis.asyncio import Redis, RedisCluster
from redis.exceptions import ReadOnlyError, ResponseError

from duetime.errors import NotOpen
from duetime.failpoints import InjectedFault, failpoint
from duetime.model.clock import Clock
from duetime.model.ids import new_token
from duetime.model.instants import Instant
from duetime.stores.base import Hint
from duetime.stores.base.silence import Patience
from duetime.stores.base.subscribers import Subscribers
from duetime.stores.redis.connect import Address, close
from duetime.stores.redis.errors import is_missing, is_silence, is_unanswered, translate
from duetime.stores.redis.library import library
from duetime.stores.redis.lines import Lines
from duetime.stores.redis.rows import pack
from duetime.stores.redis.voice import Voice

Answer = TypeVar("Answer")
Told_co = TypeVar("Told_co", covariant=True)

_LOADS: Final = 3
"""How often a call loads the functions and is made again, before it gives up: a server may be emptied any time."""


class Decoder(Protocol[Told_co]):
    """Reads an answer."""

    def decode(self, packed: bytes, /) -> Told_co:
        """Return what was packed."""
        ...


class Calls:
    """Makes calls for one store, on connections of one event loop."""

    def __init__(
        self, address: Address, *, namespace: str, clock: Clock | None, family: Calls | None = None
    ) -> None:
        self.address = address
        self.tag = f"{{{namespace}}}"
        self.sender: str = new_token() if family is None else family.sender
        self.subscribers: Subscribers = Subscribers() if family is None else family.subscribers
        self.patience: Patience = Patience(address.timeout) if family is None else family.patience
        self._namespace = namespace
        self._clock = clock
        self._client: Any = None
        """Not told to the type checkers, to whom half of it is unknown."""
        self._lines: Lines | None = None
        """To one server; where the primary has to be asked for, calls go by the client."""
        self._turns: asyncio.Semaphore
        """For those calls: to wait for a free connection is not counted into their time."""
        self._blocking: Any = None
        """For threads without an event loop; there is none before the first asks."""
        # May be taken again by the thread that holds it: a signal handler that stores a job comes at any moment.
        self._making = threading.RLock()
        self._voice = Voice(self._publish)
        self._forget: Callable[[], None] = lambda: None
        self._giving_up: asyncio.Task[None] | None = None

    @property
    def client(self) -> Any:
        """The connections; raises `NotOpen` before `open` and after `close`."""
        if self._client is None:
            raise NotOpen("the store is not open")
        return self._client

    def sibling(self) -> Calls:
        """Return the same for another event loop; whoever listens to one hears the hints of both."""
        return Calls(self.address, namespace=self._namespace, clock=self._clock, family=self)

    async def open(self) -> None:
        """Make connections possible; the first call finds out whether there is a server."""
        if self._client is None:
            try:
                client = self._client = self.address.client()
            except Exception as error:
                raise translate(error, str(self.address)) from error
            self._turns = asyncio.Semaphore(self.address.pool)
            if isinstance(client, Redis) and not self.address.watched:
                self._lines = Lines(client.connection_pool, most=self.address.pool)
            self._forget = self.patience.watch(self._give_up)

    async def close(self) -> None:
        """Let go of every connection."""
        self._forget()
        await self._voice.close()
        client, self._client, lines, self._lines = self._client, None, self._lines, None
        if lines is not None:
            lines.close()
        if client is not None:
            await close(client)
        blocking, self._blocking = self._blocking, None
        if blocking is not None:
            blocking.close()

    async def read(
        self, verb: str, decoder: Decoder[Answer], request: object = None, *, rows: int = 1
    ) -> Answer:
        """Make a call that changes nothing; again on a new connection when no answer came."""
        return _decoded(decoder, await self._call("FCALL_RO", verb, request, rows=rows, repeatable=True))

    async def write(
        self,
        verb: str,
        decoder: Decoder[Answer],
        request: object = None,
        *,
        hints: Iterable[Hint] = (),
        since: Instant | None = None,
        rows: int = 1,
        repeatable: bool = False,
    ) -> Answer:
        """Make a call, and pass hints on with it; with `since`, only if that instant has come by the server's clock.

        The server decides for other processes, and its answer for this one. A call that is repeatable is made again on a
        new connection when no answer came. `rows` is how many it reads or writes, which gives it time.
        """
        told = tuple(hints)
        self._fail(f"before:{verb}")
        said = self._voice.with_call(told)
        packed = await self._call("FCALL", verb, request, said, since, rows=rows, repeatable=repeatable)
        answer = _decoded(decoder, packed)
        self._fail(f"after:{verb}")
        if told and _has_come(since, answer):
            self._voice.behind_call(told, said=said)
            for hint in told:
                self.subscribers.tell(hint)
        return answer

    def write_blocking(
        self,
        verb: str,
        decoder: Decoder[Answer],
        request: object,
        *,
        hints: Iterable[Hint],
        since: Instant | None,
    ) -> Answer | None:
        """Make a call that is repeatable in the thread of a caller who may wait; None where an event loop has to."""
        client, told = self._for_threads(), tuple(hints)
        if client is None:
            return None
        self._fail(f"before:{verb}")
        words = self._words("FCALL", verb, request, told, since)
        try:
            packed: bytes = self._answered(client, words)
        except Exception as error:
            if is_missing(error):
                return None
            raise translate(error, str(self.address)) from error
        self._fail(f"after:{verb}")
        answer = _decoded(decoder, packed)
        if _has_come(since, answer):
            for hint in told:
                self.subscribers.notify(hint)
        return answer

    async def servers(self) -> dict[str, Mapping[str, Any]]:
        """Return what each server that we may write to tells of itself: one, or the primaries of a cluster."""
        client: Any = self.client
        try:
            async with self.patience.one_try():
                if not isinstance(client, RedisCluster):
                    return {"": await _told(client)}
                await client.initialize()
                return {node.name: await _told(node) for node in client.get_primaries()}
        except Exception as error:
            raise translate(error, str(self.address)) from error

    async def transport(self) -> Any:
        """Return what a connection to the server, or to one of a cluster, is made of."""
        client: Any = self.client
        try:
            if not isinstance(client, RedisCluster):
                connection: Any = await client.connection_pool.get_connection()
                await client.connection_pool.release(connection)
            else:
                await client.initialize()
                node: Any = client.get_primaries()[0]
                await _told(node)
                connection = node._free[-1]  # noqa: SLF001 -- no public name leads to it
        except Exception as error:
            raise translate(error, str(self.address)) from error
        return connection._writer.transport  # noqa: SLF001 -- the same

    def _for_threads(self) -> Any:
        with self._making:
            if self._blocking is None and self._client is not None:
                self._blocking = self.address.blocking_client()
            return self._blocking

    def _fail(self, place: str) -> None:
        """Let a test have a call fail as one does whose connection is lost."""
        try:
            failpoint(place)
        except InjectedFault as error:
            raise translate(error, str(self.address)) from error

    async def _publish(self, hint: Hint) -> None:
        try:
            async with self.patience.one_try(repeatable=True):
                await self.client.publish(f"{self.tag}:hints", f"{self.sender} {hint.kind} {hint.name}")
        except TimeoutError:
            self.patience.lose()

    async def _call(
        self,
        command: str,
        verb: str,
        request: object,
        hints: Iterable[Hint] = (),
        since: Instant | None = None,
        *,
        rows: int,
        repeatable: bool,
    ) -> bytes:
        words = self._words(command, verb, request, hints, since)
        within = self.patience.deadline(rows, repeatable=repeatable).first
        loads = 0
        while True:
            try:
                return await self._send(words, within=within)
            except Exception as error:
                if repeatable and is_unanswered(error):
                    repeatable = False
                    continue
                if loads == _LOADS or not is_missing(error):
                    raise await self._refused(error) from error
                loads += 1
            await self._reload()

    async def _send(self, words: tuple[Any, ...], *, within: float | None) -> bytes:
        """Make a call once; a connection that does not answer in time is not the only one that is given up."""
        client, lines = self.client, self._lines
        began = time.monotonic()
        try:
            if lines is not None:
                answer: bytes = await lines.call(*words, within=within)
            else:
                async with self._turns, asyncio.timeout(within):
                    answer = await client.execute_command(*words)
        except BaseException as error:
            self.patience.heed(error, waited=time.monotonic() - began)
            if self._giving_up is not None and isinstance(error, TimeoutError):
                await asyncio.wait({self._giving_up})
            raise
        return answer

    def _give_up(self) -> None:
        """Have the unused connections made anew."""
        if self._lines is not None:
            self._lines.give_up()
        if self._client is not None:
            self._giving_up = asyncio.create_task(self._disconnect(self._client), name="duetime-give-up")
        if self._blocking is not None:
            _disconnect_unused(self._blocking)

    async def _disconnect(self, client: Any) -> None:
        with contextlib.suppress(Exception):
            if isinstance(client, RedisCluster):
                await client.aclose()
            else:
                await client.connection_pool.disconnect(inuse_connections=False)
        self._giving_up = None

    def _answered(self, client: Any, words: tuple[Any, ...]) -> bytes:
        """Make a call in this thread, and once more when no answer came."""
        try:
            answer: bytes = client.execute_command(*words)
        except Exception as error:
            if not is_unanswered(error):
                raise
            if is_silence(error):
                self.patience.lose()
                _disconnect_unused(client)
            answer = client.execute_command(*words)
        return answer

    def _words(
        self, command: str, verb: str, request: object, hints: Iterable[Hint], since: Instant | None
    ) -> tuple[Any, ...]:
        now = "" if self._clock is None else self._clock.now()
        said = [f"{hint.kind} {hint.name}" for hint in hints]
        packed = pack(request)
        return (command, library().function(verb), 1, self.tag, now, self.sender, packed, since or 0, *said)

    async def _reload(self) -> None:
        try:
            async with self.patience.one_try():
                await _load(self.client)
        except Exception as error:
            raise await self._refused(error) from error

    async def _refused(self, error: Exception) -> Exception:
        """Return what to raise; connections to a server that is a replica by now are given up."""
        if isinstance(error, ReadOnlyError) and isinstance(self.client, Redis):
            # The address may lead to the new primary, but nobody looks as long as the old one answers.
            await self.client.connection_pool.disconnect()
        return translate(error, str(self.address))


def _disconnect_unused(client: Any) -> None:
    try:
        client.connection_pool.disconnect(inuse_connections=False)
    except TypeError:
        # An earlier driver disconnects all.
        client.connection_pool.disconnect()


async def _told(server: Any) -> dict[str, Any]:
    """Ask a server about itself; many users may not."""
    told: dict[str, Any] = {}
    for words in (("INFO",), ("CONFIG GET", "appendfsync")):
        with contextlib.suppress(ResponseError):
            told |= await server.execute_command(*words)
    return told


def _has_come(since: Instant | None, answer: Any) -> bool:
    """Whether an instant has come by the server's clock, which is among the facts of its answer."""
    return since is None or since <= answer[0]["now"]


def _decoded(decoder: Decoder[Answer], answer: bytes) -> Answer:
    """Read an answer, also when somebody has edited a row."""
    try:
        return decoder.decode(answer)
    except UnicodeDecodeError:
        from duetime.stores.redis.mending import mended

        return decoder.decode(mended(answer))


async def _load(client: Any) -> None:
    """Give the server our functions, unless another process has done it meanwhile; in a cluster, every primary."""
    try:
        await client.function_load(library().source)
    except ResponseError as error:
        if "already exists" not in str(error):
            raise
