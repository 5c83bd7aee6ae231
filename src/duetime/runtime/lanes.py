"""Which tasks a worker asks for together."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from duetime.runtime.handler import Handler
from duetime.runtime.slots import Slots


class Lane(NamedTuple):
    """Tasks that are claimed together, because they need the same."""

    tasks: tuple[str, ...]
    in_child: bool = False


def lanes(handlers: Mapping[str, Handler], slots: Slots) -> Sequence[Lane]:
    """Return the tasks to ask for; those of child processes apart, so that no more come than children are free.

    In random order, because with few slots the first may take them all.
    """
    cpu = tuple(name for name, handler in handlers.items() if handler.options.cpu)
    slots.cpu_tasks = frozenset(cpu)
    if not cpu:
        return (Lane(tuple(handlers)),)
    plain = tuple(name for name in handlers if name not in cpu)
    found = [Lane(cpu, in_child=True), Lane(plain)]
    return random.sample(found, 2) if plain else found[:1]
