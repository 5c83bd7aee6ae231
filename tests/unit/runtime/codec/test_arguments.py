from __future__ import annotations

import enum
import math
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import pytest

from duetime.errors import InvalidArguments, InvalidTask, PayloadTooLarge
from duetime.runtime.codec.arguments import MAX_PAYLOAD, Arguments
from duetime.runtime.codec.results import encode_result

if TYPE_CHECKING:
    from collections import OrderedDict


class Colour(enum.Enum):
    RED = "red"


class Size(enum.StrEnum):
    SMALL = "small"


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Tagged:
    tag: Any


class Line(msgspec.Struct):
    points: list[Point]


class Pair(NamedTuple):
    left: int
    right: str


def nested(deep: int) -> Any:
    value: Any = 1
    for _ in range(deep):
        value = [value]
    return value


def codec(function: Callable[..., Any]) -> Arguments:
    return Arguments(function, task="shop.sell")


def called_with(function: Callable[..., Any], *args: object, **kwargs: object) -> object:
    """Call the function with what comes out of the store."""
    arguments = codec(function)
    positional, by_name = arguments.decode(arguments.encode(args, kwargs))
    return function(*positional, **by_name)


def of_type(kind: object) -> Callable[..., Any]:
    def give(value: Any) -> Any:
        return value

    give.__annotations__["value"] = kind
    return give


@pytest.mark.covers("arguments-round-trip")
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, 2**80),
        (float, 0.1),
        (str, "ünï\u2028"),
        (bytes, b"\x00\xff"),
        (bool, False),
        (datetime, datetime(2030, 5, 1, 12, 30, 0, 1, tzinfo=UTC)),
        (datetime, datetime(2030, 5, 1, 12, 30)),  # noqa: DTZ001 - the user's own value, not a due time
        (date, date(2030, 5, 1)),
        (time, time(12, 30)),
        (timedelta, timedelta(days=3, microseconds=7)),
        (uuid.UUID, uuid.UUID(int=7)),
        (Decimal, Decimal("1.10")),
        (Colour, Colour.RED),
        (Size, Size.SMALL),
        (Point, Point(1, 2)),
        (Line, Line([Point(1), Point(2)])),
        (Pair, Pair(1, "one")),
        (tuple[int, str], (1, "one")),
        (tuple[date, ...], (date(2030, 5, 1),)),
        (set[int], {1, 2}),
        (frozenset[str], frozenset({"a"})),
        (dict[int, str], {1: "one"}),
        (dict[str, list[Point]], {"a": [Point(1)]}),
        (Point | None, None),
        (Literal["a", "b"], "a"),
        (list, [1, "two", None, {"three": [3.5]}]),
        (dict[str, Any], {"a": [1, {"b": True}]}),
        (Any, {"a": [1, 2.5, None, "x"]}),
        (Tagged, Tagged({"a": 1})),
    ],
    ids=str,
)
def test_a_value_of_the_annotated_type_comes_back_as_it_was(kind: object, value: object) -> None:
    returned = called_with(of_type(kind), value)
    assert returned == value
    assert type(returned) is type(value)


@pytest.mark.covers("arguments-round-trip")
def test_every_kind_of_parameter_gets_its_own_argument_back() -> None:
    def function(a: int, /, b: str, c: float = 2.5, *rest: int, d: bool, e: str = "e", **extra: date) -> Any:
        return (a, b, c, rest, d, e, extra)

    day = date(2030, 5, 1)
    assert called_with(function, 1, "b", d=True) == (1, "b", 2.5, (), True, "e", {})
    assert called_with(function, 1, b="b", d=False, e="f") == (1, "b", 2.5, (), False, "f", {})
    assert called_with(function, 1, "b", 3.5, 4, 5, d=True, when=day) == (
        1, "b", 3.5, (4, 5), True, "e", {"when": day},
    )  # fmt: skip
    assert called_with(function, 1, "b", d=True, a=day) == (1, "b", 2.5, (), True, "e", {"a": day})


