"""Names of a module that are loaded when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_getattr(module: dict[str, object], homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return a `__getattr__` for the module with these globals, which finds each name in the module that is its home."""

    def load(name: str) -> object:
        if (home := homes.get(name)) is None:
            raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")
        found = module[name] = getattr(import_module(home), name)
        return found

    return load
