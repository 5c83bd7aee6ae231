"""Calls of our functions in the server: made on connections kept open, and loaded where the server does not know them."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from redis.asyncio import ConnectionPool, Redis, RedisCluster
from redis.exceptions import ReadOnlyError, ResponseError

from duetime.errors import NotOpen
from duetime.failpoints import failpoint
from duetime.model.ids import new_token
from duetime.model.job import JobId
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import Clock, Instant
from duetime.stores.base import Hint
from duetime.stores.base.local_hints import HintSubscribers
from duetime.stores.base.timeouts import ServerTimeouts
from duetime.stores.redis.address import RedisAddress, close_client
from duetime.stores.redis.errors import ErrorTranslation, is_missing, is_unanswered
from duetime.stores.redis.hints import RedisHintSender
from duetime.stores.redis.messages import (
    JobWithClaim,
    NamedValues,
    ServerAnswer,
    pack,
    read_answer,
    read_job,
    read_job_with_claim,
)

_FOLDER: Final = Path(__file__).parent / "lua"
_FILES: Final = (
    "key_names", "replies", "indexes", "rows", "unreadable", "store", "audit", "jobs", "queues", "commands", "workers", "claims",
    "settling", "reports", "next_due", "limits", "pulses", "control", "reads", "access", "retention", "schedules", "statistics",
    "copying", "locks", "watching",
)  # fmt: skip
"""In this order: each uses what stands before it."""
_APART: Final = frozenset({"limits", "pulses", "retention", "copying", "locks", "watching"})
"""Files whose names no other uses: they are kept apart, since Lua takes no more than 200 names in one place."""
_MOST_LOADS: Final = 3
"""How often a call loads the functions and is made again, before it gives up: a server may be emptied any time."""


class KeptConnections:
    """Makes calls on connections that are taken from a pool once and kept.

    A call by the client itself takes twice the time: it goes through the pool, watches each step with a timer of its
    own, and measures all that.
    """

    def __init__(self, pool: ConnectionPool, *, most: int) -> None:
        self._pool = pool
        self._turns = asyncio.Semaphore(most)
        self._free: list[Any] = []
        self._suspect: set[Any] = set()
        self._closed = False

    def close(self) -> None:
        """Make no more calls, not even those that wait for their turn; the connections themselves are the pool's to close."""
        self._closed = True

    def give_up(self) -> None:
        """Connect the unused connections anew before they are used: where one does not answer, the others may be dead as well."""
        self._suspect.update(self._free)

    async def call(self, *words: Any, timeout: float | None) -> Any:
        """Return what the server answers; raises `TimeoutError` if that takes longer.

        The wait for a turn is not counted: it ends, because each call before it does.
        """
        async with self._turns, asyncio.timeout(timeout):
            if self._closed:
                raise NotOpen("the store is not open")
            connection: Any = self._free.pop() if self._free else await self._new()
            try:
                if connection in self._suspect:
                    self._suspect.discard(connection)
                    await connection.disconnect(nowait=True)
                # Also reconnects one that was lost, for example by the call before.
                await self._pool.ensure_connection(connection)
                await connection.send_packed_command(_packed_command(words))
                return await connection.read_response(disable_decoding=True)
            finally:
                self._free.append(connection)
                if self._closed:
                    # It may have been connected after all were closed.
                    await connection.disconnect(nowait=True)

    async def _new(self) -> Any:
        connection: Any = await self._pool.get_connection()
        # The time is measured here, for the call as a whole.
        connection.socket_timeout = None
        return connection


def _packed_command(words: Iterable[str | bytes | int]) -> bytes:
    """Write a command down; the driver takes three times as long, since it is prepared for more kinds of words."""
    texts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n%b" % (len(texts), b"".join(b"$%d\r\n%b\r\n" % (len(text), text) for text in texts))


def _library_body() -> str:
    texts = {name: (_FOLDER / f"{name}.lua").read_text(encoding="utf-8") for name in _FILES}
    return "\n".join(f"do\n{text}end\n" if name in _APART else text for name, text in texts.items())


_BODY: Final = _library_body()
LIBRARY: Final = f"duetime_{hashlib.sha256(_BODY.encode()).hexdigest()[:12]}"
"""The name of our function library: versions of it that differ live side by side in one server."""
LIBRARY_SOURCE: Final = f"#!lua name={LIBRARY}\nlocal LIBRARY = '{LIBRARY}'\n{_BODY}"


