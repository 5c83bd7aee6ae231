"""Amounts of memory, as people write them: `500_000_000`, `"500MB"`, `"2GiB"`."""

from __future__ import annotations

import re
from typing import TypeAlias

from duetime.errors import InvalidOption
from duetime.model.shown import shown

Size: TypeAlias = int | str

_TEXT = re.compile(r"(\d{1,12})\s?([KMGT]?)(i?)B", re.ASCII | re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def parse(size: Size, *, what: str = "size") -> int:
    """Return a size in bytes, or raise `InvalidOption`."""
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    if isinstance(size, str) and (match := _TEXT.fullmatch(size.strip())):
        number, prefix, binary = match.groups()
        unit: int = (1024 if binary else 1000) ** _POWERS[prefix.upper()]
        if number.strip("0"):
            return int(number) * unit
    text = f"{what} must be a number of bytes or text such as '500MB' or '2GiB', not {shown(size)}"
    raise InvalidOption(text)
