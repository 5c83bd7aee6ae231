"""Calls of our functions in the server, which are loaded when it does not know them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol, TypeVar

from redis.asyncio import Redis, RedisCluster
from redis.exceptions import ReadOnlyError, ResponseError

from duetime.errors import NotOpen
from duetime.failpoints import InjectedFault, failpoint
from duetime.model.clock import Clock
from duetime.model.ids import new_token
from duetime.stores.base import Hint
from duetime.stores.base.subscribers import Subscribers
from duetime.stores.redis.connect import Address, close
from duetime.stores.redis.errors import is_missing, translate
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
        self._namespace = namespace
        self._clock = clock
        self._client: Any = None
        """Not told to the type checkers, to whom half of it is unknown."""
        self._lines: Lines | None = None
        """To one server; whoever has to ask where the primary is, calls by the client."""
        self._blocking: Any = None
        """For threads without an event loop; there is none before the first asks."""
        # May be taken again by the thread that holds it: a signal handler that stores a job comes at any moment.
        self._making = threading.RLock()
        self._voice = Voice(self._publish)

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
            if isinstance(client, Redis) and not self.address.watched:
                self._lines = Lines(
                    client.connection_pool, most=self.address.pool, timeout=self.address.timeout
                )

    async def close(self) -> None:
        """Let go of every connection."""
        await self._voice.close()
        client, self._client, lines, self._lines = self._client, None, self._lines, None
        if lines is not None:
            lines.close()
        if client is not None:
            await close(client)
        blocking, self._blocking = self._blocking, None
        if blocking is not None:
            blocking.close()

    async def read(self, verb: str, decoder: Decoder[Answer], request: object = None) -> Answer:
        """Make a call that changes nothing."""
        return _decoded(decoder, await self._call("FCALL_RO", verb, request, ()))

    async def write(
        self,
        verb: str,
        decoder: Decoder[Answer],
        request: object = None,
        *,
        hints: Iterable[Hint] = (),
    ) -> Answer:
        """Make a call, and pass hints on with it."""
        told = tuple(hints)
        self._fail(f"before:{verb}")
        said = self._voice.with_call(told)
        answer = await self._call("FCALL", verb, request, said)
        self._fail(f"after:{verb}")
        if told:
            self._voice.behind_call(told, said=said)
        for hint in told:
            self.subscribers.tell(hint)
        return _decoded(decoder, answer)

    def write_blocking(
        self, verb: str, decoder: Decoder[Answer], request: object, *, hints: Iterable[Hint]
    ) -> Answer | None:
        """Make a call in the thread of a caller who may wait; None, and nothing is done, where an event loop has to."""
        client, told = self._for_threads(), tuple(hints)
        if client is None:
            return None
        self._fail(f"before:{verb}")
        try:
            answer: bytes = client.execute_command(*self._words("FCALL", verb, request, told))
        except Exception as error:
            if is_missing(error):
                return None
            raise translate(error, str(self.address)) from error
        self._fail(f"after:{verb}")
        for hint in told:
            self.subscribers.notify(hint)
        return _decoded(decoder, answer)

    async def servers(self) -> dict[str, Mapping[str, Any]]:
        """Return what each server that we may write to tells of itself: one, or the primaries of a cluster."""
        client: Any = self.client
        try:
            if not isinstance(client, RedisCluster):
                return {"": await _told(client)}
            await client.initialize()
            return {node.name: await _told(node) for node in client.get_primaries()}
        except Exception as error:
            raise translate(error, str(self.address)) from error

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
        await self.client.publish(f"{self.tag}:hints", f"{self.sender} {hint.kind} {hint.name}")

    async def _call(self, command: str, verb: str, request: object, hints: Iterable[Hint]) -> bytes:
        words = self._words(command, verb, request, hints)
        client: Any = self.client
        send = client.execute_command if self._lines is None else self._lines.call
        for loads in range(_LOADS + 1):
            try:
                answer: bytes = await send(*words)
                return answer
            except Exception as error:
                if loads == _LOADS or not is_missing(error):
                    raise await self._refused(error) from error
            await self._reload()
        raise AssertionError  # pragma: no cover - the last round returns or raises

    def _words(self, command: str, verb: str, request: object, hints: Iterable[Hint]) -> tuple[Any, ...]:
        now = "" if self._clock is None else self._clock.now()
        said = [f"{hint.kind} {hint.name}" for hint in hints]
        return (command, library().function(verb), 1, self.tag, now, self.sender, pack(request), *said)

    async def _reload(self) -> None:
        try:
            await _load(self.client)
        except Exception as error:
            raise await self._refused(error) from error

    async def _refused(self, error: Exception) -> Exception:
        """Return what to raise; connections to a server that is a replica by now are given up."""
        if isinstance(error, ReadOnlyError) and isinstance(self.client, Redis):
            # The address may lead to the new primary, but nobody looks as long as the old one answers.
            await self.client.connection_pool.disconnect()
        return translate(error, str(self.address))


async def _told(server: Any) -> dict[str, Any]:
    """Ask a server about itself; many users may not."""
    told: dict[str, Any] = {}
    for words in (("INFO",), ("CONFIG GET", "appendfsync")):
        with contextlib.suppress(ResponseError):
            told |= await server.execute_command(*words)
    return told


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
