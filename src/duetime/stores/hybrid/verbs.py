"""How the stores of a hybrid are asked: only the far one, all of them at once, or one after the other for a job."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import wraps
from types import CoroutineType
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeAlias, TypeVar, cast

from duetime.errors import StoreUnavailable
from duetime.model.job import JobId
from duetime.model.stored.audit import NOTHING_NOTED, Noted
from duetime.stores.base import Store

P = ParamSpec("P")
A = TypeVar("A")
T = TypeVar("T")
Parts = Sequence[Store]
"""The stores from near to far."""
JobAnswers: TypeAlias = Mapping[JobId, Any]
_CHANGED: Final = frozenset({"cancelled", "requested", "deleted", "changed", "released"})
"""The answers about a job that was changed."""
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
    async def ask(
        store: HasParts, /, ids: Sequence[JobId], *, noted: Noted = NOTHING_NOTED, **kwargs: Any
    ) -> Any:
        def change(part: Store, left: Sequence[JobId], noted: Noted) -> Awaitable[JobAnswers]:
            return getattr(part, name)(left, noted=noted, **kwargs)  # type: ignore[no-any-return]

        return await change_by_id(store.parts, ids, change, noted=noted)

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


async def change_by_id(
    parts: Parts,
    ids: Sequence[JobId],
    change: Callable[[Store, Sequence[JobId], Noted], Awaitable[JobAnswers]],
    *,
    noted: Noted,
) -> dict[JobId, Any]:
    """Change jobs where they live, and return the answers; what is noted of them is kept far, in a step of its own."""
    far = parts[-1]

    async def ask(part: Store, left: Sequence[JobId]) -> JobAnswers:
        if part is far:
            return await change(part, left, noted)
        answers = await change(part, left, NOTHING_NOTED)
        changed = [noted[job_id] for job_id in answers if job_id in noted and answers[job_id] in _CHANGED]
        if changed:
            await far.enqueue([], entries=changed)
        return answers

    return await by_id(parts, ids, ask)


async def by_id(
    parts: Parts, ids: Sequence[JobId], ask: Callable[[Store, Sequence[JobId]], Awaitable[JobAnswers]]
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
