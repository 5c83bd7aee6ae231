"""What a run says while it runs, as values: how far it is, and what it logged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from duetime.errors import InvalidOption
from duetime.model.job import JobId, Token
from duetime.model.shown import shown

MAX_NOTE: Final = 200
"""How many characters of a note are kept."""
_DIGITS: Final = 6
"""More would not survive every database."""


class Progress(NamedTuple):
    """How far a run is, on behalf of its claim."""

    token: Token
    fraction: float
    note: str = ""


class NewLogPart(NamedTuple):
    """Some lines of a run's log, ready to be stored; storing them twice is harmless."""

    token: Token
    attempt: int
    line: int
    """The number of its first line in the log of the run, from 1."""
    text: str
    drop: tuple[int, int] | None = None
    """Lines stored before that make room for it: the first of them, and the first that stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPart:
    """Some lines of a job's log, as they were stored together."""

    job_id: JobId
    fence: int
    """Which run wrote them; it rises from run to run."""
    attempt: int
    """Which try that was, from 1."""
    line: int
    """The number of its first line in the log of that run, from 1."""
    text: str
    """Lines, the last one without its end."""
    dropped: int = 0
    """How many lines are missing before it, because the log was too long."""

    @property
    def past(self) -> int:
        """The number of the line after its last one."""
        return self.line + self.text.count("\n") + 1


def with_gaps(parts: Iterable[LogPart]) -> list[LogPart]:
    """Return the log of a job from its beginning, with what is missing before each part."""
    found: list[LogPart] = []
    for part in parts:
        before = found[-1] if found and found[-1].fence == part.fence else None
        found.append(replace(part, dropped=part.line - (1 if before is None else before.past)))
    return found


def check_fraction(value: object) -> float:
    """Return a number from 0 to 1 as it is stored; raises `InvalidOption` for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return round(float(value), _DIGITS)
    text = f"progress must be a number from 0 to 1, such as 0.4, not {shown(value)}"
    raise InvalidOption(text)


def check_note(value: object) -> str:
    """Return a note as it is stored, cut to `MAX_NOTE`; raises `InvalidOption` when it is no text."""
    if not isinstance(value, str):
        text = f"the note of a progress must be text, not {shown(value)}"
        raise InvalidOption(text)
    # What is no Unicode, as in names of files, would get through neither a line to a child nor into a database.
    note = value[: MAX_NOTE + 1].encode("utf-8", "backslashreplace").decode()
    return note if len(note) <= MAX_NOTE else f"{note[: MAX_NOTE - 1]}…"
