"""What a run reports while it runs: how far it is, and its log, kept within bounds."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from duetime.errors import InvalidOption
from duetime.model.job import JobId, Token
from duetime.model.text import shown

MAX_NOTE: Final = 200
"""How many characters of a note are kept."""
_FRACTION_DIGITS: Final = 6
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
        return round(float(value), _FRACTION_DIGITS)
    raise InvalidOption(f"progress must be a number from 0 to 1, such as 0.4, not {shown(value)}")


def check_note(value: object) -> str:
    """Return a note as it is stored, cut to `MAX_NOTE`; raises `InvalidOption` when it is no text."""
    if not isinstance(value, str):
        raise InvalidOption(f"the note of a progress must be text, not {shown(value)}")
    # Half a surrogate pair, as in the name of a file, cannot be sent to a child process or stored.
    note = value[: MAX_NOTE + 1].encode("utf-8", "backslashreplace").decode()
    return note if len(note) <= MAX_NOTE else f"{note[: MAX_NOTE - 1]}…"


HEAD_LINES: Final = 500
HEAD_BYTES: Final = 32 * 1024
"""How much of the beginning is kept."""
TAIL_LINES: Final = 500
TAIL_BYTES: Final = 32 * 1024
"""How much of the end is kept."""
RECORD_LINES: Final = 100
RECORD_CHARACTERS: Final = 4_000
"""How much of one record is kept."""
_CHUNK_LINES: Final = TAIL_LINES // 10
_CHUNK_BYTES: Final = TAIL_BYTES // 8
"""The end is stored and dropped in pieces, so these are small."""


@dataclass(slots=True)
class _LogPiece:
    """Whole records that are stored and dropped together."""

    line: int
    texts: list[str] = field(default_factory=list[str])
    """What was not handed out yet."""
    lines: int = 0
    size: int = 0


class BoundedLog:
    """A log of any length, handed out in pieces; only its beginning and its end are kept."""

    def __init__(self) -> None:
        self._next = 1
        self._head = _LogPiece(1)
        self._tail_from: int | None = None
        """The line with which the end began, once the beginning was full."""
        self._fresh: deque[_LogPiece] = deque()
        self._stored: deque[_LogPiece] = deque()
        """The pieces of the end that were handed out, without their texts."""
        self._tail_lines = 0
        self._tail_bytes = 0
        self._pushed_out: int | None = None

    @property
    def has_more(self) -> bool:
        """Whether there is anything left to hand out."""
        return bool(self._head.texts or self._fresh)

    def add(self, text: str) -> None:
        """Add a record."""
        kept = _bounded(text)
        lines, size = kept.count("\n") + 1, len(kept.encode(errors="replace")) + 1
        piece = self._head
        if self._tail_from is None and (piece.lines + lines > HEAD_LINES or piece.size + size > HEAD_BYTES):
            # From now on every record belongs to the end, even one that would fit, so that lines stay in order.
            self._tail_from = self._next
        if self._tail_from is not None:
            last = self._fresh[-1] if self._fresh else None
            if last is None or last.lines >= _CHUNK_LINES or last.size >= _CHUNK_BYTES:
                self._fresh.append(_LogPiece(self._next))
            piece = self._fresh[-1]
            self._tail_lines += lines
            self._tail_bytes += size
        piece.texts.append(kept)
        piece.lines += lines
        piece.size += size
        self._next += lines
        while self._tail_lines > TAIL_LINES or self._tail_bytes > TAIL_BYTES:
            oldest = (self._stored or self._fresh).popleft()
            self._tail_lines -= oldest.lines
            self._tail_bytes -= oldest.size
            if not oldest.texts:
                self._pushed_out = oldest.line + oldest.lines

    def cut(self, token: Token, attempt: int) -> list[NewLogPart]:
        """Hand out what was added since the last cut."""
        head = self._head
        parts = [NewLogPart(token, attempt, head.line, "\n".join(head.texts))] if head.texts else []
        head.texts, head.line = [], self._next
        for piece in self._fresh:
            drop = None
            if self._pushed_out is not None and self._tail_from is not None:
                drop = self._tail_from, self._pushed_out
            parts.append(NewLogPart(token, attempt, piece.line, "\n".join(piece.texts), drop))
            piece.texts, self._pushed_out = [], None
        self._stored += self._fresh
        self._fresh.clear()
        return parts


def _bounded(text: str) -> str:
    """Cut a record that is too long."""
    kept = text[:RECORD_CHARACTERS]
    if kept.count("\n") >= RECORD_LINES:
        kept = "\n".join(kept.split("\n", RECORD_LINES)[:RECORD_LINES])
    return kept if kept == text else f"{kept}… (cut, {len(text) - len(kept)} characters more)"
