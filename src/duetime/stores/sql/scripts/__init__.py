"""The verbs of the store as scripts: generators that yield queries and know no driver."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from duetime.stores.sql.scripts import commands, control, identity, moves, moving, pruning, queues, reads

__all__ = ["commands", "control", "identity", "moves", "moving", "pruning", "queues", "reads"]


def __getattr__(name: str) -> ModuleType:
    """Load what no worker needs that only runs jobs, when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
