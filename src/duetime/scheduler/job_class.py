"""Tasks written as classes: subclasses of `Job` register themselves, with options as class keywords."""

from __future__ import annotations

import inspect
import types
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, ClassVar, NoReturn, ParamSpec, Protocol, TypeAlias, TypeVar, Unpack, cast, overload

from duetime.errors import InvalidOption, InvalidTask
from duetime.model.callbacks import Callback
from duetime.model.task import JobOptionValues, TaskOptionValues, task_options
from duetime.scheduler.job_handle import JobHandle
from duetime.scheduler.registry import check_function
from duetime.scheduler.task import (
    POSITIONAL_KINDS,
    AsyncTask,
    BlockingRequest,
    Call,
    EnqueueClient,
    Request,
    SyncTask,
    Task,
)

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

TASK_ATTRIBUTE = "_duetime_task"
"""Where a class keeps the task that it was registered as."""


class AsyncRun(Protocol[P, R_co]):
    """A class whose `run` is a coroutine function."""

    def run(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]:
        """Do the work."""
        ...


class SyncRun(Protocol[P, R_co]):
    """A class whose `run` is a plain function."""

    def run(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Do the work."""
        ...


# A class method would get its types from `run` too, but a wrong argument would be reported as a matter of overloads.
# With descriptors the overload is chosen before the call, and the error names the argument.


class TaskOf:
    """`Report.task`: the registered task."""

    @overload
    def __get__(self, instance: object, owner: type[AsyncRun[P, R]], /) -> Task[P, R]: ...
    @overload
    def __get__(self, instance: object, owner: type[SyncRun[P, R]], /) -> Task[P, R]: ...
    def __get__(self, instance: object, owner: type[Any], /) -> Task[..., Any]:
        return task_of(owner)


_Enqueue: TypeAlias = Callable[P, Coroutine[Any, Any, JobHandle[R]]]


class EnqueueOf:
    """`Report.enqueue(...)`."""

    @overload
    def __get__(self, instance: object, owner: type[AsyncRun[P, R]], /) -> _Enqueue[P, R]: ...
    @overload
    def __get__(self, instance: object, owner: type[SyncRun[P, R]], /) -> _Enqueue[P, R]: ...
    def __get__(self, instance: object, owner: type[Any], /) -> Callable[..., Any]:
        return task_of(owner).enqueue


class CallOf:
    """`Report.call(...)`."""

    @overload
    def __get__(self, instance: object, owner: type[AsyncRun[P, R]], /) -> Callable[P, Call[R]]: ...
    @overload
    def __get__(self, instance: object, owner: type[SyncRun[P, R]], /) -> Callable[P, Call[R]]: ...
    def __get__(self, instance: object, owner: type[Any], /) -> Callable[..., Any]:
        return task_of(owner).call


class WithOptions(Protocol[P, R]):
    """Takes the options of one request."""

    def __call__(self, **values: Unpack[JobOptionValues]) -> Request[P, R]:
        """Return the task with these options."""
        ...


class OptionsOf:
    """`Report.options(...)`."""

    @overload
    def __get__(self, instance: object, owner: type[AsyncRun[P, R]], /) -> WithOptions[P, R]: ...
    @overload
    def __get__(self, instance: object, owner: type[SyncRun[P, R]], /) -> WithOptions[P, R]: ...
    def __get__(self, instance: object, owner: type[Any], /) -> Callable[..., Any]:
        return task_of(owner).options


class SyncOf:
    """`Report.sync`."""

    @overload
    def __get__(self, instance: object, owner: type[AsyncRun[P, R]], /) -> BlockingRequest[P, R]: ...
    @overload
    def __get__(self, instance: object, owner: type[SyncRun[P, R]], /) -> BlockingRequest[P, R]: ...
    def __get__(self, instance: object, owner: type[Any], /) -> BlockingRequest[..., Any]:
        return task_of(owner).sync


def task_of(owner: type) -> Task[..., Any]:
    """Return what a class was registered as; raises `InvalidTask` when it is abstract."""
    task: Task[..., Any] | None = vars(owner).get(TASK_ATTRIBUTE)
    if task is None:
        raise InvalidTask(f"{owner.__qualname__} is abstract, so it is not a task; write a complete subclass")
    return task


_KEYWORDS_ATTRIBUTE = "_duetime_keywords"
"""Where a class keeps the keywords that it was written with."""
_LATEST_ATTRIBUTE = "_duetime_latest"
"""Where a class keeps, in a list of one, the class that stands in its place now."""
_VERBS = ("as_callback", "call", "enqueue", "options", "sync", "task")


class Job(ABC):
    """The base of tasks written as classes: each run makes a fresh instance and calls its `run`."""

    task: ClassVar = TaskOf()
    """The registered task, as `@scheduler.task` would have made it."""
    enqueue: ClassVar = EnqueueOf()
    """Stores a job that calls `run` with these arguments; once this returns, the job is not lost."""
    call: ClassVar = CallOf()
    """Checks the arguments and returns a request for `scheduler.enqueue_many`."""
    options: ClassVar = OptionsOf()
    """Returns the task with options for one request."""
    sync: ClassVar = SyncOf()
    """The same verbs for callers without an event loop."""

    def __init_subclass__(
        cls,
        *,
        scheduler: EnqueueClient | None = None,
        name: str | None = None,
        **options: Unpack[TaskOptionValues],
    ) -> None:
        """Register the class under `name`, else its module and qualified name, unless it is still abstract."""
        super().__init_subclass__()
        if _KEYWORDS_ATTRIBUTE in vars(cls):
            # A decorator such as dataclass(slots=True) has made it again, with all its attributes but without keywords.
            vars(cls)[_LATEST_ATTRIBUTE][0] = cls
            return
        _check_verbs(cls)
        owner = {} if scheduler is None else {"scheduler": scheduler}
        setattr(cls, _KEYWORDS_ATTRIBUTE, {**owner, **options})
        setattr(cls, _LATEST_ATTRIBUTE, [cls])
        _register(cls, name)

    @classmethod
    def as_callback(cls) -> Callback:
        """Tell what a job stores that is to call this task when it has ended."""
        return task_of(cls).as_callback()

    @abstractmethod
    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Do the work; subclasses give it parameters of their own, and write it plain or async."""


def job_base(scheduler: EnqueueClient) -> type[Job]:
    """Return a base class whose subclasses are tasks of this scheduler."""
    base = types.new_class("Job", (Job,), {"scheduler": scheduler})
    base.__module__, base.__doc__ = Job.__module__, Job.__doc__
    return base


def _register(cls: type[Job], name: str | None) -> None:
    inherited: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        inherited |= vars(base).get(_KEYWORDS_ATTRIBUTE, {})
    scheduler: EnqueueClient | None = inherited.pop("scheduler", None)
    abstract = _is_abstract(cls)
    if abstract and name is not None:
        raise InvalidOption(f"{cls.__qualname__} is abstract, so it has no name; name its subclasses")
    # Options are checked here, where they are written, also those of a class that is not registered.
    checked = task_options(cast("TaskOptionValues", inherited), owner=scheduler)
    if abstract:
        return
    if scheduler is None:
        _refuse_class(
            cls, f"has no scheduler: write class {cls.__name__}(Job, scheduler=...), here or at a base"
        )
    setattr(cls, TASK_ATTRIBUTE, scheduler.add_task(_as_function(cls), name=name, options=checked))


def _as_function(cls: type[Job]) -> Callable[..., Any]:
    """Return a function with the parameters of `run` that makes an instance and runs it."""
    run = inspect.getattr_static(cls, "run")
    signature = _check_run(cls, run)

    latest: list[type[Job]] = vars(cls)[_LATEST_ATTRIBUTE]

    async def call_async(*args: Any, **kwargs: Any) -> Any:
        return await latest[0]().run(*args, **kwargs)

    def call_sync(*args: Any, **kwargs: Any) -> Any:
        return latest[0]().run(*args, **kwargs)

    call: Callable[..., Any] = call_async if inspect.iscoroutinefunction(run) else call_sync
    names = {"__module__": cls.__module__, "__name__": cls.__name__, "__qualname__": cls.__qualname__}
    types_ = {"__annotations__": _annotations(cls, run), "__signature__": signature, "__wrapped__": run}
    for attribute, value in {**names, **types_, "__doc__": cls.__doc__}.items():
        setattr(call, attribute, value)
    return call


def _check_run(cls: type[Job], run: Callable[..., Any]) -> inspect.Signature:
    """Return what `run` takes apart from the instance, or raise `InvalidTask` saying why it cannot be called."""
    check_function(run, name="run")
    signature = inspect.signature(run)
    parameters = list(signature.parameters.values())
    if not parameters or parameters[0].kind not in POSITIONAL_KINDS:
        _refuse_class(cls, f"has run{signature}, which does not take self")
    try:
        inspect.signature(cls).bind()
    except TypeError as error:
        _refuse_class(cls, f"cannot be made without arguments ({error}); pass them to run")
    return signature.replace(parameters=parameters[1:])


def _annotations(cls: type[Job], run: Callable[..., Any]) -> dict[str, Any]:
    """Resolve annotations where the class body could: its own names come before those of the module."""
    home = next(base for base in cls.__mro__ if "run" in vars(base))
    names: Mapping[str, Any] = {home.__name__: home, **vars(home)}
    try:
        return typing.get_type_hints(run, localns=names, include_extras=True)
    except (NameError, TypeError, AttributeError):
        # Reading the arguments fails in the same way, and reports it.
        return dict(run.__annotations__)


def _is_abstract(cls: type[Job]) -> bool:
    """Tell what ABCMeta will find; it looks only when the class is made, which is after this."""
    names = {*vars(cls)}.union(*(getattr(base, "__abstractmethods__", ()) for base in cls.__bases__))
    members = (inspect.getattr_static(cls, name, None) for name in names)
    return any(getattr(member, "__isabstractmethod__", False) for member in members)


def _check_verbs(cls: type[Job]) -> None:
    for verb in _VERBS:
        if inspect.getattr_static(cls, verb) is not vars(Job)[verb]:
            _refuse_class(cls, f"defines {verb}, which every job class has already; call it something else")


def _refuse_class(cls: type[Job], why: str) -> NoReturn:
    raise InvalidTask(f"{cls.__qualname__} cannot be a task: it {why}")


J = TypeVar("J", bound=Job)


class ScheduleDecorator(Protocol):
    """Puts a schedule on a function, a task or a job class, and returns the task or the class."""

    @overload
    def __call__(self, function: type[J], /) -> type[J]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: AsyncTask[P, R], /) -> AsyncTask[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: SyncTask[P, R], /) -> SyncTask[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: Callable[P, R], /) -> SyncTask[P, R]: ...