def test_variadic_parameters_without_a_type_take_plain_values() -> None:
    def function(*rest, **extra):  # type: ignore[no-untyped-def]  # noqa: ANN002, ANN003, ANN202 - the point
        return rest, extra

    assert called_with(function, 1, "two", [3], four=4) == ((1, "two", [3]), {"four": 4})


def test_a_default_is_left_to_the_code_that_runs_and_not_stored() -> None:
    def function(a: int, b: object = math.inf) -> None: ...

    function.__annotations__["b"] = float
    assert codec(function).encode((1,), {}) == '{"a":1}'


@pytest.mark.covers("arguments-round-trip")
@pytest.mark.parametrize(
    ("kind", "value", "path"),
    [
        (int, "1", "$.value"),
        (int, True, "$.value"),
        (int, 1.5, "$.value"),
        (str, 1, "$.value"),
        (Point, Point("x"), "$.value.x"),  # type: ignore[arg-type]
        (list[Point], [Point(1), {"z": 1}], "$.value[1]"),
        (Colour, "blue", "$.value"),
        (float, math.nan, "$.value"),
        (float | None, math.inf, "$.value"),
        (list[float | None], [1.0, -math.inf], "$.value[1]"),
        (Any, {"a": [math.nan]}, "$.value.a[0]"),
        (Any, (1, 2), "$.value"),
        (Any, {1, 2}, "$.value"),
        (Any, {"a": {1: "one"}}, "$.value.a"),
        (Any, [date(2030, 5, 1)], "$.value[0]"),
        (Any, Decimal(1), "$.value"),
        (Any, Point(1), "$.value"),
        (Any, b"x", "$.value"),
        (Any, Colour.RED, "$.value"),
        (list, [(1,)], "$.value[0]"),
        (tuple, ({1},), "$.value[0]"),
        (dict, {1: 2}, "$.value"),
        (dict[str, Any], {"when": datetime(2030, 5, 1, tzinfo=UTC)}, "$.value.when"),
        (Tagged, Tagged((1,)), "$.value.tag"),
        (list[Tagged], [Tagged(1), Tagged(uuid.UUID(int=1))], "$.value[1].tag"),
        (Any, object(), "$.value"),
        (Any, "\ud800", "$.value"),
        (Any, lambda: None, "$.value"),
    ],
    ids=lambda value: "" if isinstance(value, str) and value.startswith("$") else type(value).__name__,
)
def test_what_would_not_come_back_as_it_was_is_refused_with_its_path(
    kind: object, value: object, path: str
) -> None:
    with pytest.raises(InvalidArguments) as refusal:
        codec(of_type(kind)).encode((value,), {})
    text = str(refusal.value)
    assert "shop.sell" in text
    assert text.endswith(f"at `{path}`")


@pytest.mark.covers("deep-values")
@pytest.mark.parametrize("deep", [101, 350, 5_000])
@pytest.mark.parametrize("kind", [Any, list[Any]], ids=["any", "list"])
def test_a_value_that_is_nested_too_deep_is_refused_with_its_path(kind: object, deep: int) -> None:
    def tell(name: str, *, tree: Any) -> None: ...

    tell.__annotations__["tree"] = kind
    with pytest.raises(InvalidArguments, match=r"it is nested more than 100 deep - at `\$\.tree`$"):
        codec(tell).encode(("a",), {"tree": nested(deep)})
    args, kwargs = codec(tell).decode(codec(tell).encode(("a",), {"tree": nested(100)}))
    assert (args, kwargs) == (("a",), {"tree": nested(100)})


@pytest.mark.covers("deep-values")
def test_a_caller_with_little_stack_left_is_told_so() -> None:
    def enqueue(frames: int) -> str:
        return enqueue(frames - 1) if frames else codec(of_type(Any)).encode((nested(100),), {})

    with pytest.raises(InvalidArguments, match="stack"):
        enqueue(sys.getrecursionlimit() - 200)


