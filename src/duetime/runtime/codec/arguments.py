"""Arguments between a function's signature and JSON: refused when they do not fit, rebuilt by type."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from duetime.errors import InvalidArguments, InvalidOption, InvalidTask, PayloadTooLarge
from duetime.model.secrets import MASK, RESULT, is_secret, secret_texts, without_secrets
from duetime.model.task import JobOptionValues
from duetime.model.text import MAX_DEPTH, beyond_bounds
from duetime.runtime.codec.json_values import (
    ENCODE_ERRORS,
    STORABLE_TYPES,
    custom_types,
    encode_in_order,
    encode_json,
    encode_problem,
    is_readable,
    json_decoder,
    plain_values,
    readable_type,
)
from duetime.runtime.codec.round_trip import NO_NAN, change_finders, find_nan
from duetime.runtime.codec.schemas import schema_of
from duetime.runtime.dependencies import without_parameters

if TYPE_CHECKING:
    from collections import OrderedDict

MAX_PAYLOAD = 256 * 1024

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

_astuple = msgspec.structs.astuple


class Arguments:
    """The codec of one function's parameters."""

    def __init__(
        self, function: Callable[..., Any], *, task: str, without: Collection[str] = frozenset()
    ) -> None:
        """`without`: parameters that are no arguments, because each run resolves them."""
        self._task = task
        self._signature = without_parameters(inspect.signature(function), without)
        hints = _type_hints(function, task)
        self._hints = {name: hint for name, hint in hints.items() if name not in without}
        parameters = self._signature.parameters.values()
        self._simple = all(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
        self._plain = self._simple and all(p.default is p.empty for p in parameters)
        self._shape, self._decoder = self._build_codec()
        self.secrets: frozenset[str] = frozenset(
            name for name, hint in self._hints.items() if is_secret(hint)
        )
        """The parameters whose values are masked where they are shown, and `return` for the result."""
        self._checks = tuple(
            (p.name, find) for p in parameters for find in change_finders(self._hints.get(p.name, Any))
        )

    def encode(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> str:
        """Return the JSON object for a call, or raise `InvalidArguments` naming the path of the bad value."""
        try:
            # A struct takes its fields as such a function takes its arguments, in a tenth of the time.
            given = self._shape(*args, **kwargs) if self._simple else self._bind(args, kwargs)
        except TypeError:
            given = self._bind(args, kwargs)
        try:
            raw = encode_json(given)
        except ENCODE_ERRORS as error:
            raise self._unfit(given, encode_problem(error)) from None
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
            if self._checks:
                self._check_changes(given, rebuilt)
            if self.secrets:
                self._check_masks(given)
            if b"null" in raw and (path := find_nan(plain_values(given), "$")) is not None:
                raise self._misfit(f"{NO_NAN} - at `{path}`")
        except msgspec.ValidationError as error:
            raise self._misfit(
                without_secrets(str(error), secret_texts(raw.decode(), self.secrets))
            ) from None
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
        return encode_in_order(value).decode()

    def check_named(self, parameter: str, *, by: str) -> None:
        """Raise `InvalidOption` unless each call has a value of a parameter, named `by` an option, that can be told from others."""
        found = self._signature.parameters.get(parameter)
        if found is None or found.kind in _VARIADIC:
            raise InvalidOption(f"{by} is not a parameter of {self._task}{self._signature}")
        if parameter in self.secrets:
            raise InvalidOption(
                f"{by} of {self._task} is secret, and limits and locks are shown; name another argument"
            )
        try:
            encode_json(None if found.default is found.empty else found.default)
        except ENCODE_ERRORS as error:
            text = f"{by} of {self._task} has a default that is not JSON: {error}"
            raise InvalidOption(text) from None

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments, by parameter name."""
        parameters = self._signature.parameters.values()
        defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        return schema_of(self._shape, defaults, secret=self.secrets)

    def hide(self, names: Collection[str]) -> None:
        """Have the values of these parameters masked, too; raise `InvalidOption` for one that there is not."""
        known = {*self._signature.parameters, RESULT}
        if unknown := [name for name in names if name not in known]:
            raise InvalidOption(f"secret={unknown[0]!r} is not a parameter of {self._task}{self._signature}")
        self.secrets |= frozenset(names)

    def _bind(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> msgspec.Struct:
        try:
            return self._shape(**self._signature.bind(*args, **kwargs).arguments)
        except TypeError as error:
            text = f"{self._task}{self._signature} cannot be called with these arguments: {error}"
            options = JobOptionValues.__optional_keys__ - self._signature.parameters.keys()
            if meant := sorted(options.intersection(kwargs)):
                text += f"; {meant[0]} is an option: task.options({meant[0]}=...).enqueue(...)"
            raise InvalidArguments(text) from None

    def _build_codec(self) -> tuple[type[msgspec.Struct], msgspec.json.Decoder[Any]]:
        fields: list[tuple[str, Any, Any] | tuple[str, Any]] = []
        for parameter in self._signature.parameters.values():
            kind: Any = readable_type(self._hints.get(parameter.name, Any))
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
            decoder = json_decoder(shape)
            unknown = next((kind for kind in custom_types(shape) if not is_readable(kind)), None)
        except (TypeError, ValueError) as error:
            raise self._unusable(str(error)) from None
        if unknown is not None:
            raise self._unusable(f"{unknown.__module__}.{unknown.__qualname__} is not a type it can make")
        return shape, decoder

    def _unusable(self, why: str) -> InvalidTask:
        return InvalidTask(
            f"the parameters of {self._task}{self._signature} cannot be rebuilt from JSON: {why}. "
            f"Use {STORABLE_TYPES}, or leave out the annotation"
        )

    def _unfit(self, given: msgspec.Struct, problem: str) -> InvalidArguments:
        """Return the error for arguments that cannot be stored, with the path of the first that is to blame."""
        for name, value in _given_arguments(given):
            try:
                found = beyond_bounds(encode_json(value))
            except ENCODE_ERRORS as error:
                found = encode_problem(error)
            if found is not None:
                return self._misfit(f"{found} - at `$.{name}`")
        return self._misfit(problem)

    def _check_changes(self, given: msgspec.Struct, rebuilt: object) -> None:
        """Refuse what would silently come back as something else."""
        for name, find_change in self._checks:
            if (value := getattr(given, name)) is not msgspec.UNSET:
                variadic = self._signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
                was = list(cast("tuple[object, ...]", value)) if variadic else value
                if (change := find_change(was, getattr(rebuilt, name), name)) is not None:
                    hidden = f"it would come back as something else - at `$.{name}`"
                    raise self._misfit(hidden if name in self.secrets else change)

    def _check_masks(self, given: msgspec.Struct) -> None:
        """Refuse a secret that was read back masked."""
        for name in self.secrets:
            if getattr(given, name, None) == MASK:
                raise self._misfit(f"{name!r} is masked; give its value in place of {MASK}")

    def _misfit(self, detail: str) -> InvalidArguments:
        return InvalidArguments(f"arguments of {self._task}{self._signature} do not fit: {detail}")


def _given_arguments(arguments: msgspec.Struct) -> Iterator[tuple[str, object]]:
    """Return the arguments of a call by name, without those that were left out."""
    for name in arguments.__struct_fields__:
        if (value := getattr(arguments, name)) is not msgspec.UNSET:
            yield name, value


def _type_hints(function: Callable[..., Any], task: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        text = f"the annotations of {task} cannot be resolved: {error}. Import the names at run time, not only for type checkers"
        raise InvalidTask(text) from None
