from __future__ import annotations

import pytest

from duetime.model.log_book import (
    HEAD_BYTES,
    HEAD_LINES,
    MAX_RECORD,
    TAIL_BYTES,
    TAIL_LINES,
    LogBook,
)


def test_a_short_log_is_kept_whole_and_handed_out_once() -> None:
    book = LogBook()
    assert book.cut() == ""
    assert book.add("one")
    assert book.add("two")
    assert book.cut() == "one\ntwo"
    assert book.cut() == ""
    book.add("three")
    assert book.rest() == "three"
    assert book.rest() == ""


def test_of_a_log_without_end_the_first_and_the_last_lines_are_kept() -> None:
    book = LogBook()
    count = HEAD_LINES + TAIL_LINES + 7
    for n in range(count):
        book.add(f"line {n}")
    first = book.cut().splitlines()
    note, *last = book.rest().splitlines()
    assert first == [f"line {n}" for n in range(HEAD_LINES)]
    assert note == "… 7 lines were dropped here …"
    assert last == [f"line {n}" for n in range(count - TAIL_LINES, count)]


def test_what_just_fits_is_kept_without_a_note() -> None:
    book = LogBook()
    for n in range(HEAD_LINES + TAIL_LINES):
        book.add(f"line {n}")
    assert len(book.rest().splitlines()) == HEAD_LINES + TAIL_LINES
    assert book.dropped == 0


@pytest.mark.parametrize("character", ["a", "é", "漢", "\ud800"])
def test_long_lines_are_bounded_by_their_bytes(character: str) -> None:
    book = LogBook()
    for _ in range(1_000):
        book.add(character * 1_000)
    head, tail = book.cut(), book.rest()
    assert HEAD_BYTES / 2 < len(head.encode(errors="replace")) <= HEAD_BYTES
    assert TAIL_BYTES / 2 < len(tail.encode(errors="replace")) <= TAIL_BYTES + 100
    kept = sum(line.startswith(character) for line in [*head.splitlines(), *tail.splitlines()])
    assert kept + book.dropped == 1_000


def test_the_lines_of_a_traceback_count_each() -> None:
    book = LogBook()
    for _ in range(HEAD_LINES + TAIL_LINES):
        book.add("error\n  where\n  why")
    kept = [*book.cut().splitlines(), *book.rest().splitlines()]
    assert len(kept) <= HEAD_LINES + TAIL_LINES + 1


def test_a_huge_record_is_cut() -> None:
    book = LogBook()
    book.add("a" * (MAX_RECORD + 5))
    assert book.cut() == "a" * MAX_RECORD + "… (cut, 5 characters more)"


def test_lines_stay_in_order_when_a_long_one_closes_the_beginning() -> None:
    book = LogBook()
    for _ in range(HEAD_BYTES // MAX_RECORD + 1):
        book.add("x" * (MAX_RECORD - 1))
    assert not book.add("short")
    assert book.cut().count("\n") == HEAD_BYTES // MAX_RECORD - 1
    assert book.rest().splitlines()[-1] == "short"
