"""How the stores of a hybrid are asked: only the far one, all of them at once, or one after the other for a job."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import wraps
from types import CoroutineType
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeAlias, TypeVar, cast

from duetime.errors import StoreUnavailable
from duetime.model.job import JobId
from duetime.stores.base import Store

P = ParamSpec("P")
A = TypeVar("A")
T = TypeVar("T")
Parts = Sequence[Store]
"""The stores from near to far."""
_UNKNOWN: Final = "unknown"
"""The answer of each verb about a job that a store does not have."""


Asked: TypeAlias = "Callable[Concatenate[Any, P], Awaitable[T]]"
Verb: TypeAlias = "Callable[Concatenate[Any, P], CoroutineType[Any, Any, T]]"


def far_verb(verb: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Ask only the far store."""
    name = verb.__name__

    @wraps(verb)
    def ask(store: HasParts, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return cast("T", getattr(store.parts[-1], name)(*args, **kwargs))

    return ask


def each_verb(verb: Asked[P, A], merge: Callable[[Sequence[A]], T]) -> Verb[P, T]:
    """Ask all stores at the same time, and make one answer of theirs."""
    name = verb.__name__

    @wraps(verb)
    async def ask(store: HasParts, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return merge(await each(store.parts, lambda part: getattr(part, name)(*args, **kwargs)))

    return cast("Any", ask)  # type: ignore[no-any-return]


def job_verb(verb: Asked[P, T]) -> Verb[P, T]:
    """Ask the stores one after the other, each about the jobs that those before do not have."""
    name = verb.__name__

    @wraps(verb)
    async def ask(store: HasParts, /, ids: Sequence[JobId], **kwargs: Any) -> Any:
        return await by_id(store.parts, ids, lambda part, left: getattr(part, name)(left, **kwargs))

    return cast("Any", ask)  # type: ignore[no-any-return]


class HasParts(Protocol):
    """What is made of several stores."""

    parts: Parts


async def each(parts: Parts, ask: Callable[[Store], Awaitable[T]]) -> list[T]:
    """Ask all stores, and return their answers from near to far; where one of them fails there is no answer."""
    answers = await asyncio.gather(*map(ask, parts), return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return cast("list[T]", answers)


async def by_id(
    parts: Parts,
    ids: Sequence[JobId],
    ask: Callable[[Store, Sequence[JobId]], Awaitable[Mapping[JobId, Any]]],
) -> dict[JobId, Any]:
    """Return what is said of each job, in the order asked; nothing where no store says anything of it.

    A store that cannot be reached does not matter if the others have all of the jobs.
    """
    said: dict[JobId, Any] = {}

    def left() -> list[JobId]:
        return [job_id for job_id in dict.fromkeys(ids) if said.get(job_id, _UNKNOWN) == _UNKNOWN]

    failure: StoreUnavailable | None = None
    for part in parts:
        try:
            said |= await ask(part, asked) if (asked := left()) else {}
        except StoreUnavailable as error:
            failure = error
    if failure is not None and left():
        raise failure
    return {job_id: said[job_id] for job_id in ids if job_id in said}
