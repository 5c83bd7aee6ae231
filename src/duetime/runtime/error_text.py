"""What comes out of handlers, as text that can always be stored."""

from __future__ import annotations

import os
import sysconfig
import traceback
from types import TracebackType

MAX_ERROR = 1_000
MAX_TRACEBACK = 16_000
MAX_TYPE = 150

_OURS = os.path.dirname(__file__)
_LIBRARIES = (
    os.path.dirname(_OURS) + os.sep,
    *(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    "<frozen",
)
"""What the files of code begin with that is not the user's own."""


def describe_error(error: BaseException) -> str:
    """Return type and message in one line, whatever the exception does when printed."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the handler's own exception class may be broken
        text = "<its message cannot be printed>"
    name = type(error).__name__
    return _cut(f"{name}: {text}" if text else name, MAX_ERROR)


def describe_text(text: str) -> str:
    """Return what a handler has to say, cut in its middle when it is long."""
    return _cut(text, MAX_ERROR)


def describe_traceback(error: BaseException) -> str:
    """Return the traceback from the handler on, cut in its middle when it is long."""
    frames = handler_frames(error)
    try:
        lines = traceback.format_exception(type(error), error, frames)
    except Exception:  # noqa: BLE001 - see above
        lines = [*traceback.format_tb(frames), describe_error(error)]
    return _cut("".join(lines), MAX_TRACEBACK)


def error_type(error: BaseException) -> str:
    """Return the class of an exception with its module, as in a traceback."""
    kind = type(error)
    name = (
        kind.__qualname__
        if kind.__module__ in {"builtins", "__main__"}
        else f"{kind.__module__}.{kind.__qualname__}"
    )
    return _cut(name, MAX_TYPE)


def error_place(error: BaseException) -> str | None:
    """Return the module and the function that raised an exception: the innermost of the user's own code, if there is any."""
    place = None
    frames = handler_frames(error)
    while frames is not None:
        code = frames.tb_frame.f_code
        if place is None or not code.co_filename.startswith(_LIBRARIES):
            place = f"{frames.tb_frame.f_globals.get('__name__')}:{code.co_qualname}"
        frames = frames.tb_next
    return place


def handler_frames(error: BaseException) -> TracebackType | None:
    """Return the traceback from the handler on."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_OURS):
        frames = frames.tb_next
    return frames


def _cut(text: str, limit: int) -> str:
    text = text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters cut …\n{text[-half:]}"
