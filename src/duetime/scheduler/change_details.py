"""What an entry about a schedule says, in the words of `ScheduleRecord` and not as it is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from duetime.model.instants import to_datetime
from duetime.model.terms import FOREVER, Terms
from duetime.model.triggers.text import to_show
from duetime.scheduler.records import loose


def spelled_out(detail: Mapping[str, Any]) -> dict[str, Any]:
    """Return the detail of an entry as people read it; a pair stays a pair, what says nothing is left out."""
    found: dict[str, Any] = {}
    for name, value in detail.items():
        match value:
            case [before, after]:
                found.update(_pairs(name, before, after))
            case None:
                pass
            case _:
                found[name] = _READ.get(name, _same)(value)
    return found


def _pairs(name: str, before: Any, after: Any) -> Iterator[tuple[str, list[Any]]]:
    if name == "terms":
        was, became = asdict(Terms.from_text(before)), asdict(Terms.from_text(after))
        for term in was:
            if was[term] != became[term]:
                yield from _pairs(term, was[term], became[term])
    else:
        read = _READ.get(name, _same)
        yield _NAMES.get(name, name), [None if one is None else read(one) for one in (before, after)]


def _same(value: Any) -> Any:
    return value


def _length(micros: int) -> timedelta | str:
    return "forever" if micros == FOREVER else timedelta(microseconds=micros)


def _rule(text: str) -> str:
    return to_show(text).describe()


_NAMES = {"payload": "arguments"}
_READ: dict[str, Callable[[Any], Any]] = {
    "trigger": _rule,
    "payload": loose,
    "callbacks": loose,
    "tags": list,
    **dict.fromkeys(("occurrence", "until", "start", "end", "parked_at"), to_datetime),
    **dict.fromkeys(("timeout", "misfire_window", "expires", "result_ttl", "failure_ttl"), _length),
}