class FunctionCalls:
    """Makes calls for one store, on connections of one event loop."""

    def __init__(self, address: RedisAddress, *, namespace: str, clock: Clock | None) -> None:
        self.address = address
        self.key_prefix = f"{{{namespace}}}"
        self.sender_id = new_token()
        self.subscribers = HintSubscribers()
        self.timeouts = ServerTimeouts(address.timeout)
        self.translation = ErrorTranslation(address)
        self._namespace = namespace
        self._clock = clock
        self._client: Any = None
        """Not told to the type checkers, to whom half of it is unknown."""
        self._connections: KeptConnections | None = None
        """To one server; where the primary has to be asked for, calls go by the client."""
        self._turns: asyncio.Semaphore
        """For those calls: to wait for a free connection is not counted into their time."""
        self._stale = False
        """Whether the client's unused connections are to be made anew."""
        self._hint_sender = RedisHintSender(self._publish)
        self._unwatch: Callable[[], None] = lambda: None

    @property
    def client(self) -> Any:
        """The connections; raises `NotOpen` before `open` and after `close`."""
        if self._client is None:
            raise NotOpen("the store is not open")
        return self._client

    def sibling(self) -> FunctionCalls:
        """Return the same for another event loop; a listener to one gets the hints of both."""
        other = FunctionCalls(self.address, namespace=self._namespace, clock=self._clock)
        other.sender_id, other.subscribers, other.timeouts = self.sender_id, self.subscribers, self.timeouts
        return other

    async def open(self) -> None:
        """Make connections possible; the first call finds out whether there is a server."""
        if self._client is None:
            with self.translation:
                client = self._client = self.address.client()
            self._turns = asyncio.Semaphore(self.address.pool)
            if isinstance(client, Redis) and not self.address.watched:
                self._connections = KeptConnections(client.connection_pool, most=self.address.pool)
            self._unwatch = self.timeouts.watch(self._give_up)

    async def close(self) -> None:
        """Let go of every connection."""
        self._unwatch()
        await self._hint_sender.close()
        client, self._client, connections, self._connections = self._client, None, self._connections, None
        if connections is not None:
            connections.close()
        if client is not None:
            await close_client(client)

    async def read(self, verb: str, request: object = None, *, rows: int = 1) -> ServerAnswer:
        """Make a call that changes nothing; again on a new connection when no answer came."""
        with self.translation:
            packed = await self._call("FCALL_RO", verb, request, rows=rows, repeatable=True)
        return read_answer(packed)

    async def write(
        self,
        verb: str,
        request: object = None,
        *,
        hints: Iterable[Hint] = (),
        since: Instant | None = None,
        rows: int = 1,
        repeatable: bool = False,
    ) -> ServerAnswer:
        """Make a call, and pass hints on with it; with `since`, only if that instant has come by the server's clock.

        The server decides for other processes, and its answer for this one. A call that is repeatable is made again on a
        new connection when no answer came. `rows` is how many it reads or writes, which gives it time.
        """
        told = tuple(hints)
        with self.translation:
            failpoint(f"before:{verb}")
            # Only the server can tell whether those with a time are due, so they go along in any case.
            sent = told if since is not None else self._hint_sender.with_call(told)
            packed = await self._call("FCALL", verb, request, sent, since, rows=rows, repeatable=repeatable)
            failpoint(f"after:{verb}")
        answer = read_answer(packed)
        if told and (since is None or since <= answer.facts["now"]):
            self._hint_sender.hold_back(hint for hint in told if hint not in sent)
            for hint in told:
                self.subscribers.tell(hint)
        return answer

    async def servers(self) -> dict[str, Mapping[str, Any]]:
        """Return what each server that we may write to tells of itself: one, or the primaries of a cluster."""
        client: Any = self.client
        with self.translation:
            async with self.timeouts.one_try():
                if not isinstance(client, RedisCluster):
                    return {"": await _server_info(client)}
                await client.initialize()
                return {node.name: await _server_info(node) for node in client.get_primaries()}

    async def transport(self) -> Any:
        """Return what a connection to the server, or to one of a cluster, is made of."""
        client: Any = self.client
        with self.translation:
            if not isinstance(client, RedisCluster):
                connection: Any = await client.connection_pool.get_connection()
                await client.connection_pool.release(connection)
            else:
                await client.initialize()
                node: Any = client.get_primaries()[0]
                await _server_info(node)
                connection = node._free[-1]  # noqa: SLF001 -- no public name leads to it
        return connection._writer.transport  # noqa: SLF001 -- the same

    async def _publish(self, hint: Hint) -> None:
        words = ("PUBLISH", f"{self.key_prefix}:hints", f"{self.sender_id} {hint.kind} {hint.name}")
        await self._send(words, timeout=self.timeouts.deadline(repeatable=True).first)

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
        now = "" if self._clock is None else self._clock.now()
        sent = [f"{hint.kind} {hint.name}" for hint in hints]
        name = f"{LIBRARY}_{verb}"
        words = (command, name, 1, self.key_prefix, now, self.sender_id, pack(request), since or 0, *sent)
        timeout = self.timeouts.deadline(rows, repeatable=repeatable).first
        loads = 0
        try:
            while True:
                try:
                    return await self._send(words, timeout=timeout)
                except Exception as error:
                    if repeatable and is_unanswered(error):
                        repeatable = False
                    elif loads < _MOST_LOADS and is_missing(error):
                        loads += 1
                        await self._load_library()
                    else:
                        raise
        except ReadOnlyError:
            # The address may lead to the new primary, but the driver does not look it up while the old one answers.
            if isinstance(self.client, Redis):
                await self.client.connection_pool.disconnect()
            raise

    async def _send(self, words: tuple[Any, ...], *, timeout: float | None) -> bytes:
        """Make a call once; a connection that does not answer in time is not the only one that is given up."""
        client, connections = self.client, self._connections
        began = time.monotonic()
        try:
            if self._stale:
                await self._disconnect_unused(client)
            if connections is not None:
                answer: bytes = await connections.call(*words, timeout=timeout)
            else:
                async with self._turns, asyncio.timeout(timeout):
                    answer = await client.execute_command(*words)
        except BaseException as error:
            self.timeouts.heed(error, waited=time.monotonic() - began)
            raise
        return answer

    def _give_up(self) -> None:
        """Have the unused connections made anew before they are used."""
        self._stale = True
        if self._connections is not None:
            self._connections.give_up()

    async def _disconnect_unused(self, client: Any) -> None:
        self._stale = False
        with contextlib.suppress(Exception):
            if isinstance(client, RedisCluster):
                await client.aclose()
            else:
                await client.connection_pool.disconnect(inuse_connections=False)

    async def _load_library(self) -> None:
        """Give the server our functions, unless another process just has; in a cluster, every primary."""
        try:
            async with self.timeouts.one_try():
                await self.client.function_load(LIBRARY_SOURCE)
        except ResponseError as error:
            if "already exists" not in str(error):
                raise


