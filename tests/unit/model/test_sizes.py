from __future__ import annotations

from typing import Any

import pytest

from duetime.errors import InvalidOption
from duetime.model.text import parse_size


@pytest.mark.parametrize(
    ("written", "size"),
    [
        (1, 1),
        ("200B", 200),
        ("64KB", 64_000),
        ("500MB", 500_000_000),
        ("2 GB", 2_000_000_000),
        ("2GiB", 2 << 30),
        ("1tib", 1 << 40),
    ],
)
def test_a_size_is_a_number_of_bytes_or_a_text_with_a_unit(written: int | str, size: int) -> None:
    assert parse_size(written) == size


@pytest.mark.parametrize("written", [0, -1, True, 1.5, None, "", "500", "MB", "0MB", "-1MB", "1.5GB", "5PB"])
def test_anything_else_is_refused_by_name(written: Any) -> None:
    with pytest.raises(InvalidOption, match="limit must be a number of bytes or text such as '500MB'"):
        parse_size(written, what="limit")
