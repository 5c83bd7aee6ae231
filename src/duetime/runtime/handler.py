"""What a worker needs to run a task: the function, its options and its codec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from duetime.model.task import TaskOptions
from duetime.runtime.arguments import Arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """A registered function."""

    name: str
    function: Callable[..., Any]
    is_async: bool
    options: TaskOptions
    arguments: Arguments