async def _server_info(server: Any) -> dict[str, Any]:
    """Ask a server about itself; many users may not."""
    told: dict[str, Any] = {}
    for words in (("INFO",), ("CONFIG GET", "appendfsync")):
        with contextlib.suppress(ResponseError):
            told |= await server.execute_command(*words)
    return told


class RedisStorePart:
    """A part of `RedisStore`: the verbs about one noun."""

    _calls: FunctionCalls

    async def _records(self, verb: str, asked: NamedValues, *, limit: int) -> list[StoredJob]:
        """Return the first jobs that a walk meets."""
        found: list[StoredJob] = []
        async for facts, some in self._walk(verb, asked):
            found += [read_job(row, facts["now"]) for row in some]
            if len(found) >= limit:
                break
        return found[:limit]

    async def _standing(self, ids: Sequence[JobId]) -> dict[JobId, JobWithClaim]:
        """Return those of some jobs that exist, with what a decision about their end needs."""
        if not ids:
            return {}
        facts, found = await self._calls.read("standing", {"ids": ids})
        standings = [read_job_with_claim(row, facts["now"]) for row in found]
        return {standing.job.id: standing for standing in standings}

    async def _walk(self, verb: str, asked: NamedValues) -> AsyncIterator[tuple[NamedValues, list[Any]]]:
        """Make a call again and again, each from where the last one has stopped, until there is no more."""
        after: NamedValues = {}
        while True:
            facts, found = await self._calls.read(verb, asked | after)
            yield facts, found
            if "last" not in facts:
                return
            after = {"after": facts["last"]}
