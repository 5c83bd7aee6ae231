"""A verb of the store is a generator method on the class of its subject; these decorators have the driver run it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial, wraps
from types import CoroutineType
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from duetime.errors import SchemaMismatch
from duetime.model.time import Clock
from duetime.stores.base import Hint
from duetime.stores.sql.driver import Driver, Query, Row, Script, ScriptMaker, play, script_name
from duetime.stores.sql.schema import identity
from duetime.stores.sql.statements.loader import Dialect, load

P = ParamSpec("P")
T = TypeVar("T")

HintingScript: TypeAlias = Generator[Query | Hint, list[Row], T]
"""A script that also says which hints to give once it is committed."""
RowCount: TypeAlias = Callable[[Any], int] | int | None
"""How many rows a verb reads or writes, perhaps told from its first argument; `None`: it may take long."""


class SqlSubject:
    """What the verbs of every subject work with."""

    def __init__(self, driver: Driver, dialect: Dialect, *, namespace: str, clock: Clock | None) -> None:
        """`clock`: the store's, where the database has none of its own."""
        self._driver = driver
        self._dialect = dialect
        self._namespace = namespace
        self._clock = clock
        self._sql = load(dialect, namespace)
        self._identity: str | None = None

    async def identity(self) -> str:
        """Return what tells this store from every other, so that nothing is written to another one; asked once."""
        if self._identity is None:
            self._identity = await self._driver.read(lambda: identity(self._sql))
        if self._identity is None:
            raise SchemaMismatch("there are no tables yet: run `duetime migrate`")
        return self._identity

    async def run_read(self, script: ScriptMaker[T], *, rows: int | None) -> T:
        """Run a script that changes nothing."""
        return await self._driver.read(script, rows=rows)

    async def run_write(self, script: Callable[[], HintingScript[T]], *, atomic: bool, rows: int | None) -> T:
        """Run a script in a transaction, and give its hints when it is committed."""
        hints: dict[Hint, None] = {}
        answer = await self._driver.write(lambda: _collecting(script(), hints), atomic=atomic, rows=rows)
        for hint in hints:
            self._driver.hint(hint)
        return answer


S = TypeVar("S", bound=SqlSubject)
Verb: TypeAlias = "Callable[Concatenate[S, P], CoroutineType[Any, Any, T]]"


def read(*, rows: RowCount = 1) -> Callable[[Callable[Concatenate[S, P], Script[T]]], Verb[S, P, T]]:
    """Have a method's script run as one that changes nothing; without the database for an empty batch."""
    return _decorator(SqlSubject.run_read, rows)  # type: ignore[no-any-return]


def write(
    *, atomic: bool = True, rows: RowCount = 1
) -> Callable[[Callable[Concatenate[S, P], HintingScript[T]]], Verb[S, P, T]]:
    """Have a method's script run in one transaction, and its hints given behind it; without one for an empty batch.

    `atomic=False` promises that it is a single statement, or that what follows the first may come later.
    """
    return _decorator(partial(SqlSubject.run_write, atomic=atomic), rows)  # type: ignore[no-any-return]


def _decorator(run: Callable[..., Any], rows: RowCount) -> Any:
    def decorate(verb: Callable[..., HintingScript[Any]]) -> Any:
        @wraps(verb)
        async def call(self: SqlSubject, /, *args: Any, **kwargs: Any) -> Any:
            script = partial(verb, self, *args, **kwargs)
            count = rows(args[0]) if callable(rows) else rows
            if count == 0:
                return play(_collecting(script(), {}), lambda _: [])
            return await run(self, script, rows=count)

        return call

    return decorate


def _collecting(script: HintingScript[T], hints: dict[Hint, None]) -> Script[T]:
    """Return a script of the same name that keeps the hints."""
    collected: Any = _collect(script, hints)
    collected.__name__ = script_name(script)
    return collected  # type: ignore[no-any-return]


def _collect(script: HintingScript[T], hints: dict[Hint, None]) -> Script[T]:
    # It may be run again, after a conflict.
    hints.clear()
    try:
        step = next(script)
        while True:
            if isinstance(step, Hint):
                hints[step] = None
                step = next(script)
            else:
                step = script.send((yield step))
    except StopIteration as stop:
        answer: T = stop.value
        return answer
