"""How a database says the things that differ: a dialect is data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Columns: TypeAlias = Sequence[tuple[str, str]]
"""Names and types (`text`, `int`, `real`) of a batch, in the order of its arrays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The words of one database."""

    folder: str
    """Where its overrides and migrations are, below this package."""
    now: str
    """The store's clock in microseconds."""
    now_once: str
    """The same, worked out once for all rows; the planner cannot guess how much lies before it."""
    each: Callable[[str, Columns], str]
    """Reads the batch in a JSON parameter as a table."""
    locking: str
    """Locks the rows of a SELECT until the transaction ends."""
    current: str = ""
    """Has a SELECT read what is committed, also in a transaction that reads from a snapshot but writes to what is."""
    in_order: str = "JOIN"
    """Joins two tables of which the first is to be read first, where the planner has to be told."""
    by_key: str = ""
    """Insists on the primary key, behind the name of a table: who scans it instead waits for rows that others have locked."""
    skip_locked: str
    """Locks the rows of the table `{0}` in a SELECT and leaves out those that others have locked."""
    index: str
    """Insists on the index `{0}` of the table `{1}`, behind its name."""
    parameter: Callable[[str, int], str]
    """Writes the parameter with this name, which is the nth of its statement."""
    repeats: bool = False
    """Whether a parameter counts once for each place where it stands."""
    unrolled: frozenset[str] = frozenset()
    """The statements that are quicker when they get their batch row by row."""
    storing: tuple[str, str] = ("", "")
    """What stands before and behind a statement that stores jobs, so that it answers the store's clock."""
    stored_at: str = "{0}"
    """The clock `{0}` as such a statement notes it, where that is how its answer comes to carry it."""
    in_steps: bool = False
    """Whether it has neither UPDATE ... FROM, RETURNING nor ON CONFLICT."""
    words: tuple[tuple[str, str], ...] = ()
    """Single words that it knows by another name."""
    slow_on_conflict: bool = False
    """Whether a large INSERT is much faster without ON CONFLICT."""
    claims_per_statement: bool
    """Whether one claim statement serves all queues; if not, there is one for each."""

    def fragments(self) -> Mapping[str, str]:
        """Return the fragments that need no argument."""
        return {
            "locking": self.locking,
            "current": self.current,
            "in_order": self.in_order,
            "by_key": self.by_key,
            "now": self.now,
            "now_once": self.now_once,
            "stored_at": self.stored_at.format(self.now),
            "stored_at_once": self.stored_at.format(self.now_once),
        }
