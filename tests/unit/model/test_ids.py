from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from duetime.errors import InvalidOption
from duetime.model.ids import first_id_of, new_job_id, new_token, read_beginning, read_id
from duetime.model.time import SECOND


def test_a_job_id_is_a_uuid_of_version_7() -> None:
    value = uuid.UUID(new_job_id())
    assert (value.version, value.variant) == (7, uuid.RFC_4122)


def test_a_job_id_carries_the_time_it_was_made() -> None:
    before = time.time_ns() // 1_000_000
    made = int(new_job_id()[:12], 16)
    # Rising ids may run a moment ahead of the clock, never behind it.
    assert before <= made <= time.time_ns() // 1_000_000 + 1_000


def test_job_ids_rise_also_within_a_millisecond() -> None:
    made = [new_job_id() for _ in range(5_000)]
    assert made == sorted(set(made))


def test_job_ids_rise_when_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = new_job_id()
    monkeypatch.setattr("duetime.model.ids.time.time_ns", lambda: 1_000_000_000_000_000_000)
    made = [before, *(new_job_id() for _ in range(100_000))]
    assert made == sorted(set(made))
    assert uuid.UUID(made[-1]).variant == uuid.RFC_4122


def test_threads_never_get_the_same_job_id() -> None:
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: new_job_id(), range(4_000)))
    assert len(set(made)) == len(made)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.covers("identity-after-fork")
def test_a_forked_child_makes_ids_though_the_lock_was_held_at_the_fork() -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with new_job_id._lock:
            held.set()
            done.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    try:
        made = _in_a_child(new_job_id)
    finally:
        done.set()
        holder.join()
    assert len(made) == 32


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.covers("identity-after-fork")
def test_a_forked_child_does_not_repeat_the_tokens_of_its_parent() -> None:
    new_token()
    of_the_child = _in_a_child(new_token)
    assert of_the_child
    assert of_the_child != new_token()


def test_a_token_has_128_bits_and_is_never_the_same() -> None:
    made = {new_token() for _ in range(1_000)}
    assert len(made) == 1_000
    assert all(len(bytes.fromhex(token)) == 16 for token in made)


def _in_a_child(make: Callable[[], str]) -> str:
    """Return what a forked child makes, or nothing when it got stuck."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - runs in the child
        threading.Timer(5, os._exit, (1,)).start()
        os.write(writer, make().encode())
        os._exit(0)
    _, status = os.waitpid(child, 0)
    made = os.read(reader, 64) if status == 0 else b""
    os.close(reader)
    os.close(writer)
    return made.decode()


def test_the_first_id_of_a_moment_is_before_all_ids_that_jobs_of_it_may_have() -> None:
    now = time.time_ns() // 1_000
    assert first_id_of(now) <= new_job_id()
    assert first_id_of(now + 3_600 * SECOND * 24 * 365) <= new_job_id(), "a store may live in the future"
    assert first_id_of(0) == "0" * 12
    assert first_id_of(now - 10 * 86_400 * SECOND) < first_id_of(now)


STORED = "0198c5a07d3e7c429a576a1f6d4f2b10"


@pytest.mark.parametrize(
    "given",
    [STORED, STORED.upper(), "0198c5a0-7d3e-7c42-9a57-6a1f6d4f2b10", "0198C5A0-7D3E7C429A576A1F6D4F2B10", uuid.UUID(STORED)],
    ids=str,
)  # fmt: skip
def test_an_id_may_be_written_with_dashes_and_in_capitals(given: str | uuid.UUID) -> None:
    assert read_id(given) == STORED


@pytest.mark.parametrize("given", ["", "-", "0198-c5a0", "w-1", STORED + "0", "nothing", " " + STORED])
def test_what_is_no_whole_id_stays_as_it_is(given: str) -> None:
    assert read_id(given) == given


@pytest.mark.parametrize("given", [None, 7, b"0198", [STORED]])
def test_an_id_that_is_no_text_is_refused(given: Any) -> None:
    with pytest.raises(InvalidOption, match="an id must be text such as"):
        read_id(given)


@pytest.mark.parametrize(
    ("given", "start"),
    [("0198C5a0-7d", "0198c5a07d"), (STORED, STORED), ("f", "f"), ("", None), ("-", None), ("w1", None), (STORED + "0", None)],
)  # fmt: skip
def test_the_beginning_of_an_id_is_read_as_the_id_is(given: str, start: str | None) -> None:
    assert read_beginning(given) == start
