"""What an entry about a schedule says, in the words of `ScheduleRecord` and not as it is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from duetime.errors import InvalidOption
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
                found[name] = _spelled(name, value)
    return found


def _pairs(name: str, before: Any, after: Any) -> Iterator[tuple[str, list[Any]]]:
    if name == "terms" and (terms := _terms(before, after)) is not None:
        was, became = terms
        for term in was:
            if was[term] != became[term]:
                yield from _pairs(term, was[term], became[term])
    else:
        yield (
            _NAMES.get(name, name),
            [None if one is None else _spelled(name, one) for one in (before, after)],
        )


def _terms(*texts: str | None) -> list[dict[str, Any]] | None:
    """Return what terms say; `None` if one of them cannot be read."""
    try:
        return [asdict(Terms.from_text(text)) for text in texts]
    except InvalidOption:
        return None


def _spelled(name: str, value: Any) -> Any:
    """Return a value as people read it; as it is stored, if it cannot be read."""
    try:
        return _READ[name](value) if name in _READ else value
    except (TypeError, ValueError, OverflowError):
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
