from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from duetime.model.job import Token
from duetime.model.reports import (
    HEAD_BYTES,
    HEAD_LINES,
    RECORD_CHARACTERS,
    RECORD_LINES,
    TAIL_BYTES,
    TAIL_LINES,
    BoundedLog,
    NewLogPart,
)

TOKEN = Token("job", 1, "claim")


class Kept:
    """What a store would have of a book: lines by number."""

    def __init__(self) -> None:
        self.pieces: dict[int, str] = {}

    def take(self, book: BoundedLog) -> None:
        for piece in book.cut(TOKEN, 1):
            assert piece.line not in self.pieces
            self.pieces[piece.line] = piece.text
            first, past = piece.drop or (0, 0)
            self.pieces = {n: text for n, text in self.pieces.items() if not first <= n < past}

    @property
    def lines(self) -> dict[int, str]:
        return {
            first + n: line
            for first, text in sorted(self.pieces.items())
            for n, line in enumerate(text.split("\n"))
        }


def test_a_short_log_is_kept_whole_and_handed_out_once() -> None:
    book = BoundedLog()
    assert book.cut(TOKEN, 1) == []
    book.add("one")
    book.add("two\nand more")
    assert book.has_more
    assert book.cut(TOKEN, 1) == [NewLogPart(TOKEN, 1, 1, "one\ntwo\nand more")]
    assert not book.has_more
    assert book.cut(TOKEN, 1) == []
    book.add("four")
    assert book.cut(TOKEN, 1) == [NewLogPart(TOKEN, 1, 4, "four")]


@pytest.mark.parametrize("every", [1, 7, 100, 10_000])
def test_of_a_log_without_end_the_first_and_the_last_lines_are_kept(every: int) -> None:
    book, kept = BoundedLog(), Kept()
    count = 5_000
    for n in range(1, count + 1):
        book.add(f"line {n}")
        if n % every == 0:
            kept.take(book)
    kept.take(book)
    assert all(line == f"line {n}" for n, line in kept.lines.items())
    head = [n for n in kept.lines if n <= HEAD_LINES]
    tail = [n for n in kept.lines if n > HEAD_LINES]
    assert head == list(range(1, HEAD_LINES + 1))
    assert TAIL_LINES * 0.8 <= len(tail) <= TAIL_LINES
    assert tail == list(range(count - len(tail) + 1, count + 1))


def test_what_just_fits_is_kept_whole() -> None:
    book, kept = BoundedLog(), Kept()
    for n in range(HEAD_LINES + TAIL_LINES):
        book.add(f"line {n}")
    kept.take(book)
    assert len(kept.lines) == HEAD_LINES + TAIL_LINES


@pytest.mark.parametrize("character", ["a", "é", "漢", "\ud800"])
def test_long_lines_are_bounded_by_their_bytes(character: str) -> None:
    book, kept = BoundedLog(), Kept()
    for n in range(1_000):
        book.add(character * 1_000)
        if n % 10 == 0:
            kept.take(book)
    kept.take(book)
    size = sum(len(text.encode(errors="replace")) + 1 for text in kept.pieces.values())
    assert (HEAD_BYTES + TAIL_BYTES) / 2 < size <= HEAD_BYTES + TAIL_BYTES


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3_000), st.booleans()), max_size=300))
def test_whatever_is_logged_what_is_kept_is_bounded_in_order_and_ends_with_the_last_line(
    records: list[tuple[int, int, bool]],
) -> None:
    book, kept = BoundedLog(), Kept()
    total = 0
    for breaks, length, cut in records:
        book.add("x" * length + "\n" * breaks)
        total += breaks + 1
        if cut:
            kept.take(book)
    kept.take(book)
    lines = kept.lines
    assert len(lines) <= HEAD_LINES + TAIL_LINES
    assert sum(len(line) + 1 for line in lines.values()) <= HEAD_BYTES + TAIL_BYTES
    assert list(lines) == sorted(lines)
    if records:
        assert max(lines) == total
        assert 1 in lines


def test_a_huge_record_is_cut() -> None:
    book = BoundedLog()
    book.add("a" * (RECORD_CHARACTERS + 5))
    assert book.cut(TOKEN, 1) == [
        NewLogPart(TOKEN, 1, 1, "a" * RECORD_CHARACTERS + "… (cut, 5 characters more)")
    ]


def test_a_record_of_many_lines_is_cut() -> None:
    book = BoundedLog()
    book.add("\n".join(["line"] * (RECORD_LINES + 50)))
    [piece] = book.cut(TOKEN, 1)
    assert piece.text.count("\n") == RECORD_LINES - 1
    assert piece.text.endswith("line… (cut, 250 characters more)")


def test_lines_stay_in_order_when_a_long_one_ends_the_beginning() -> None:
    book, kept = BoundedLog(), Kept()
    for _ in range(HEAD_BYTES // RECORD_CHARACTERS + 1):
        book.add("x" * RECORD_CHARACTERS)
    book.add("short")
    kept.take(book)
    assert list(kept.lines.values())[-1] == "short"
