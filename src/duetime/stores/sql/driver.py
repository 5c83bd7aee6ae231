"""The seam between the one SqlStore and a database: scripts of statements, and who runs them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar

from duetime.errors import StoreError
from duetime.model.time import Micros
from duetime.stores.base import DoctorCheck, Hint

T = TypeVar("T")

Row: TypeAlias = Sequence[Any]
Params: TypeAlias = Mapping[str, object]


class Statement(NamedTuple):
    """One statement in a database's own dialect, with the order of its named parameters."""

    name: str
    sql: str
    params: tuple[str, ...]
    columns: tuple[str, ...] = ()
    """If not empty, the statement takes its batch row by row, and these parameters from the row.

    The answer is then the rows of the batch that have changed something.
    """
    choice: Statement | None = None
    """If there is one, it comes first and tells the keys of the rows and the time; both are parameters of the rest."""
    answer: Statement | None = None
    """If there is one, it comes last and its rows are the answer; if not, the keys are."""


class Query(NamedTuple):
    """A statement with its values; `now` is added by the driver when the statement asks for it."""

    statement: Statement
    params: Params


Script: TypeAlias = Generator[Query, list[Row], T]
"""A verb without I/O: it yields queries, receives their rows and returns its answer.

The driver decides how: SQLite runs the whole script in one hop to its thread, PostgreSQL awaits each query.
No Python but the script's own runs while its transaction is open. A driver may run a script again from the
start after a conflict, so a script is handed over as a function that makes it.
"""
ScriptMaker: TypeAlias = Callable[[], Script[T]]


@dataclass(frozen=True, slots=True)
class SingleQueryScript(Generic[T]):
    """A script of one statement, made as often as it is called; a driver may run the statement straight away."""

    verb: str
    query: Query
    answer: Callable[[list[Row]], T]
    """Makes what it returns of the rows."""

    def __call__(self) -> Script[T]:
        """Return it as any other script."""
        script: Any = self._run()
        script.__name__ = self.verb
        return script  # type: ignore[no-any-return]

    def _run(self) -> Script[T]:
        return self.answer((yield self.query))


NOT_OPEN: Final = "the store is not open; use it inside `async with scheduler`"
FORKED: Final = (
    "this process was forked after the store was opened; a database connection does not survive that: open the "
    "scheduler in the child"
)


class AlreadyStored(StoreError):
    """Raised where something that was to be stored is stored already."""


class ScriptUndone(Exception):
    """Raised by a script that undoes all it has done."""


def script_name(script: object) -> str:
    """Return the verb a script was made by; failpoints are called by it."""
    name: str = getattr(script, "__name__", "")
    return name.lstrip("_")


def play(script: Script[T], execute: Callable[[Query], list[Row]]) -> T:
    """Run a script to its end in this thread."""
    try:
        query = next(script)
        while True:
            query = script.send(execute(query))
    except StopIteration as stop:
        answer: T = stop.value
        return answer


async def play_async(script: Script[T], execute: Callable[[Query], Awaitable[list[Row]]]) -> T:
    """Run a script to its end in this event loop."""
    try:
        query = next(script)
        while True:
            query = script.send(await execute(query))
    except StopIteration as stop:
        answer: T = stop.value
        return answer


class CallerTransaction(Protocol):
    """A caller's own transaction, on the caller's own connection."""

    announces: bool
    """Whether its commit can carry an announcement."""

    async def run(self, script: ScriptMaker[T]) -> T:
        """Run a script inside the transaction; if it fails, the transaction is as it was before.

        Raises `InvalidTransaction` where the tables of the script are not there.
        """
        ...

    def run_blocking(self, script: ScriptMaker[T]) -> T:
        """Do the same in this thread; raises `InvalidTransaction` for a connection that needs an event loop."""
        ...

    def lend(self, *, timeout: Micros) -> DriverHandlerTransaction:
        """Have a handler complete its job in it; raises `InvalidTransaction` where the store lends a connection for that."""
        ...


class DriverHandlerTransaction(Protocol):
    """A transaction on a connection that a handler uses meanwhile."""

    blocking: bool
    """Whether the connection works without an event loop."""
    expired: bool
    """Whether it took too long and was rolled back."""

    async def begin(self) -> object:
        """Begin, which may have to wait, and return the connection."""
        ...

    async def is_whole(self) -> bool:
        """Whether the transaction is still the one that was begun; asked once, before its last statements."""
        ...

    async def run(self, script: ScriptMaker[T]) -> T:
        """Run a script inside the transaction."""
        ...

    async def commit(self) -> None:
        """Commit and take the connection back."""

    async def rollback(self, cause: BaseException | None = None) -> bool:
        """Undo everything and take the connection back; False if the transaction had been ended before.

        Raises nothing: a connection that cannot be asked any more is as good as rolled back.
        """
        ...


class Driver(Protocol):
    """Runs scripts on one database."""

    single_writer: bool
    """Whether no one else can write while a transaction is open."""

    async def open(self) -> None:
        """Connect."""

    async def close(self) -> None:
        """Disconnect; safe to call twice."""

    async def write(
        self,
        script: ScriptMaker[T],
        *,
        atomic: bool = True,
        hint: Hint | None = None,
        rows: int | None = 1,
        again: ScriptMaker[T] | None = None,
    ) -> T:
        """Run a script in one transaction, and give the hint as soon as others can see what it wrote.

        `atomic=False` promises that it is a single statement, or that what follows the first may come later.
        `rows` is how many it reads or writes, which gives it time; None for what may take long.
        `again` is run on a new connection when no answer came to the script, which may have had its effect.
        """
        ...

    def write_blocking(self, script: ScriptMaker[T], *, hint: Hint | None = None) -> T | None:
        """Do the same for a thread that may wait; return None, and do nothing, if it needs an event loop."""
        ...

    async def read(self, script: ScriptMaker[T], *, rows: int | None = 1) -> T:
        """Run a script that changes nothing; again on a new connection when no answer came."""
        ...

    def borrow(self, tx: object) -> CallerTransaction:
        """Take a caller's own transaction for use; raises `InvalidTransaction` for what cannot be used."""
        ...

    def announcement(self, hint: Hint) -> Query | None:
        """Return the statement that gives a hint when its transaction commits; None if the commit itself does."""
        ...

    def lend(self, *, timeout: Micros) -> DriverHandlerTransaction:
        """Return a transaction that is yet to begin."""
        ...

    def sibling(self) -> Self:
        """Return a driver for another event loop, on connections of its own."""
        ...

    @property
    def persistent(self) -> bool:
        """Whether what is written outlives the process, or a restart of the server."""
        ...

    def hint(self, hint: Hint) -> None:
        """Tell this process at once and others soon; never blocks, never fails."""

    def wakeups(self) -> AsyncIterator[Hint]:
        """Yield hints until cancelled."""
        ...

    @property
    def hears_others(self) -> bool:
        """Whether hints of other processes arrive at present."""
        ...

    async def doctor(self) -> list[DoctorCheck]:
        """Look for settings that weaken a promise."""
        ...
