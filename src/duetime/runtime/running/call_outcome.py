"""What a call of a handler came to, as an outcome."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from typing import Any, Final, cast

from duetime.errors import InvalidArguments
from duetime.model.outcome import (
    Cancel,
    Cancelled,
    Failed,
    Outcome,
    Retry,
    Signal,
    Snooze,
    Snoozed,
    Succeeded,
)
from duetime.model.secrets import without_secrets
from duetime.model.time import Micros, describe_duration
from duetime.runtime.codec.results import encode_result
from duetime.runtime.error_text import (
    describe_error,
    describe_text,
    describe_traceback,
    error_place,
    error_type,
)

_NO_RESULT: Final = Succeeded()
"""What most calls come to."""
_UNAWAITED: Final = Failed(
    error="it returned a coroutine, which nothing awaits, so its work was not done; "
    "await it, and define the task with `async def`",
    error_type="TypeError",
    final=True,
)


def outcome_of_value(value: object) -> Outcome:
    """Tell what a returned value means: a result, or a signal."""
    if value is None:
        return _NO_RESULT
    # Two questions, because the first is a cheap one.
    if isinstance(value, Exception) and isinstance(value, Signal):
        return _outcome_of_signal(value)
    result, lost = encode_result(value)
    if lost is not None and isinstance(value, Coroutine):
        value.close()
        return _UNAWAITED
    return Succeeded(result, lost)


def outcome_of_call(function: Callable[[], object]) -> Outcome:
    """Call a plain function and tell what it came to."""
    try:
        return outcome_of_value(function())
    except BaseException as error:  # noqa: BLE001 - SystemExit of a handler is its failure, not ours
        failed = error
    try:
        return outcome_of_error(failed)
    except BaseException:  # noqa: BLE001 - the thread that called the function must answer whatever happens
        return Failed(error=f"{type(failed).__name__}, which cannot be described")


def outcome_of_error(error: BaseException) -> Outcome:
    """Tell what an exception means: a failure, or a signal, also one that comes out of a task group alone."""
    alone = _single_error(error)
    if isinstance(alone, Signal):
        return _outcome_of_signal(alone)
    return failure(error, cause=error)


def failure(error: BaseException, /, **more: Any) -> Failed:
    """Tell of an exception: its text, where it was raised, and what it has in common with others."""
    told = Failed(
        error=describe_error(error),
        traceback=describe_traceback(error),
        error_type=error_type(error),
        place=error_place(error),
    )
    return replace(told, **more)


def masked_outcome(outcome: Outcome, secrets: Iterable[str]) -> Outcome:
    """Return an outcome whose texts have these masked; the exception, which has them all, stays behind."""
    match outcome:
        case Failed(error=error, traceback=stack):
            stack = stack and without_secrets(stack, secrets)
            return replace(outcome, error=without_secrets(error, secrets), traceback=stack, cause=None)
        case Cancelled(reason=reason):
            return Cancelled(without_secrets(reason, secrets))
        case _:
            return outcome


def _single_error(error: BaseException) -> BaseException:
    """Return the one exception in a group of one, however deep."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    group = cast("BaseExceptionGroup[BaseException]", error)
    return _single_error(group.exceptions[0]) if len(group.exceptions) == 1 else group


def timeout_outcome(timeout: Micros, error: BaseException | None = None) -> Failed:
    """Tell of a call that took too long, and where it stood, if that is known."""
    return Failed(
        error=f"timed out after {describe_duration(timeout)}",
        traceback=None if error is None else describe_traceback(error),
        reason="timeout",
        error_type="TimeoutError",
        place=None if error is None else error_place(error),
    )


def undecodable_outcome(error: InvalidArguments | str) -> Failed:
    """Tell of arguments that do not fit the function, or no longer do, and of rows that cannot be read."""
    return Failed(error=str(error), reason="undecodable", final=True)


def _outcome_of_signal(signal: Signal) -> Outcome:
    # One that was returned has been nowhere.
    stack = None if signal.__traceback__ is None else describe_traceback(signal)
    try:
        match signal:
            case Cancel():
                return Cancelled(describe_text(str(signal.reason)))
            case Snooze():
                return Snoozed(_checked_delay(signal.delay))
            case Retry():
                wait = None if signal.delay is None else _checked_delay(signal.delay)
                return failure(signal, traceback=stack, wait=wait, cause=signal)
    except Exception as error:  # noqa: BLE001 - a handler's own subclass may be broken
        return Failed(
            error=f"{type(signal).__name__} cannot be read: {describe_error(error)}", traceback=stack
        )


def _checked_delay(delay: Micros) -> Micros:
    if type(delay) is not int:
        raise TypeError(f"its delay is {type(delay).__name__}, not int")
    return delay
