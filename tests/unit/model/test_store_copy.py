from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.errors import CopyRefused
from duetime.model.audit import StoredAuditEntry
from duetime.model.store_copy import (
    COLUMNS,
    COPY_BEGUN,
    COPY_ENDED,
    COPY_TARGET,
    RecordChecksum,
    RecordKind,
    WholeRecord,
    check_run,
    check_target,
    check_untouched,
    check_workers,
    copy_entry,
    copy_entry_id,
    next_batch_size,
    store_difference,
    weight,
    write_batches,
)
from duetime.model.stored import StoredWorker
from duetime.model.worker import WorkerState, WorkerStats

KEYS = st.sampled_from("abcde")
STORES = st.dictionaries(KEYS, st.integers(0, 2))


def records(store: dict[str, int]) -> list[WholeRecord]:
    return [WholeRecord((key, value), (((key, 1, "part"),),)) for key, value in sorted(store.items())]


@given(STORES, STORES)
def test_what_is_mended_is_the_same_and_what_was_the_same_is_left_alone(
    source: dict[str, int], target: dict[str, int]
) -> None:
    gone, put = store_difference(records(source), records(target))
    mended = [record for record in records(target) if record.key not in gone] + put
    assert sorted(mended) == records(source)
    untouched = {key for key in source if target.get(key) == source[key]}
    assert untouched.isdisjoint(gone)
    assert untouched.isdisjoint(record.key for record in put)


def test_a_difference_in_a_part_is_one() -> None:
    whole, less = WholeRecord(("a",), ((("a", 1), ("a", 2)),)), WholeRecord(("a",), ((("a", 1),),))
    assert store_difference([whole], [less]) == (["a"], [whole])


def test_a_checksum_does_not_depend_on_the_order_nor_on_the_stretches() -> None:
    some = records({"a": 1, "b": 2, "c": 3})
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


def test_stretches_grow_unless_their_records_are_heavy() -> None:
    first = next_batch_size(0, 0)
    assert first < next_batch_size(first, 1_000) <= 2 * first
    longest = next_batch_size(10_000, 0)
    assert next_batch_size(longest, 0) == longest
    assert next_batch_size(longest, 400_000_000) < longest // 50
    assert next_batch_size(1, 400_000_000) == 1


def test_text_weighs_also_in_parts() -> None:
    light, heavy = (weight([WholeRecord(("abc",), ((("abc", text),),))]) for text in ("", "x" * 1_000))
    assert heavy - light == 1_000


def test_what_is_written_at_once_is_not_heavier_than_a_server_takes_unless_it_is_one_record() -> None:
    light, heavy, huge = (WholeRecord(("a", "x" * size)) for size in (1, 700_000, 5_000_000))
    assert write_batches([]) == [[]]
    assert write_batches([light] * 9) == [[light] * 9]
    assert write_batches([heavy] * 5) == [[heavy] * 2, [heavy] * 2, [heavy]]
    assert write_batches([huge, light, huge]) == [[huge], [light], [huge]]


def test_a_mark_has_the_columns_of_an_entry() -> None:
    entry = copy_entry("abc", verb=COPY_BEGUN, at=5, who="me", facts={"from": "sqlite:///a.db"})
    assert dict(zip(COLUMNS[RecordKind.AUDIT], entry.row, strict=True)) == {
        "id": copy_entry_id("abc"),
        "at": 5,
        "who": "me",
        "verb": COPY_BEGUN,
        "target": COPY_TARGET,
        "detail": '{"source": "abc", "from": "sqlite:///a.db"}',
    }


def entry(source: str, verb: str) -> StoredAuditEntry:
    return StoredAuditEntry(
        id=copy_entry_id(source), at=0, who="me", verb=verb, target=COPY_TARGET, detail={}
    )


def test_an_empty_target_is_new_and_one_that_was_begun_goes_on() -> None:
    assert check_target([], [], source="abc", where="there") is None
    assert check_target([entry("abc", COPY_BEGUN)], [RecordKind.JOBS], source="abc", where="there") == 0


@pytest.mark.parametrize("marks", [[], [entry("xyz", COPY_BEGUN)], [entry("xyz", COPY_ENDED)]])
def test_a_target_with_something_else_in_it_is_refused(marks: list[StoredAuditEntry]) -> None:
    with pytest.raises(CopyRefused, match="there is not empty, it has jobs, audit; copy to an empty"):
        check_target(marks, [RecordKind.JOBS, RecordKind.AUDIT], source="abc", where="there")


def test_a_copy_that_has_ended_is_not_made_again() -> None:
    with pytest.raises(CopyRefused, match=r"in full at 1970-01-01T00:00:00\+00:00 and may have run jobs"):
        check_target([entry("abc", COPY_ENDED)], [RecordKind.JOBS], source="abc", where="there")


def worker(name: str, state: WorkerState) -> StoredWorker:
    return StoredWorker(
        id=name,
        state=state,
        host="h",
        host_key=None,
        pid=7,
        pid_started=None,
        version="0",
        queues=(),
        tasks=(),
        declares=(),
        fires=False,
        slots=1,
        started_at=0,
        beat_at=0,
        lease_until=0,
        stats=WorkerStats(),
    )


def test_workers_that_live_are_named_the_first_few_of_them() -> None:
    check_workers([worker("a", "stopped"), worker("b", "dead")], where="there")
    with pytest.raises(CopyRefused, match=r"run on there: w0 \(h, process 7\), .* and 2 more; stop them"):
        check_workers([worker(f"w{n}", "alive") for n in range(7)], where="there")


def whole(kind: RecordKind, key: str, **columns: object) -> WholeRecord:
    named = dict.fromkeys(COLUMNS[kind]) | ({"fence": 1} if kind is RecordKind.JOBS else {}) | columns
    return WholeRecord((key, *list(named.values())[1:]))


MARKED = 100


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
        check_untouched(kind, source, target, since=MARKED)


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
    check_untouched(kind, source, target, since=MARKED)


@pytest.mark.parametrize(
    "marks",
    [
        [],
        [replace(entry("abc", COPY_BEGUN), detail={"run": "2"})],
        [replace(entry("abc", COPY_ENDED), detail={"run": "1"})],
    ],
)
def test_a_run_gives_way_to_the_one_that_was_begun_last(marks: list[StoredAuditEntry]) -> None:
    check_run([replace(entry("abc", COPY_BEGUN), detail={"run": "1"})], source="abc", run="1")
    with pytest.raises(CopyRefused, match="begun once more elsewhere, and this run gives way"):
        check_run(marks, source="abc", run="1")
