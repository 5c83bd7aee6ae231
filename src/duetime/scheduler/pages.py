"""Lists that are read page by page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from duetime.errors import InvalidCursor
from duetime.model.text import check_text, shown

T = TypeVar("T")


class Page(list[T]):
    """A list that knows where the next one begins."""

    def __init__(self, items: Iterable[T] = (), *, cursor: str | None = None, partial: bool = False) -> None:
        super().__init__(items)
        self.cursor = cursor
        """What to pass for the next page; `None` after the last."""
        self.partial = partial
        """Whether the search ended at its bound, before the page was full."""


def write_cursor(kind: str, last: str) -> str:
    """Return the cursor of a page that ends with this id; the kind tells it from other text."""
    return f"{kind}:{last}"


def read_cursor(kind: str, cursor: str) -> str:
    """Return the id that a page begins behind, or raise `InvalidCursor`."""
    if not isinstance(cursor, str) or not cursor.startswith(f"{kind}:"):
        raise InvalidCursor(f"{shown(cursor)} is not a cursor; pass the `cursor` of the page before as it is")
    return check_text(cursor.removeprefix(f"{kind}:"), what="cursor")
