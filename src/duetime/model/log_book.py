"""The log of one run: its beginning and its end, however much there is in between."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

HEAD_LINES: Final = 500
HEAD_BYTES: Final = 32 * 1024
"""How much of the beginning is kept."""
TAIL_LINES: Final = 500
TAIL_BYTES: Final = 32 * 1024
"""How much of the end is kept, as far as the run has come."""
RECORD_LINES: Final = 100
RECORD_CHARACTERS: Final = 4_000
"""How much of one record is kept."""
_PIECE_LINES: Final = TAIL_LINES // 10
_PIECE_BYTES: Final = TAIL_BYTES // 8
"""The end is kept in pieces and dropped piece by piece, so these are small."""


class Piece(NamedTuple):
    """Lines that are stored together."""

    line: int
    """The number of the first of them, from 1."""
    text: str
    drop: tuple[int, int] | None = None
    """Lines that were stored before and are pushed out: the first of them, and the first that stays."""


class _Entry(NamedTuple):
    line: int
    text: str
    lines: int
    size: int

    @property
    def past(self) -> int:
        return self.line + self.lines


class LogBook:
    """Takes any number of records, hands them out in pieces, and never has more than its bounds kept."""

    def __init__(self) -> None:
        self._next = 1
        self._head: list[_Entry] = []
        self._head_lines = HEAD_LINES
        self._head_bytes = HEAD_BYTES
        self._tail_from: int | None = None
        """The line with which the end began, once the beginning was full."""
        self._fresh: deque[_Entry] = deque()
        self._stored: deque[_Entry] = deque()
        """The pieces of the end that were handed out, without their text."""
        self._tail_lines = 0
        self._tail_bytes = 0
        self._pushed_out: int | None = None

    @property
    def has_more(self) -> bool:
        """Whether there is anything that was not handed out."""
        return bool(self._head or self._fresh)

    def add(self, text: str) -> None:
        """Take a record."""
        entry = _measured(self._next, text)
        self._next = entry.past
        if self._tail_from is None:
            if entry.lines <= self._head_lines and entry.size <= self._head_bytes:
                self._head_lines -= entry.lines
                self._head_bytes -= entry.size
                self._head.append(entry)
                return
            # Also what would still fit belongs to the end from now on, so that lines stay in order.
            self._tail_from = entry.line
        self._fresh.append(entry)
        self._tail_lines += entry.lines
        self._tail_bytes += entry.size
        while self._tail_lines > TAIL_LINES or self._tail_bytes > TAIL_BYTES:
            self._drop_oldest()

    def cut(self) -> list[Piece]:
        """Hand out what was added since the last cut."""
        pieces = [Piece(self._head[0].line, _joined(self._head))] if self._head else []
        self._head = []
        for entry in _grouped(self._fresh):
            self._stored.append(entry._replace(text=""))
            pieces.append(Piece(entry.line, entry.text, self._take_drop()))
        self._fresh.clear()
        return pieces

    def _drop_oldest(self) -> None:
        if self._stored:
            oldest = self._stored.popleft()
            self._pushed_out = oldest.past
        else:
            oldest = self._fresh.popleft()
        self._tail_lines -= oldest.lines
        self._tail_bytes -= oldest.size

    def _take_drop(self) -> tuple[int, int] | None:
        past, self._pushed_out = self._pushed_out, None
        return None if past is None or self._tail_from is None else (self._tail_from, past)


def _measured(line: int, text: str) -> _Entry:
    """Cut a record that is too long, and measure what is left."""
    kept = text[:RECORD_CHARACTERS]
    if kept.count("\n") >= RECORD_LINES:
        kept = "\n".join(kept.split("\n", RECORD_LINES)[:RECORD_LINES])
    if len(kept) < len(text):
        kept += f"… (cut, {len(text) - len(kept)} characters more)"
    return _Entry(line, kept, kept.count("\n") + 1, len(kept.encode(errors="replace")) + 1)


def _grouped(entries: deque[_Entry]) -> Iterator[_Entry]:
    """Join records to pieces that are small, but no smaller than a record."""
    group: list[_Entry] = []
    lines = size = 0
    for entry in entries:
        if group and (lines >= _PIECE_LINES or size >= _PIECE_BYTES):
            yield _Entry(group[0].line, _joined(group), lines, size)
            group, lines, size = [], 0, 0
        group.append(entry)
        lines += entry.lines
        size += entry.size
    if group:
        yield _Entry(group[0].line, _joined(group), lines, size)


def _joined(entries: list[_Entry]) -> str:
    return "\n".join(entry.text for entry in entries)
