from __future__ import annotations

from duetime.runtime.running.children.serve import _peak_memory, resident_memory


def test_memory_that_is_taken_is_seen() -> None:
    before = resident_memory()
    taken = b"x" * (64 << 20)
    assert resident_memory() - before > 32 << 20
    assert _peak_memory() >= len(taken)
