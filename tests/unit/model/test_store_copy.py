"""Checksums over whole records."""

from __future__ import annotations

import pytest

from duetime.model.stored.copy import RecordChecksum, WholeRecord


def test_a_checksum_does_not_depend_on_the_order_nor_on_the_stretches() -> None:
    some = [
        WholeRecord((key, value), (((key, 1, "part"),),)) for key, value in zip("abc", range(3), strict=True)
    ]
    assert (
        RecordChecksum().plus(some)
        == RecordChecksum().plus(some[::-1])
        == RecordChecksum().plus(some[:1]).plus(some[1:])
    )
    assert RecordChecksum().plus(some).count == 3


@pytest.mark.parametrize(
    "other",
    [
        WholeRecord(("a", 2), ((("a", "x"),),)),
        WholeRecord(("a", "1"), ((("a", "x"),),)),
        WholeRecord(("a", 1), ((("a", "y"),),)),
        WholeRecord(("a", 1), ((),)),
        WholeRecord(("a", None), ((("a", "x"),),)),
    ],
)
def test_a_checksum_tells_records_apart(other: WholeRecord) -> None:
    assert (
        RecordChecksum().plus([other]).shown
        != RecordChecksum().plus([WholeRecord(("a", 1), ((("a", "x"),),))]).shown
    )
