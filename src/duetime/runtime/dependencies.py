"""What a task declares with `Depends`, read once when it is registered, and what stands in for it in tests.

The marker is FastAPI's, told by its name so that FastAPI is never imported, or `duetime.Depends` where there is none. The
resolver is ours. FastAPI's (`get_dependant`, `solve_dependencies`) is not public: its parameters change between versions,
it needs a `Request` with two exit stacks in its scope, reads every other parameter from that request, and refuses a marker
both in `Annotated` and as the default, which is what keeps `enqueue()` typed.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final, NoReturn, Protocol, TypeAlias

from duetime.errors import InvalidTask
from duetime.model.text import shown

AnyCallable: TypeAlias = Callable[..., Any]

_FRAMEWORKS: Final = ("fastapi.", "starlette.")
_VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Marker:
    """Marks a parameter that no caller gives: each run gets it from a function."""

    dependency: AnyCallable | None
    use_cache: bool


def Depends(dependency: AnyCallable | None = None, *, use_cache: bool = True) -> Any:  # noqa: N802 - FastAPI's name
    """Have each run of a task call a function for this parameter; the same as FastAPI's, where FastAPI is not installed."""
    return Marker(dependency, use_cache)


class Kind(Enum):
    """How a dependency is called."""

    PLAIN = auto()
    COROUTINE = auto()
    GENERATOR = auto()
    ASYNC_GENERATOR = auto()


@dataclass(frozen=True, slots=True)
class Dependency:
    """A function that a run calls for a value, and what that function needs itself."""

    call: AnyCallable
    kind: Kind
    key: Hashable
    """Tells it from others, as tests that override it do."""
    cached: bool
    """Whether a run takes the value that it has already."""
    needs: Mapping[str, Dependency]


class OverrideProvider(Protocol):
    """A FastAPI app, or a scheduler."""

    @property
    def dependency_overrides(self) -> Mapping[Any, AnyCallable]:
        """What is called in place of which dependency."""
        ...


@dataclass(frozen=True, slots=True)
class Overrides:
    """Looks up what stands in for dependencies, at each run: tests come and go."""

    providers: list[OverrideProvider] = field(default_factory=list)

    def of(self, dependency: Dependency) -> Dependency:
        """Return what is to be called in its place."""
        for provider in self.providers:
            if (call := provider.dependency_overrides.get(dependency.key)) is not None:
                return _Reader(f"the override of {_name(dependency.call)}").dependency(call, cached=True)
        return dependency

    @contextmanager
    def of_app(self, app: Any) -> Generator[None]:
        """Ask this app, too, if it is one that has overrides."""
        if not hasattr(app, "dependency_overrides"):
            yield
            return
        self.providers.append(app)
        try:
            yield
        finally:
            self.providers.remove(app)


@dataclass(frozen=True, slots=True)
class TaskDependencies:
    """What a task needs, by parameter."""

    needs: Mapping[str, Dependency]
    signature: inspect.Signature
    """The whole of the function's own."""
    overrides: Overrides

    def join(
        self, args: Sequence[object], kwargs: Mapping[str, object], values: Mapping[str, object]
    ) -> inspect.BoundArguments:
        """Return how to call the function with what was enqueued and what was resolved."""
        given = without_parameters(self.signature, self.needs).bind(*args, **kwargs).arguments
        return inspect.BoundArguments(self.signature, OrderedDict({**given, **values}))


def without_parameters(signature: inspect.Signature, names: Collection[str]) -> inspect.Signature:
    """Return a signature without some of its parameters."""
    kept = [p for p in signature.parameters.values() if p.name not in names]
    return signature.replace(parameters=kept)


def read_dependencies(function: AnyCallable, *, task: str) -> Mapping[str, Dependency]:
    """Return what a task needs by parameter; raise `InvalidTask` for what no run could give it."""
    return _Reader(task).needs(function, strict=False)


