"""Registered functions: callable as before, and enqueued with their own parameters."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, Protocol, TypeVar, Unpack

import msgspec

from duetime.errors import InvalidArguments, InvalidOption
from duetime.model.audit import AuditEntry
from duetime.model.callbacks import Callback
from duetime.model.ids import new_job_id
from duetime.model.job import NewJob
from duetime.model.task import JobOptions, JobOptionValues, job_options
from duetime.model.terms import Terms
from duetime.runtime.handler import Handler
from duetime.scheduler.calling_back import callback_of
from duetime.scheduler.handle import JobHandle

if TYPE_CHECKING:
    from duetime.scheduler.blocking import BlockingRequest

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_made = typing.cast("Any", tuple).__new__
"""Makes a named tuple as `_make` does, in half the time."""


class Call(NamedTuple, Generic[R_co]):
    """A request that is ready to be enqueued."""

    job: NewJob
    decode: Callable[[str], Any]
    entry: AuditEntry | None = None
    """What is noted with it."""


def listed(calls: Iterable[Call[Any]]) -> list[Call[Any]]:
    """Return the calls to enqueue; raise `InvalidArguments` when they are anything else."""
    found = list(calls)
    # One call alone is a tuple, and no list of calls.
    if {*map(type, found)} - {Call}:
        raise InvalidArguments("enqueue_many takes a list of calls: enqueue_many([task.call(...), ...])")
    return found


class Client(Protocol):
    """What a task needs of its scheduler."""

    async def enqueue(self, call: Call[R], /, *, tx: object | None = None) -> JobHandle[R]:
        """Store one request."""
        ...

    async def enqueue_many(
        self, calls: Iterable[Call[Any]], /, *, tx: object | None = None
    ) -> list[JobHandle[Any]]:
        """Store all requests or none."""
        ...

    def enqueue_blocking(self, call: Call[R], /, *, tx: object = None) -> JobHandle[R]:
        """Store one request for a caller without an event loop; with `tx`, in this very thread."""
        ...

    def enqueue_many_blocking(
        self, calls: Iterable[Call[Any]], /, *, tx: object = None
    ) -> list[JobHandle[Any]]:
        """Store all requests or none for a caller without an event loop; with `tx`, in this very thread."""
        ...

    def blocking_request(self, request: Request[P, R], /) -> BlockingRequest[P, R]:
        """Return the same request for callers without an event loop."""
        ...


class Request(Generic[P, R]):
    """A task together with the options of one request."""

    def __init__(self, handler: Handler, client: Client, options: JobOptions) -> None:
        self._handler = handler
        self._name = handler.name
        self._gated = handler.options.gate is not None
        self._client = client
        self._options = options
        self.tx = options.tx
        """The caller's own transaction that the request is stored in."""
        self._read = result_reader(handler)
        self._terms = options.over(handler.options.terms)
        self._same = _common(handler, options, self._terms)
        self._encode = handler.arguments.encode

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Check the arguments and return a request for `scheduler.enqueue_many`."""
        if self.tx is not None:
            text = "a call has no transaction of its own; write scheduler.enqueue_many(calls, tx=...)"
            raise InvalidOption(text)
        return self.prepared(args, kwargs)

    def prepared(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Call[R]:
        """Check the arguments and return what to store."""
        payload = self._encode(args, kwargs)
        job: NewJob = _made(NewJob, (new_job_id(), self._name, payload, *self._same))
        if self._gated:
            job = job._replace(terms=self._handler.terms_of(payload, self._terms))
        call: Call[R] = _made(Call, (job, self._read, None))
        return call

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Store a job that calls the task with these arguments; once this returns, the job is not lost.

        With `options(tx=...)` that is so once the transaction is committed.
        """
        return await self._client.enqueue(self.prepared(args, kwargs), tx=self.tx)

    @property
    def handler(self) -> Handler:
        """What workers run."""
        return self._handler

    @functools.cached_property
    def sync(self) -> BlockingRequest[P, R]:
        """The same verbs for callers without an event loop."""
        return self._client.blocking_request(self)


class Task(Request[P, R]):
    """A registered function and its defaults."""

    def __init__(self, handler: Handler, client: Client) -> None:
        # First, since it takes over whatever attributes the function was given.
        functools.update_wrapper(self, handler.function)  # type: ignore[arg-type]  # subclasses are callable
        super().__init__(handler, client, JobOptions())

    def __repr__(self) -> str:
        return f"<Task {self.name}>"

    @property
    def name(self) -> str:
        """The name the task is stored under."""
        return self._handler.name

    def options(self, **values: Unpack[JobOptionValues]) -> Request[P, R]:
        """Return the task with options for one request, such as `delay`, `queue` or `key`."""
        return Request(self._handler, self._client, job_options(values, owner=self._client))

    def as_callback(self) -> Callback:
        """Tell what a job stores that is to call this task when it has ended; `InvalidTask` if it cannot."""
        return callback_of(self._handler, owner=self._client)


class AsyncTask(Task[P, R]):
    """A task written as a coroutine function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Call the function itself, here and now."""
        call: Coroutine[Any, Any, R] = self._handler.function(*args, **kwargs)
        return call


class SyncTask(Task[P, R]):
    """A task written as a plain function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, here and now."""
        result: R = self._handler.function(*args, **kwargs)
        return result


def _common(handler: Handler, given: JobOptions, terms: Terms) -> tuple[Any, ...]:
    """Return what all jobs of a request have in common: the fields of `NewJob` behind the arguments."""
    defaults = handler.options
    job = NewJob(
        id="",
        task=handler.name,
        payload="",
        due_at=given.at,
        delay=given.delay,
        queue=defaults.queue if given.queue is None else given.queue,
        priority=defaults.priority if given.priority is None else given.priority,
        on_crash=defaults.on_crash,
        retries=given.retries,
        timeout=given.timeout,
        terms=terms,
        key=given.key,
        expires_at=given.expires_at,
    )
    return job[NewJob._fields.index("payload") + 1 :]


def result_reader(handler: Handler) -> Callable[[str], Any]:
    """Return what reads the stored results of a task."""
    return functools.partial(_decode_result, handler)


def _decode_result(handler: Handler, text: str) -> Any:
    kind = _return_type(handler.function)
    return msgspec.json.decode(text) if kind is None else msgspec.json.decode(text, type=kind)


@functools.lru_cache(maxsize=1024)
def _return_type(function: Callable[..., Any]) -> Any | None:
    """Return the annotated result type where JSON can be rebuilt into it."""
    try:
        hints: Mapping[str, Any] = typing.get_type_hints(function, include_extras=True)
        kind = hints["return"]
        msgspec.json.Decoder(kind)
    except (KeyError, NameError, TypeError, ValueError, AttributeError):
        return None
    return kind
