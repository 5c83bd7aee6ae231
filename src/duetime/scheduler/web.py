"""Where the scheduler's web apps come from: they are built on it, so that it finds them by name when one is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

from duetime.errors import MissingDriver

_Message: TypeAlias = MutableMapping[str, Any]
AsgiApp: TypeAlias = Callable[
    [_Message, Callable[[], Awaitable[_Message]], Callable[[_Message], Awaitable[None]]], Awaitable[None]
]
"""What any ASGI server serves, and any framework mounts."""


def make_web_app(maker: str, scheduler: object, options: Mapping[str, Any]) -> AsgiApp:
    """Return an app of `duetime.web`; raises `MissingDriver` where its packages are not installed."""
    try:
        web = importlib.import_module("duetime.web")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "duetime":
            raise
        raise MissingDriver(f"the web app needs {error.name}; run: pip install 'duetime[web]'") from error
    app: AsgiApp = getattr(web, maker)(scheduler, **options)
    return app
