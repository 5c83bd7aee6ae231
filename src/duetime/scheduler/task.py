"""Registered functions: callable as before, enqueued with their own parameters, and used as callbacks."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Generic, NamedTuple, ParamSpec, Protocol, TypeAlias, TypeVar, Unpack, overload

import msgspec

from duetime.errors import InvalidArguments, InvalidOption, InvalidTask
from duetime.model.callbacks import Callback, Ended
from duetime.model.ids import GivenId, new_job_id
from duetime.model.job import JobTerms, NewJob
from duetime.model.states import State
from duetime.model.stored.audit import AuditEntry
from duetime.model.task import JobOptions, JobOptionValues, TaskOptions, job_options
from duetime.model.text import shown
from duetime.runtime.codec.json_values import read_text
from duetime.runtime.codec.results import result_decoder
from duetime.runtime.running.handler import Handler
from duetime.scheduler.job_handle import BlockingHandle, JobHandle
from duetime.scheduler.processes.portal import BlockingPortal

_NOTHING: dict[str, Any] = dict.fromkeys(("result", "error", "traceback", "reason", "schedule", "key"))
_SOME_TIME = datetime(2000, 1, 1, tzinfo=UTC)
_SAMPLE_ENDED = Ended(
    id="0",
    task="task",
    arguments={},
    state=State.SUCCEEDED,
    attempt=1,
    finished_at=_SOME_TIME,
    tags=(),
    **_NOTHING,
)
POSITIONAL_KINDS = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def callback_of(handler: Handler, *, owner: object) -> Callback:
    """Return a task as a callback, or raise `InvalidTask` when it cannot be called with an `Ended` alone."""
    parameter, options = _ended_parameter(handler), handler.options
    payload = msgspec.json.encode({parameter: _SAMPLE_ENDED}).decode()
    try:
        handler.arguments.decode(payload)
    except InvalidArguments as error:
        raise _not_a_callback(handler, str(error)) from None
    if options.gate is not None and (by := options.gate.by) is not None:
        raise _not_a_callback(handler, f"its limit is for each {by!r}, which is not known beforehand")
    return Callback(
        task=handler.name,
        parameter=parameter,
        queue=options.queue,
        priority=options.priority,
        on_crash=options.on_crash,
        terms=replace(handler.terms_of(payload, options.terms), callbacks=None).to_text(),
        owner=owner,
    )


def _ended_parameter(handler: Handler) -> str:
    """Return the name of the parameter that takes the `Ended`."""
    parameters = handler.signature.parameters.values()
    fitting = [p for p in parameters if p.kind in POSITIONAL_KINDS]
    required = [p for p in fitting if p.default is p.empty]
    if not fitting or len(required) > 1:
        raise _not_a_callback(handler, "it does not")
    return (required or fitting)[0].name


def _not_a_callback(handler: Handler, why: str) -> InvalidTask:
    kind = "a callback, which takes one argument, `ended: duetime.Ended`"
    return InvalidTask(f"{handler.name}{handler.signature} cannot be {kind}: {why}")


class CallArguments(NamedTuple):
    """The arguments of a call."""

    args: tuple[object, ...]
    kwargs: Mapping[str, object]


def call_arguments(args: Sequence[object] | None, kwargs: Mapping[str, object] | None) -> CallArguments:
    """Return the arguments that were given in a list and by name; raise `InvalidArguments` for anything else."""
    if args is not None and (isinstance(args, str | bytes) or not isinstance(args, Sequence)):
        raise InvalidArguments(f"args must be a list such as args=[{shown(args)}]")
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise InvalidArguments(f"kwargs must be a dict such as kwargs={{'size': 3}}, not {shown(kwargs)}")
    return CallArguments(tuple(args or ()), kwargs or {})


def read_arguments(handler: Handler, given: Sequence[str]) -> CallArguments:
    """Read pairs as the types of the parameters, or one JSON object or array; what does not fit the task names."""
    if len(given) == 1 and given[0].lstrip().startswith(("{", "[")):
        return _read_json_arguments(given[0])
    hints = typing.get_type_hints(handler.function, include_extras=True)
    pairs: dict[str, object] = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not separator:
            free = (n for n in inspect.signature(handler.function).parameters if n not in pairs)
            example = f"{next(free, 'name')}={text}"
            raise InvalidArguments(f"{text!r} is given without a name; write {shown(example)}, or JSON")
        if name in pairs:
            raise InvalidArguments(f"{name!r} is given twice")
        pairs[name] = _read_value(value, hints.get(name, Any))
    return CallArguments((), pairs)


def _read_json_arguments(text: str) -> CallArguments:
    try:
        value = msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(f"the arguments are not JSON: {error}") from None
    return CallArguments((), value) if isinstance(value, dict) else CallArguments(tuple(value), {})


def _read_value(text: str, kind: Any) -> object:
    """Read a text as a parameter's type; what does not fit is left for the task's own check to name."""
    try:
        if kind is not Any:
            return read_text(text, kind)
    except (msgspec.ValidationError, TypeError):
        pass
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return text


AnyFunction: TypeAlias = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Call(NamedTuple, Generic[R_co]):
    """A request that is ready to be enqueued."""

    job: NewJob
    decode: Callable[[str], Any]
    entry: AuditEntry | None = None
    """What is noted with it."""


Calls: TypeAlias = Iterable[Call[Any]]


def checked_calls(calls: Calls) -> list[Call[Any]]:
    """Return the calls to enqueue; raise `InvalidArguments` when they are anything else."""
    found = list(calls)
    # One call alone is a tuple, and no list of calls.
    if {*map(type, found)} - {Call}:
        raise InvalidArguments("enqueue_many takes a list of calls: enqueue_many([task.call(...), ...])")
    return found


class EnqueueClient(Protocol):
    """What tasks and job classes need of their scheduler."""

    @property
    def portal(self) -> BlockingPortal:
        """Where verbs run for callers without an event loop."""
        ...

    def add_task(self, function: AnyFunction, *, name: str | None, options: TaskOptions) -> Task[..., Any]:
        """Register a function as a task."""
        ...

    async def enqueue(self, call: Call[R], /, *, tx: object | None = None) -> JobHandle[R]:
        """Store one request."""
        ...

    async def enqueue_by_name(
        self,
        task: str,
        arguments: Mapping[str, object] | None = None,
        /,
        *,
        job_id: GivenId | None = None,
        **values: Unpack[JobOptionValues],
    ) -> JobHandle[Any]:
        """Store a job of a task that workers have announced."""
        ...

    def enqueue_many_blocking(self, calls: Calls, /, *, tx: object = None) -> list[JobHandle[Any]]:
        """Store all requests or none for a caller without an event loop; with `tx`, in this very thread."""
        ...


class Request(Generic[P, R]):
    """A task together with the options of one request."""

    def __init__(self, handler: Handler, client: EnqueueClient, options: JobOptions) -> None:
        self._handler = handler
        self._client = client
        self.tx = options.tx
        """The caller's own transaction that the request is stored in."""
        self._read = result_decoder(handler.function)
        self._terms = options.over(handler.options.terms)
        self._common = _common_fields(handler, options, self._terms)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Check the arguments and return a request for `scheduler.enqueue_many`."""
        if self.tx is not None:
            raise InvalidOption("a call has no transaction of its own; pass tx= to scheduler.enqueue_many")
        return self.prepared(args, kwargs)

    def prepared(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Call[R]:
        """Check the arguments and return what to store."""
        payload = self._handler.arguments.encode(args, kwargs)
        job = NewJob(new_job_id(), self._handler.name, payload, *self._common)
        if self._handler.options.gate is not None:
            job = job._replace(terms=self._handler.terms_of(payload, self._terms))
        return Call(job, self._read)

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
        return BlockingRequest(self, self._client)


class BlockingRequest(Generic[P, R]):
    """A task, perhaps with options, for callers without an event loop."""

    __slots__ = ("_client", "_request")

    def __init__(self, request: Request[P, R], client: EnqueueClient) -> None:
        self._request = request
        self._client = client

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> BlockingHandle[R]:
        """Store a job that calls the task with these arguments; once this returns, the job is not lost."""
        request = self._request
        [handle] = self._client.enqueue_many_blocking([request.prepared(args, kwargs)], tx=request.tx)
        return BlockingHandle(handle, self._client.portal)


class Task(Request[P, R]):
    """A registered function and its defaults."""

    def __init__(self, handler: Handler, client: EnqueueClient) -> None:
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


def _common_fields(handler: Handler, given: JobOptions, terms: JobTerms) -> tuple[Any, ...]:
    """Return what all jobs of a request have in common: the fields of `NewJob` behind the arguments."""
    defaults = handler.options
    queue = defaults.queue if given.queue is None else given.queue
    priority = defaults.priority if given.priority is None else given.priority
    rest = (given.at, given.delay, queue, priority, defaults.on_crash, given.retries, given.timeout)
    return NewJob("", "", "", *rest, terms=terms, key=given.key, expires_at=given.expires_at)[3:]


class TaskDecorator(Protocol):
    """Turns a function into a task."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: Callable[P, R], /) -> SyncTask[P, R]: ...
