from __future__ import annotations

from duetime.stores.redis.connection import LIBRARY, LIBRARY_SOURCE


def test_the_text_says_its_name() -> None:
    assert LIBRARY_SOURCE.startswith(f"#!lua name={LIBRARY}\n")