@pytest.mark.covers("deep-values")
@pytest.mark.parametrize("limit", [4_300, 0], ids=["usual", "raised"])
def test_a_whole_number_that_other_processes_cannot_read_is_refused_with_its_path(limit: int) -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(limit)
    try:
        with pytest.raises(InvalidArguments, match=r"more than 4,300 digits - at `\$\.value`$"):
            codec(of_type(int)).encode((10**5_000,), {})
    finally:
        sys.set_int_max_str_digits(before)


@pytest.mark.parametrize(
    ("args", "kwargs", "hint"),
    [
        ((), {}, "missing a required argument: 'a'"),
        ((1, 2, 3), {}, "too many positional arguments"),
        ((1,), {"c": 3}, "unexpected keyword argument 'c'"),
        ((1,), {"a": 1}, "multiple values for argument 'a'"),
    ],
)
def test_arguments_that_do_not_fit_the_signature_are_refused_as_a_call_would_be(
    args: tuple[object, ...], kwargs: dict[str, object], hint: str
) -> None:
    def function(a: int, b: int = 2) -> None: ...

    with pytest.raises(InvalidArguments, match=hint):
        codec(function).encode(args, kwargs)


def test_what_is_too_large_is_not_searched_for_depth() -> None:
    value = [nested(101), "x" * MAX_PAYLOAD]
    with pytest.raises(PayloadTooLarge):
        codec(of_type(Any)).encode((value,), {})
    assert "bytes as JSON" in (encode_result(value)[1] or "")


def test_arguments_that_are_too_large_are_refused_with_both_sizes() -> None:
    arguments = codec(of_type(str))
    overhead = len('{"value":""}')
    arguments.encode(("x" * (MAX_PAYLOAD - overhead),), {})
    with pytest.raises(PayloadTooLarge, match=r"262,145 bytes.*at most 262,144"):
        arguments.encode(("x" * (MAX_PAYLOAD - overhead + 1),), {})


@pytest.mark.parametrize(
    "payload", ["", "{", "[1]", "null", '{"a": 1, "z": 2}', '{"a": "x"}', "{}", "[" * 100_000]
)
def test_a_stored_text_that_does_not_fit_is_refused_and_never_breaks_the_worker(payload: str) -> None:
    def function(a: int) -> None: ...

    with pytest.raises(InvalidArguments, match=r"shop\.sell"):
        codec(function).decode(payload)


def test_a_parameter_that_json_can_never_become_is_refused_when_the_task_is_made() -> None:
    with pytest.raises(InvalidTask, match="cannot be rebuilt from JSON"):
        codec(of_type(Callable[[], None]))


def test_a_name_that_only_type_checkers_see_is_refused_when_the_task_is_made() -> None:
    def function(a: OrderedDict[str, int]) -> None: ...

    with pytest.raises(InvalidTask, match="not only for type checkers"):
        codec(function)


@pytest.mark.parametrize(
    ("value", "stored"),
    [(None, None), (0, "0"), ("", '""'), ({"a": [1]}, '{"a":[1]}'), (Point(1), '{"x":1,"y":0}')],
)
def test_a_result_is_stored_as_json(value: object, stored: str | None) -> None:
    assert encode_result(value) == (stored, None)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (object(), "as JSON"),
        ("\ud800", "as JSON"),
        ("x" * MAX_PAYLOAD, "262,146 bytes"),
        (nested(101), "nested more than 100 deep"),
        (nested(5_000), "nested more than 100 deep"),
        (10**5_000, "more than 4,300 digits"),
    ],
    ids=["object", "text", "size", "deep", "very deep", "number"],
)
def test_a_result_that_cannot_be_stored_says_why(value: object, why: str) -> None:
    stored, error = encode_result(value)
    assert stored is None
    assert error is not None
    assert why in error