class _Reader:
    """Reads the dependencies of one task, and those of each of them."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._path: list[AnyCallable] = []

    def needs(self, call: AnyCallable, *, strict: bool = True) -> dict[str, Dependency]:
        """Return what a callable needs; a dependency, unlike a task, has no other parameters without a default."""
        found: dict[str, Dependency] = {}
        for parameter, hint in self._parameters(call):
            markers = [mark for mark in (*_metadata(hint), parameter.default) if _is_marker(mark)]
            if markers:
                found[parameter.name] = self._marked(markers, parameter.name, hint)
            elif strict and (why := _needs_request(parameter, hint)) is not None:
                self._refuse(
                    f"{_name(call)} takes {parameter.name!r}{why}, and a job has no request. Make it an argument of the "
                    "task, which the endpoint passes to enqueue(), or depend on a function that needs no request"
                )
        return found

    def dependency(self, call: object, *, cached: bool) -> Dependency:
        """Return a callable as a dependency."""
        if not callable(call):
            self._refuse(
                f"Depends({shown(call)}) names no function; give it the function itself, without a call"
            )
        if call in self._path:
            self._refuse(f"{_name(call)} needs itself; let one of them do without the other")
        self._path.append(call)
        needs = self.needs(call)
        self._path.pop()
        key: Hashable = call if isinstance(call, Hashable) else id(call)
        return Dependency(call, _kind(call), key, cached, needs)

    def _marked(self, markers: Sequence[Any], name: str, hint: Any) -> Dependency:
        *others, marker = markers
        if any(other.dependency is not marker.dependency for other in others):
            self._refuse(f"{name!r} has two dependencies; name the same in Annotated and as the default")
        if getattr(marker, "scopes", None):
            self._refuse(f"{name!r} has security scopes, which are of a request; use Depends without them")
        # As in FastAPI, `Depends()` alone means the class that the parameter is annotated with.
        call = marker.dependency or (typing.get_args(hint)[0] if _metadata(hint) else hint)
        return self.dependency(call, cached=marker.use_cache)

    def _parameters(self, call: AnyCallable) -> Iterator[tuple[inspect.Parameter, Any]]:
        try:
            parameters = inspect.signature(call).parameters.values()
        except ValueError:
            return  # Built-in classes such as dict do not tell.
        try:
            hints = typing.get_type_hints(_written(call), include_extras=True)
        except (NameError, TypeError, AttributeError) as error:
            whose = _name(call) if self._path else self._owner
            text = f"the annotations of {whose} cannot be resolved: {error}. Import the names at run time, not only for type checkers"
            if not self._path:
                raise InvalidTask(text) from None  # It is no matter of dependencies.
            self._refuse(text)
        for parameter in parameters:
            if parameter.kind not in _VARIADIC:
                yield parameter, hints.get(parameter.name, parameter.annotation)

    def _refuse(self, why: str) -> NoReturn:
        path = " → ".join([self._owner, *map(_name, self._path)])
        raise InvalidTask(f"the dependencies of {path} cannot be resolved: {why}")


def _is_marker(value: object) -> bool:
    return isinstance(value, Marker) or any(
        f"{kind.__module__}.{kind.__qualname__}" == "fastapi.params.Depends" for kind in type(value).__mro__
    )


def _metadata(hint: object) -> tuple[object, ...]:
    """Return what `Annotated` adds to a type."""
    found: tuple[object, ...] = getattr(hint, "__metadata__", ())
    return found


def _needs_request(parameter: inspect.Parameter, hint: Any) -> str | None:
    """Tell what of a parameter only a request could give."""
    parts: tuple[Any, ...] = (hint, *typing.get_args(hint))
    for part in parts:
        if inspect.isclass(part) and _is_of_framework(part):
            return f" ({part.__name__})"
    if any(_is_of_framework(type(mark)) for mark in (*_metadata(hint), parameter.default)):
        return " out of a request"
    return "" if parameter.default is parameter.empty else None


def _is_of_framework(kind: Any) -> bool:
    return any(f"{base.__module__}.".startswith(_FRAMEWORKS) for base in kind.__mro__)


def dependency_name(dependency: Dependency) -> str:
    """Return the name of its function."""
    return _name(dependency.call)


def _name(call: Any) -> str:
    function = call.func if isinstance(call, functools.partial) else call
    name: str = getattr(function, "__qualname__", type(function).__qualname__)
    return name.rpartition("<locals>.")[2]


def _written(call: AnyCallable) -> Any:
    """Return the function that was written: of a class its constructor, of an instance what calling it means."""
    function: Any = call.func if isinstance(call, functools.partial) else call
    if inspect.isclass(function):
        return function.__init__
    return function if inspect.isroutine(function) else type(function).__call__


def _kind(call: AnyCallable) -> Kind:
    function = inspect.unwrap(_written(call))
    if inspect.isasyncgenfunction(function):
        return Kind.ASYNC_GENERATOR
    if inspect.isgeneratorfunction(function):
        return Kind.GENERATOR
    return Kind.COROUTINE if inspect.iscoroutinefunction(function) else Kind.PLAIN
