from __future__ import annotations

from duetime.runtime.children import memory


def test_memory_that_is_taken_is_seen() -> None:
    before = memory.resident()
    taken = b"x" * (64 << 20)
    assert memory.resident() - before > 32 << 20
    assert memory._peak() >= len(taken)
