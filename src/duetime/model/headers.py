"""Headers: texts by name that travel with a job, also to its reruns and callbacks; stored as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, cast

from duetime.errors import InvalidOption
from duetime.model.text import check_text, shown

MAX_HEADERS: Final = 2048
"""How many bytes the headers of a job may take as JSON."""
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


def headers_to_text(headers: Mapping[str, str]) -> str | None:
    """Return what is stored, `None` for no headers; raise `InvalidOption` for what is not text by name, or too long."""
    if not isinstance(headers, Mapping):
        raise InvalidOption(f"headers must be a dict such as {{'trace': 'af31'}}, not {shown(headers)}")
    for name, value in headers.items():
        if not check_text(name, what="a header's name"):
            raise InvalidOption("a header has an empty name")
        check_text(value, what=f"header {shown(name)}")
    return check_headers(_to_text(headers))


def read_headers(text: str | None) -> Mapping[str, str]:
    """Return headers that were stored, without the power to change them; none where they cannot be read."""
    if text is None:
        return _NONE
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    said = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    return MappingProxyType({name: value for name, value in said.items() if isinstance(value, str)})


def overlay_headers(under: str | None, over: str | None) -> str | None:
    """Return the headers of both; where they share a name, those of `over` stand."""
    if under is None or over is None:
        return under if over is None else over
    return _to_text({**read_headers(under), **read_headers(over)})


def check_headers(text: str | None) -> str | None:
    """Return headers as they are stored, or raise `InvalidOption` if they are too long."""
    if text is not None and (size := len(text.encode())) > MAX_HEADERS:
        raise InvalidOption(f"headers take {size:,} bytes as JSON; at most {MAX_HEADERS:,} are allowed")
    return text


def _to_text(headers: Mapping[str, str]) -> str | None:
    if not headers:
        return None
    return json.dumps({**headers}, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
