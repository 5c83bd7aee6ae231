"""Which tasks can be callbacks."""

from __future__ import annotations

import inspect
from dataclasses import replace
from datetime import UTC, datetime

import msgspec

from duetime.errors import InvalidArguments, InvalidTask
from duetime.model.callbacks import Callback, Ended
from duetime.model.states import State
from duetime.runtime.handler import Handler

_SAMPLE = Ended(
    id="0",
    task="task",
    arguments={},
    state=State.SUCCEEDED,
    result=None,
    error=None,
    traceback=None,
    reason=None,
    attempt=1,
    finished_at=datetime(2000, 1, 1, tzinfo=UTC),
    schedule=None,
    key=None,
    tags=(),
)
_NAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def callback_of(handler: Handler, *, owner: object) -> Callback:
    """Return a task as a callback, or raise `InvalidTask` when it cannot be called with an `Ended` alone."""
    parameter, options = _parameter(handler), handler.options
    payload = msgspec.json.encode({parameter: _SAMPLE}).decode()
    try:
        handler.arguments.decode(payload)
    except InvalidArguments as error:
        raise _refused(handler, str(error)) from None
    if options.gate is not None and options.gate.by is not None:
        raise _refused(handler, f"its limit is for each {options.gate.by!r}, which is not known beforehand")
    return Callback(
        task=handler.name,
        parameter=parameter,
        queue=options.queue,
        priority=options.priority,
        on_crash=options.on_crash,
        terms=replace(handler.terms_of(payload, options.terms), callbacks=None).to_text(),
        owner=owner,
    )


def _parameter(handler: Handler) -> str:
    """Return the name of the parameter that takes the `Ended`."""
    parameters = inspect.signature(handler.function).parameters.values()
    fitting = [p for p in parameters if p.kind in _NAMED]
    required = [p for p in fitting if p.default is p.empty]
    if not fitting or len(required) > 1:
        raise _refused(handler, "it does not")
    return (required or fitting)[0].name


def _refused(handler: Handler, why: str) -> InvalidTask:
    signature = inspect.signature(handler.function)
    return InvalidTask(
        f"{handler.name}{signature} cannot be a callback, which takes one argument, `ended: duetime.Ended`: {why}"
    )
