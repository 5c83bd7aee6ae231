"""Answers with text in them that is no text, because somebody has edited a row."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

import msgspec

_encode: Final = msgspec.msgpack.Encoder().encode
_NUMBERS: Final[dict[int, str]] = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_CONSTANTS: Final = {0xC0: None, 0xC2: False, 0xC3: True}


def mended(packed: bytes) -> bytes:
    """Return the same answer with replacement characters where its text is no UTF-8."""
    return _encode(_Reader(packed).value())


class _Reader:
    """Reads the part of MessagePack that Redis writes."""

    def __init__(self, packed: bytes) -> None:
        self._packed = packed
        self._at = 0

    def value(self) -> Any:
        """Read the next value."""
        kind: int = self._number(">B")
        if kind in _CONSTANTS:
            return _CONSTANTS[kind]
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        for first, past, read in self._short():
            if first <= kind < past:
                return read(kind - first)
        for first, sizes, read in self._long():
            if first <= kind < first + len(sizes):
                return read(self._number(sizes[kind - first]))
        raise ValueError(f"Redis does not write MessagePack of the kind {kind:#x}")

    def _short(self) -> tuple[tuple[int, int, Callable[[int], Any]], ...]:
        return (
            (0x00, 0x80, int),
            (0x80, 0x90, self._map),
            (0x90, 0xA0, self._list),
            (0xA0, 0xC0, self._text),
            (0xE0, 0x100, lambda low: low - 0x20),
        )

    def _long(self) -> tuple[tuple[int, tuple[str, ...], Callable[[int], Any]], ...]:
        return (
            (0xD9, (">B", ">H", ">I"), self._text),
            (0xDC, (">H", ">I"), self._list),
            (0xDE, (">H", ">I"), self._map),
        )

    def _number(self, form: str) -> Any:
        (number,) = struct.unpack_from(form, self._packed, self._at)
        self._at += struct.calcsize(form)
        return number

    def _text(self, length: int) -> str:
        self._at += length
        return self._packed[self._at - length : self._at].decode(errors="replace")

    def _list(self, length: int) -> list[Any]:
        return [self.value() for _ in range(length)]

    def _map(self, length: int) -> dict[Any, Any]:
        return {self.value(): self.value() for _ in range(length)}
