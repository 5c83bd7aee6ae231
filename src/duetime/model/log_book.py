"""The log of one run: its beginning and its end, however much there is in between."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

HEAD_LINES: Final = 500
HEAD_BYTES: Final = 32 * 1024
"""How much of the beginning is kept; it can be stored while the run goes on."""
TAIL_LINES: Final = 500
TAIL_BYTES: Final = 32 * 1024
"""How much of the end is kept; it is known when the run has ended."""
MAX_RECORD: Final = 4_000
"""How many characters of one record are kept."""


class _Entry(NamedTuple):
    text: str
    lines: int
    size: int


class LogBook:
    """Takes any number of records and never holds more than its bounds."""

    def __init__(self) -> None:
        self.dropped = 0
        """How many lines were left out between the beginning and the end."""
        self._head: list[str] = []
        self._lines = HEAD_LINES
        self._bytes = HEAD_BYTES
        self._head_open = True
        self._tail: deque[_Entry] = deque()
        self._tail_lines = 0
        self._tail_bytes = 0

    def add(self, text: str) -> bool:
        """Take a record; return whether it belongs to the beginning, and so can be stored at once."""
        entry = _measured(text)
        if self._head_open and entry.lines <= self._lines and entry.size <= self._bytes:
            self._lines -= entry.lines
            self._bytes -= entry.size
            self._head.append(entry.text)
            return True
        # Also what would still fit goes to the end from now on, so that lines stay in order.
        self._head_open = False
        self._tail.append(entry)
        self._tail_lines += entry.lines
        self._tail_bytes += entry.size
        while self._tail_lines > TAIL_LINES or self._tail_bytes > TAIL_BYTES:
            self._drop_oldest()
        return False

    def cut(self) -> str:
        """Return what the beginning has gained since the last cut; may be empty."""
        head, self._head = self._head, []
        return "\n".join(head)

    def rest(self) -> str:
        """Return all that was not cut, with a line that says how much was dropped; may be empty."""
        note = [f"… {self.dropped} lines were dropped here …"] if self.dropped else []
        lines = [*self._head, *note, *(entry.text for entry in self._tail)]
        self._head = []
        self._tail.clear()
        return "\n".join(lines)

    def _drop_oldest(self) -> None:
        oldest = self._tail.popleft()
        self._tail_lines -= oldest.lines
        self._tail_bytes -= oldest.size
        self.dropped += oldest.lines


def _measured(text: str) -> _Entry:
    """Cut a record that is too long, in lines and in characters, and measure what is left."""
    if len(text) > MAX_RECORD:
        text = f"{text[:MAX_RECORD]}… (cut, {len(text) - MAX_RECORD} characters more)"
    return _Entry(text, text.count("\n") + 1, len(text.encode(errors="replace")) + 1)
