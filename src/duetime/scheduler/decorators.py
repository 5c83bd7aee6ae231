"""The types of the decorators, so that a task keeps its function's own parameters."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

if TYPE_CHECKING:
    from duetime.scheduler.job_class import Job
    from duetime.scheduler.task import AsyncTask, SyncTask

# A coroutine function is also a plain callable, and a task is callable too: of overlapping overloads the first
# that fits is meant, which is what type checkers choose.

P = ParamSpec("P")
R = TypeVar("R")
J = TypeVar("J", bound="Job")


class TaskDecorator(Protocol):
    """Turns a function into a task."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: Callable[P, R], /) -> SyncTask[P, R]: ...


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
