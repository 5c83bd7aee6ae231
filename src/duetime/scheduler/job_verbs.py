"""The verbs of a job class, typed from its `run`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, Unpack, overload

from duetime.errors import InvalidTask
from duetime.model.task import JobOptionValues
from duetime.scheduler.handle import JobHandle
from duetime.scheduler.task import Call, Request, Task

if TYPE_CHECKING:
    from duetime.scheduler.blocking import BlockingRequest

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

REGISTERED = "_duetime_task"
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


class EnqueueOf:
    """`Report.enqueue(...)`."""

    @overload
    def __get__(
        self, instance: object, owner: type[AsyncRun[P, R]], /
    ) -> Callable[P, Coroutine[Any, Any, JobHandle[R]]]: ...
    @overload
    def __get__(
        self, instance: object, owner: type[SyncRun[P, R]], /
    ) -> Callable[P, Coroutine[Any, Any, JobHandle[R]]]: ...
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
    task: Task[..., Any] | None = vars(owner).get(REGISTERED)
    if task is None:
        text = f"{owner.__qualname__} is abstract, so it is not a task; write a subclass that defines what is missing"
        raise InvalidTask(text)
    return task
