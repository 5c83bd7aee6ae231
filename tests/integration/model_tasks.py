"""Tasks that take and return models and paths."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from pydantic import BaseModel

DAY = date(2030, 5, 1)


class Line(BaseModel):
    """A part of an order."""

    sku: str
    count: int = 1


class Order(BaseModel):
    """A model with another one in it."""

    id: int
    lines: list[Line] = []
    day: date | None = None


ORDER = Order(id=7, lines=[Line(sku="a", count=2)], day=DAY)


def ship(orders: dict[str, list[Order]], into: Path | None = None) -> tuple[Order, Path | None]:
    """Return what was given, having used it."""
    [order] = orders["today"]
    assert order.day is not None
    count = sum(line.count for line in order.lines)
    return order.model_copy(update={"id": order.id + count}), None if into is None else into / "x"


async def ship_later(orders: dict[str, list[Order]], into: Path | None = None) -> tuple[Order, Path | None]:
    """Do the same in the loop."""
    return ship(orders, into)
