"""What the URL of a hybrid says: its stores, the longest delays of their jobs, and the queues whose jobs all go far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from duetime.errors import ConfigError, InvalidValue
from duetime.model.routes import DEFAULT_ROUTES, Route, Routes, Tier
from duetime.model.text import check_name, shown
from duetime.model.time import parse_duration
from duetime.model.urls import parse_hybrid, scheme_of

IN_MEMORY: Final = "sqlite://"
_MEMORY_PATHS: Final = frozenset({"", "/", "/:memory:"})
_LONGEST: Final = {"memory_up_to": Tier.MEMORY, "near_up_to": Tier.NEAR}


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridAddress:
    """A URL that was read and checked."""

    urls: Mapping[Tier, str]
    routes: Routes
    far_queues: frozenset[str]

    @classmethod
    def of(cls, url: str) -> Self:
        """Read a URL; raises `ConfigError`."""
        near, far, options = parse_hybrid(url)
        if _is_in_memory(far):
            raise ConfigError(
                "the far store is to keep its jobs, and memory does not; name a file or a server"
            )
        if near == far:
            raise ConfigError("near and far are the same store; name two different ones")
        urls = {Tier.MEMORY: IN_MEMORY} if _is_in_memory(near) else {Tier.NEAR: near}
        if "near" in options:
            if options["near"] != "memory" or Tier.MEMORY in urls:
                raise ConfigError(
                    "near=memory puts memory in front of another near store; leave it out otherwise"
                )
            urls[Tier.MEMORY] = IN_MEMORY
        queues = options.get("far_queues", "").split(",") if "far_queues" in options else ()
        try:
            far_queues = frozenset(check_name(queue, what="a queue in far_queues") for queue in queues)
            routes = _read_routes(options, urls)
        except InvalidValue as error:
            raise ConfigError(str(error)) from None
        return cls(urls={**urls, Tier.FAR: far}, routes=routes, far_queues=far_queues)


def _is_in_memory(url: str) -> bool:
    kind, path = scheme_of(url).partition("+")[0], url.partition("://")[2].partition("?")[0]
    return kind == "memory" or (kind == "sqlite" and path in _MEMORY_PATHS)


def _read_routes(options: Mapping[str, str], urls: Mapping[Tier, str]) -> Routes:
    """Return the table of routes with the delays that were given."""
    routes = [route for route in DEFAULT_ROUTES if route.tier in urls]
    for name, tier in _LONGEST.items():
        if name not in options:
            continue
        if tier not in urls:
            raise ConfigError(
                f"the URL has {name}, and no such store; leave it out, or name the store as well"
            )
        if not (up_to := parse_duration(options[name], what=name)):
            raise ConfigError(f"{name} must be longer than 0, not {shown(options[name])}")
        routes = [*(route for route in routes if route.tier is not tier), Route(tier, up_to)]
    by_delay = sorted(routes, key=lambda route: route.up_to)
    if by_delay != sorted(by_delay, key=lambda route: route.tier):
        raise ConfigError(
            "memory_up_to must be shorter than near_up_to: a job goes to the first store that it fits"
        )
    return by_delay
