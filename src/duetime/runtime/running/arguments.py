"""Arguments between a function's signature and JSON: refused when they do not fit, rebuilt by type."""

from __future__ import annotations

import dataclasses
import inspect
import math
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec
import msgspec.inspect

from duetime.errors import InvalidArguments, InvalidOption, InvalidTask, PayloadTooLarge
from duetime.model.text import MAX_DEPTH, MAX_DIGITS, TOO_DEEP, TOO_LONG, beyond_bounds, shown

if TYPE_CHECKING:
    from collections import OrderedDict

MAX_PAYLOAD = 256 * 1024

_ENCODE_ERRORS = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)
_NO_NAN = "JSON has no NaN or infinity"
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

_encoder = msgspec.json.Encoder()
_astuple = msgspec.structs.astuple


class Arguments:
    """The codec of one function's parameters."""

    def __init__(self, function: Callable[..., Any], *, task: str) -> None:
        self._task = task
        self._signature = inspect.signature(function)
        self._hints = _type_hints(function, task)
        parameters = self._signature.parameters.values()
        self._simple = all(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
        self._plain = self._simple and all(p.default is p.empty for p in parameters)
        self._shape, self._decoder = self._build_codec()
        self._loose = tuple(p.name for p in parameters if _is_loose(self._hints.get(p.name, Any)))

    def encode(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> str:
        """Return the JSON object for a call, or raise `InvalidArguments` naming the path of the bad value."""
        try:
            # A struct takes its fields as such a function takes its arguments, in a tenth of the time.
            given = self._shape(*args, **kwargs) if self._simple else self._bind(args, kwargs)
        except TypeError:
            given = self._bind(args, kwargs)
        try:
            raw = _encoder.encode(given)
        except _ENCODE_ERRORS as error:
            raise self._unfit(given, _encode_problem(error)) from None
        if len(raw) > MAX_PAYLOAD:
            raise PayloadTooLarge(
                f"arguments of {self._task} take {len(raw):,} bytes as JSON; at most {MAX_PAYLOAD:,} are stored. "
                "Store the data elsewhere and pass a reference to it"
            )
        # The object that holds the arguments does not count as a level of its own.
        if len(raw) > MAX_DEPTH and (problem := beyond_bounds(raw, deepest=MAX_DEPTH + 1)) is not None:
            raise self._unfit(given, problem)
        try:
            rebuilt = self._decoder.decode(raw)
            if self._loose:
                self._check_loose(given, rebuilt)
            if b"null" in raw and (path := _find_nan(msgspec.to_builtins(given), "$")) is not None:
                raise self._misfit(f"{_NO_NAN} - at `{path}`")
        except msgspec.ValidationError as error:
            raise self._misfit(str(error)) from None
        except RecursionError:
            raise self._misfit("the caller's stack is nearly full, so they cannot be checked") from None
        return raw.decode()

    def decode(self, payload: str) -> tuple[Sequence[object], dict[str, object]]:
        """Rebuild the positional and keyword arguments, or raise `InvalidArguments`."""
        try:
            values = self._decoder.decode(payload)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise self._misfit(str(error)) from None
        if self._plain:
            return _astuple(values), {}
        given = dict(_given_arguments(values))
        if self._simple:
            return (), given
        bound = inspect.BoundArguments(self._signature, cast("OrderedDict[str, Any]", given))
        return bound.args, bound.kwargs

    def value_of(self, payload: str, parameter: str) -> str:
        """Return one argument of a call as JSON, the default where it was left out; equal values, equal text."""
        value = getattr(self._decoder.decode(payload), parameter)
        if value is msgspec.UNSET:
            value = self._signature.parameters[parameter].default
        return msgspec.json.encode(value, order="deterministic").decode()

    def check_by(self, parameter: str) -> None:
        """Raise `InvalidOption` unless each call has a value of this parameter that can be told from others."""
        found = self._signature.parameters.get(parameter)
        if found is None or found.kind in _VARIADIC:
            raise InvalidOption(f"by={parameter!r} is not a parameter of {self._task}{self._signature}")
        try:
            _encoder.encode(None if found.default is found.empty else found.default)
        except _ENCODE_ERRORS as error:
            text = f"by={parameter!r} of {self._task} has a default that is not JSON: {error}"
            raise InvalidOption(text) from None

    def _bind(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> msgspec.Struct:
        try:
            return self._shape(**self._signature.bind(*args, **kwargs).arguments)
        except TypeError as error:
            text = f"{self._task}{self._signature} cannot be called with these arguments: {error}"
            raise InvalidArguments(text) from None

    def _build_codec(self) -> tuple[type[msgspec.Struct], msgspec.json.Decoder[Any]]:
        fields: list[tuple[str, Any, Any] | tuple[str, Any]] = []
        for parameter in self._signature.parameters.values():
            kind: Any = self._hints.get(parameter.name, Any)
            if parameter.kind is parameter.VAR_POSITIONAL:
                kind = list[kind]
            elif parameter.kind is parameter.VAR_KEYWORD:
                kind = dict[str, kind]
            if parameter.default is parameter.empty and parameter.kind not in _VARIADIC:
                fields.append((parameter.name, kind))
            else:
                fields.append((parameter.name, kind | msgspec.UnsetType, msgspec.UNSET))
        try:
            named = not self._simple
            shape = msgspec.defstruct("Arguments", fields, kw_only=named, forbid_unknown_fields=True)
            decoder = msgspec.json.Decoder(shape)
            parts = list(_type_parts(msgspec.inspect.type_info(shape), set()))
        except (TypeError, ValueError) as error:
            raise self._unusable(str(error)) from None
        for unknown in [part.cls for part in parts if isinstance(part, msgspec.inspect.CustomType)]:
            raise self._unusable(f"{unknown.__module__}.{unknown.__qualname__} is not a type it can make")
        return shape, decoder

    def _unusable(self, why: str) -> InvalidTask:
        return InvalidTask(
            f"the parameters of {self._task}{self._signature} cannot be rebuilt from JSON: {why}. "
            "Use JSON types, dataclasses, msgspec structs, dates, UUID, Decimal or enums, or leave out the annotation"
        )

    def _unfit(self, given: msgspec.Struct, problem: str) -> InvalidArguments:
        """Return the error for arguments that cannot be stored, with the path of the first that is to blame."""
        for name, value in _given_arguments(given):
            try:
                found = beyond_bounds(_encoder.encode(value))
            except _ENCODE_ERRORS as error:
                found = _encode_problem(error)
            if found is not None:
                return self._misfit(f"{found} - at `$.{name}`")
        return self._misfit(problem)

    def _check_loose(self, given: msgspec.Struct, rebuilt: object) -> None:
        """Refuse what JSON would silently change where no type says how to rebuild it."""
        for name, value in _given_arguments(given):
            if name in self._loose:
                variadic = self._signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
                was = list(cast("tuple[object, ...]", value)) if variadic else value
                if (change := find_json_change(was, getattr(rebuilt, name), name)) is not None:
                    raise self._misfit(change)

    def _misfit(self, detail: str) -> InvalidArguments:
        return InvalidArguments(f"arguments of {self._task}{self._signature} do not fit: {detail}")


def _given_arguments(arguments: msgspec.Struct) -> Iterator[tuple[str, object]]:
    """Return the arguments of a call by name, without those that were left out."""
    for name in arguments.__struct_fields__:
        if (value := getattr(arguments, name)) is not msgspec.UNSET:
            yield name, value


def _encode_problem(error: Exception) -> str:
    """Say why a value cannot be written as JSON."""
    if isinstance(error, RecursionError):
        return TOO_DEEP
    # Python's message says how to raise its limit, which would not help the processes that read the value.
    return TOO_LONG if f"({MAX_DIGITS} digits)" in str(error) else str(error)


def encode_result(value: object) -> tuple[str | None, str | None]:
    """Return the JSON of a result, or why there is none: a job that ran has succeeded all the same."""
    if value is None:
        return None, None
    try:
        raw = _encoder.encode(value)
    except _ENCODE_ERRORS as error:
        return None, f"the result cannot be stored as JSON: {_encode_problem(error)}"
    if len(raw) > MAX_PAYLOAD:
        return None, f"the result takes {len(raw):,} bytes as JSON; at most {MAX_PAYLOAD:,} are stored"
    if (problem := beyond_bounds(raw)) is not None:
        return None, f"the result cannot be stored as JSON: {problem}"
    if b"null" in raw and _find_nan(msgspec.to_builtins(value), "result") is not None:
        return None, "the result cannot be stored as JSON: it holds NaN or infinity"
    return raw.decode(), None


def _is_loose(kind: object) -> bool:
    """Whether a type says of some part of its values nothing about what it is."""
    parts = _type_parts(msgspec.inspect.type_info(kind), set())
    return any(isinstance(part, msgspec.inspect.AnyType) for part in parts)


def _type_parts(info: object, seen: set[type]) -> Iterator[object]:
    """Return a type and all that it is made of, each class once."""
    yield info
    cls = getattr(info, "cls", None)
    if isinstance(cls, type):
        if cls in seen:
            return
        seen.add(cls)
    for name in getattr(info, "__struct_fields__", ()):
        value: object = getattr(info, name)
        for part in cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,):
            yield from _type_parts(part, seen)


def _find_nan(value: object, path: str) -> str | None:
    """Return where among built-in values NaN or infinity is, which the encoder writes as null."""
    if isinstance(value, float):
        return None if math.isfinite(value) else path
    children: list[tuple[str, object]] = []
    if isinstance(value, dict):
        children = [(f"{path}.{key}", item) for key, item in cast("dict[object, object]", value).items()]
    elif isinstance(value, (list, tuple)):
        children = [(f"{path}[{i}]", item) for i, item in enumerate(cast("list[object]", value))]
    return next((found for where, item in children if (found := _find_nan(item, where)) is not None), None)


def _type_hints(function: Callable[..., Any], task: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        text = f"the annotations of {task} cannot be resolved: {error}. Import the names at run time, not only for type checkers"
        raise InvalidTask(text) from None


def find_json_change(value: object, rebuilt: object, path: str) -> str | None:
    """Tell what would come back as something else, and where; `None` when nothing would."""
    parts: Iterable[tuple[str, object, object]]
    was, now = _as_dict(value), _as_dict(rebuilt)
    if was is not None and now is not None:
        foreign = next((key for key in was if key not in now), None)
        if foreign is not None:
            return f"JSON has only text keys, not {shown(foreign)} - at `$.{path}`"
        parts = ((f"{path}.{key}", item, now[key]) for key, item in was.items())
    elif type(value) is not type(rebuilt):
        return None if _equals_its_base(value, rebuilt) else _describe_change(value, path)
    elif isinstance(value, (list, tuple)):
        pairs = zip(cast("Sequence[object]", value), cast("Sequence[object]", rebuilt), strict=True)
        parts = ((f"{path}[{i}]", a, b) for i, (a, b) in enumerate(pairs))
    else:
        parts = ((f"{path}.{name}", getattr(value, name), getattr(rebuilt, name)) for name in _fields(value))
    changes = (find_json_change(a, b, where) for where, a, b in parts)
    return next((change for change in changes if change is not None), None)


def _as_dict(value: object) -> dict[object, object] | None:
    return cast("dict[object, object]", value) if isinstance(value, dict) else None


def _fields(value: Any) -> tuple[str, ...]:
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    if dataclasses.is_dataclass(value):
        return tuple(field.name for field in dataclasses.fields(value))
    return ()


def _equals_its_base(value: object, rebuilt: object) -> bool:
    """Whether it comes back as an equal value of a wider type: a text for a StrEnum, 1.0 for 1."""
    wider = isinstance(value, type(rebuilt)) or (type(value) is int and type(rebuilt) is float)
    return wider and value == rebuilt


def _describe_change(value: object, path: str) -> str:
    if isinstance(value, float):
        return f"{_NO_NAN} - at `$.{path}`"
    name = type(value).__name__
    return f"a {name} would not come back as one; annotate the parameter with its type - at `$.{path}`"
