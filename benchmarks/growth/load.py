"""What a PostgreSQL was asked and what that cost it, as the difference of two readings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from duetime.stores.sql.driver import Statement

_CONSTANT = re.compile(r"'(?:[^']|'')*'|\$\d+|-?\b\d+\b|\b(?:true|false|epoch)\b|(?<!IS )(?<!NOT )NULL")
_SPACE = re.compile(r"\s+")
_NAMED = {
    "BEGIN": "begin",
    "COMMIT": "commit",
    "SELECT set_config": "notify",
    "COPY": "copy",
    "LISTEN": "listen",
    "SELECT $1": "check",
}
"""Statements that no `.sql` file has, by how they begin."""
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Calls:
    """All calls of one statement: how many, and how many pages they touched."""

    count: int = 0
    pages: int = 0

    def __add__(self, other: Calls) -> Calls:
        return Calls(self.count + other.count, self.pages + other.pages)

    def __sub__(self, other: Calls) -> Calls:
        return Calls(self.count - other.count, self.pages - other.pages)


_NONE = Calls()


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a server has done, up to a moment or between two."""

    seconds: float
    commits: int
    """Transactions that wrote something."""
    wal: int
    """Bytes of the write-ahead log, of everything on the server."""
    used: Mapping[int, float] = field(default_factory=dict)
    """Processor seconds, by process; of those that ended in between, the rest is not known."""
    calls: Mapping[str, Calls] = field(default_factory=dict)
    """By the name of the statement."""

    def since(self, before: Load) -> Load:
        """Return what was done since another reading."""
        calls = {name: each - before.calls.get(name, _NONE) for name, each in self.calls.items()}
        return Load(
            seconds=self.seconds - before.seconds,
            commits=self.commits - before.commits,
            wal=self.wal - before.wal,
            used={pid: max(0.0, used - before.used.get(pid, 0.0)) for pid, used in self.used.items()},
            calls={name: each for name, each in calls.items() if each.count},
        )

    @property
    def processor(self) -> float:
        """Processor seconds, of all processes of the server."""
        return sum(self.used.values())

    @property
    def statements(self) -> int:
        """How many statements it was asked."""
        return sum(each.count for each in self.calls.values())

    def pages(self, *names: str) -> float:
        """Return how many pages one call touched, of the statements of these names together."""
        found = sum((self.calls.get(name, _NONE) for name in names), _NONE)
        return found.pages / found.count if found.count else 0.0


class Names:
    """Tells which of the store's statements a text in the server's statistics is, where constants are left out."""

    def __init__(self, statements: Iterable[Statement]) -> None:
        self._names = {skeleton(each.sql): each.name for each in statements}

    def of(self, text: str) -> str:
        """Return the name of a statement."""
        found = self._names.get(skeleton(text))
        if found is None:
            found = next((name for start, name in _NAMED.items() if text.startswith(start)), OTHER)
        return found

    def calls(self, rows: Iterable[tuple[str, int, int]]) -> dict[str, Calls]:
        """Add up the server's statistics by name: of text, calls and pages."""
        found: dict[str, Calls] = {}
        for text, count, pages in rows:
            name = self.of(text)
            found[name] = found.get(name, _NONE) + Calls(count, pages)
        return found


def skeleton(text: str) -> str:
    """Return a statement without what the server's statistics leave out, and without layout."""
    return _SPACE.sub(" ", _CONSTANT.sub("?", text)).strip()
