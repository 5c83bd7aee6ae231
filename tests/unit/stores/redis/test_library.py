from __future__ import annotations

from duetime.stores.redis.connection import function_library


def test_the_text_says_its_name() -> None:
    assert function_library().source.startswith(f"#!lua name={function_library().name}\n")
