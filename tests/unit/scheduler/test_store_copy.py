"""What a copy writes at once, and how it sees that its target has been used since it was begun."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.errors import CopyRefused
from duetime.model.stored.copy import COLUMNS, RecordKind, WholeRecord
from duetime.scheduler.transfer.store_copy import _CopyRun, _write_batches


def test_what_is_written_at_once_is_not_heavier_than_a_server_takes_unless_it_is_one_record() -> None:
    light, heavy, huge = (WholeRecord(("a", "x" * size)) for size in (1, 700_000, 5_000_000))
    assert _write_batches([]) == [[]]
    assert _write_batches([light] * 9) == [[light] * 9]
    assert _write_batches([heavy] * 5) == [[heavy] * 2, [heavy] * 2, [heavy]]
    assert _write_batches([huge, light, huge]) == [[huge], [light], [huge]]


MARKED = 100


def check_unused(kind: RecordKind, source: list[WholeRecord], target: list[WholeRecord]) -> None:
    nowhere: Any = None
    copy = _CopyRun(nowhere, nowhere, "abc", "1", MARKED, "me", lambda *_: None)
    copy._check_unused(kind, target[0], source[0] if source else None)


def whole(kind: RecordKind, key: str, **columns: object) -> WholeRecord:
    named = dict.fromkeys(COLUMNS[kind]) | ({"fence": 1} if kind is RecordKind.JOBS else {}) | columns
    return WholeRecord((key, *list(named.values())[1:]))


@pytest.mark.parametrize(
    ("kind", "source", "target"),
    [
        (RecordKind.WORKERS, [], [whole(RecordKind.WORKERS, "w")]),
        (RecordKind.JOBS, [], [whole(RecordKind.JOBS, "new", created_at=MARKED)]),
        (RecordKind.SCHEDULES, [], [whole(RecordKind.SCHEDULES, "new", created_at=MARKED)]),
        (RecordKind.AUDIT, [], [whole(RecordKind.AUDIT, "new", at=MARKED)]),
        (RecordKind.JOBS, [whole(RecordKind.JOBS, "ran")], [whole(RecordKind.JOBS, "ran", finished_at=5)]),
        (RecordKind.JOBS, [whole(RecordKind.JOBS, "runs")], [whole(RecordKind.JOBS, "runs", fence=2)]),
    ],
)
def test_a_target_that_was_used_since_it_was_begun_is_left_alone(
    kind: RecordKind, source: list[WholeRecord], target: list[WholeRecord]
) -> None:
    with pytest.raises(
        CopyRefused, match=f"used since its copy was begun, which {kind} {target[0].key} shows"
    ):
        check_unused(kind, source, target)


@pytest.mark.parametrize(
    ("kind", "source", "target"),
    [
        (
            RecordKind.WORKERS,
            [whole(RecordKind.WORKERS, "w", state="dead")],
            [whole(RecordKind.WORKERS, "w", state="alive")],
        ),
        (RecordKind.JOBS, [], [whole(RecordKind.JOBS, "pruned", created_at=MARKED - 1)]),
        (RecordKind.JOBS, [whole(RecordKind.JOBS, "ends", finished_at=5)], [whole(RecordKind.JOBS, "ends")]),
        (RecordKind.QUEUES, [], [whole(RecordKind.QUEUES, "q")]),
    ],
)
def test_what_only_the_source_can_have_changed_is_mended(
    kind: RecordKind, source: list[WholeRecord], target: list[WholeRecord]
) -> None:
    check_unused(kind, source, target)
