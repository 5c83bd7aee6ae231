"""What a call of a handler came to, as an outcome."""

from __future__ import annotations

from typing import Final, cast

from duetime.errors import InvalidArguments
from duetime.model import durations
from duetime.model.instants import Micros
from duetime.model.outcome import Cancelled, Failed, Outcome, Snoozed, Succeeded
from duetime.model.signals import Cancel, Retry, Signal, Snooze
from duetime.runtime.arguments import encode_result
from duetime.runtime.failure import describe_error, describe_text, describe_traceback

_DONE: Final = Succeeded()
"""What most calls come to."""


def returned(value: object) -> Outcome:
    """Tell what a returned value means: a result, or a signal."""
    if value is None:
        return _DONE
    # Two questions, because the first is a cheap one.
    if isinstance(value, Exception) and isinstance(value, Signal):
        return _signalled(value)
    return Succeeded(*encode_result(value))


def raised(error: BaseException) -> Outcome:
    """Tell what an exception means: a failure, or a signal, also one that comes out of a task group alone."""
    alone = _alone(error)
    if isinstance(alone, Signal):
        return _signalled(alone)
    return Failed(error=describe_error(error), traceback=describe_traceback(error), cause=error)


def _alone(error: BaseException) -> BaseException:
    """Return the one exception in a group of one, however deep."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    group = cast("BaseExceptionGroup[BaseException]", error)
    return _alone(group.exceptions[0]) if len(group.exceptions) == 1 else group


def timed_out(timeout: Micros, error: BaseException | None = None) -> Failed:
    """Tell of a call that took too long, and where it stood, if that is known."""
    return Failed(
        error=f"timed out after {durations.describe(timeout)}",
        traceback=None if error is None else describe_traceback(error),
        reason="timeout",
    )


def undecodable(error: InvalidArguments | str) -> Failed:
    """Tell of arguments that do not fit the function, or no longer do, and of rows that cannot be read."""
    return Failed(error=str(error), reason="undecodable", final=True)


def _signalled(signal: Signal) -> Outcome:
    try:
        return _meant(signal)
    except Exception as error:  # noqa: BLE001 - a handler's own subclass may be broken
        text = f"{type(signal).__name__} cannot be read: {describe_error(error)}"
        return Failed(error=text, traceback=_trace(signal))


def _meant(signal: Signal) -> Outcome:
    match signal:
        case Cancel():
            return Cancelled(describe_text(str(signal.reason)))
        case Snooze():
            return Snoozed(_checked(signal.delay))
        case Retry():
            wait = None if signal.delay is None else _checked(signal.delay)
            return Failed(error=describe_error(signal), traceback=_trace(signal), wait=wait, cause=signal)


def _checked(delay: Micros) -> Micros:
    if type(delay) is not int:
        text = f"its delay is {type(delay).__name__}, not int"
        raise TypeError(text)
    return delay


def _trace(signal: Signal) -> str | None:
    # One that was returned has been nowhere.
    return None if signal.__traceback__ is None else describe_traceback(signal)
