"""Counts what a store really sends, by listening between the store and its driver, or its calls to Redis."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from benchmarks.ledger import now

if TYPE_CHECKING:
    # Not loaded here: the memory of a worker is measured with this module in it.
    from duetime.stores.base import Hint, Store
    from duetime.stores.redis.connection import FunctionCalls
    from duetime.stores.sql.driver import Driver, Script

T = TypeVar("T")


class Sent(NamedTuple):
    """One statement on its way to the database, or one call on its way to Redis."""

    at: int
    kind: Literal["read", "write"]
    name: str


class Tap:
    """A driver that notes every statement before it passes it on."""

    def __init__(self, driver: Driver, sent: list[Sent]) -> None:
        self._driver = driver
        self._sent = sent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    async def write(
        self,
        script: Callable[[], Script[T]],
        *,
        atomic: bool = True,
        hint: Hint | None = None,
        rows: int | None = 1,
        again: Callable[[], Script[T]] | None = None,
    ) -> T:
        """Run a script that may change something."""
        second = None if again is None else lambda: self._noted("write", again())
        return await self._driver.write(
            lambda: self._noted("write", script()), atomic=atomic, hint=hint, rows=rows, again=second
        )

    def write_blocking(self, script: Callable[[], Script[T]], *, hint: Hint | None = None) -> T | None:
        """Do the same for a thread that may wait."""
        return self._driver.write_blocking(lambda: self._noted("write", script()), hint=hint)

    async def read(self, script: Callable[[], Script[T]], *, rows: int | None = 1) -> T:
        """Run a script that changes nothing."""
        return await self._driver.read(lambda: self._noted("read", script()), rows=rows)

    def sibling(self) -> Tap:
        """Listen to the pulse's connection too."""
        return Tap(self._driver.sibling(), self._sent)

    def _noted(self, kind: Literal["read", "write"], script: Script[T]) -> Script[T]:
        try:
            query = next(script)
            while True:
                self._sent.append(Sent(now(), kind, query.statement.name))
                query = script.send((yield query))
        except StopIteration as end:
            answer: T = end.value
            return answer


class CallTap:
    """Calls to Redis of which every one is noted before it is passed on."""

    def __init__(self, calls: FunctionCalls, sent: list[Sent]) -> None:
        self._calls = calls
        self._sent = sent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._calls, name)

    async def write(self, verb: str, *asked: Any, **told: Any) -> Any:
        """Make a call that may change something."""
        self._sent.append(Sent(now(), "write", verb))
        return await self._calls.write(verb, *asked, **told)

    async def read(self, verb: str, *asked: Any, **told: Any) -> Any:
        """Make a call that changes nothing."""
        self._sent.append(Sent(now(), "read", verb))
        return await self._calls.read(verb, *asked, **told)

    def sibling(self) -> CallTap:
        """Listen to the pulse's connection too."""
        return CallTap(self._calls.sibling(), self._sent)


def tapped(store: Store) -> list[Sent]:
    """Listen to an open store from here on; a worker must be started after this."""
    sent: list[Sent] = []
    whole: Any = store
    # No public name shows it.
    if hasattr(whole, "_driver"):
        whole._driver = Tap(whole._driver, sent)  # noqa: SLF001
    else:
        whole._calls = CallTap(whole._calls, sent)  # noqa: SLF001
    return sent
