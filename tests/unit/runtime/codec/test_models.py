"""Models such as pydantic's, paths and unions as arguments and results."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Generic, Literal, NamedTuple, Self, TypeVar

import msgspec
import pytest
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    RootModel,
    SecretStr,
    computed_field,
    field_validator,
    model_validator,
)

from duetime import Scheduler
from duetime.errors import InvalidArguments, InvalidTask
from duetime.runtime.codec.arguments import Arguments
from duetime.runtime.codec.results import encode_result, result_decoder
from duetime.scheduler.task import read_arguments

T = TypeVar("T")
DAY = date(2030, 5, 1)


class Line(BaseModel):
    sku: str
    count: int = Field(default=1, gt=0)


class Order(BaseModel):
    id: int
    lines: list[Line] = []
    day: date | None = None


class Express(Order):
    by: timedelta = timedelta(hours=1)


class Refund(BaseModel):
    kind: Literal["refund"] = "refund"
    amount: Decimal


class Aliased(BaseModel):
    user_id: int = Field(alias="userId")


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    day: date
    sizes: tuple[int, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def total(self) -> int:
        return sum(self.sizes)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Remembering(BaseModel):
    number: int
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @cached_property
    def seen(self) -> float:
        return time.perf_counter()


class Holder(BaseModel):
    inner: Remembering


class Box(BaseModel, Generic[T]):
    item: T


class Login(BaseModel):
    name: str
    password: SecretStr


class Hidden(BaseModel):
    shown: int
    hidden: int = Field(default=0, exclude=True)


class Picky(BaseModel):
    number: int

    @model_validator(mode="after")
    def check(self) -> Self:
        if self.number == 1:
            raise ValueError("it must not be one")
        return self

    @field_validator("number")
    @classmethod
    def look_up(cls, number: int) -> int:
        return {0: 0, 1: 1}[number]


class Point:
    """No model of pydantic's, but it can do the same."""

    def __init__(self, x: int, y: int) -> None:
        self.x, self.y = x, y

    @classmethod
    def model_validate(cls, value: dict[str, int]) -> Self:
        return cls(**value)

    def model_dump(self, **_options: object) -> dict[str, int]:
        return {"x": self.x, "y": self.y}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and (self.x, self.y) == (other.x, other.y)

    __hash__ = None  # type: ignore[assignment]


@dataclass
class Parcel:
    order: Order
    label: Path


class Shelf(msgspec.Struct):
    orders: dict[str, Order]


class Pair(NamedTuple):
    order: Order
    path: Path


def codec(function: Callable[..., Any]) -> Arguments:
    return Arguments(function, task="shop.sell")


def of_type(kind: object) -> Callable[..., Any]:
    def give(value: Any) -> Any:
        return value

    give.__annotations__ |= {"value": kind, "return": kind}
    return give


def refusal(kind: object, value: object) -> str:
    with pytest.raises(InvalidArguments) as refused:
        codec(of_type(kind)).encode((value,), {})
    assert "shop.sell" in str(refused.value)
    assert "\n" not in str(refused.value)
    return str(refused.value)


ORDER = Order(id=7, lines=[Line(sku="a"), Line(sku="b", count=2)], day=DAY)


@pytest.mark.covers("arguments-round-trip")
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Order, ORDER),
        (Order | None, ORDER),
        (Order | None, None),
        (list[Order], [ORDER, Order(id=8)]),
        (dict[str, list[Order]], {"a": [ORDER]}),
        (tuple[Order, int], (ORDER, 1)),
        (Annotated[Order, "what was sold"], ORDER),
        (Order | Refund, Refund(amount=Decimal("1.10"))),
        (Refund | Order, ORDER),
        (list[Order | Refund | None], [ORDER, None, Refund(amount=Decimal(1))]),
        (Order | str, "an order"),
        (Order | str, ORDER),
        (Annotated[Order, "one"] | int, 5),
        (Order | dict[str, int], {"a": 1}),
        (Aliased, Aliased(userId=3)),
        (Strict, Strict(day=DAY, sizes=(1, 2))),
        (Open, Open(size=3)),  # type: ignore[call-arg]
        (Holder, Holder(inner=Remembering(number=1))),
        (Box[Order], Box[Order](item=ORDER)),
        (RootModel[list[int]], RootModel[list[int]]([1, 2])),
        (Parcel, Parcel(ORDER, Path("a/b"))),
        (Shelf, Shelf({"a": ORDER})),
        (Pair, Pair(ORDER, Path("/srv"))),
        (Point, Point(1, 2)),
        (list[Point | None], [Point(1, 2), None]),
        (Path, Path("a/b.txt")),
        (PurePosixPath, PurePosixPath("/a")),
        (Path | None, Path()),
        (set[Path], {Path("a"), Path("b")}),
        (dict[Path, int], {Path("a"): 1}),
        (str | Path, "a"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_model_or_path_of_the_annotated_type_comes_back_as_it_was(kind: object, value: object) -> None:
    give = of_type(kind)
    (returned,), _ = codec(give).decode(codec(give).encode((value,), {}))
    stored, problem = encode_result(value)
    result = None if stored is None else result_decoder(give)(stored)
    assert problem is None
    for found in (returned, result):
        assert type(found) is type(value)
        if not isinstance(value, Holder):  # whose lock is another
            assert found == value


def test_a_model_is_stored_as_it_dumps_itself() -> None:
    arguments = codec(of_type(list[Aliased]))
    assert arguments.encode(([Aliased(userId=3)],), {}) == '{"value":[{"userId":3}]}'


def test_a_dict_that_fits_a_model_is_taken_as_one() -> None:
    give = of_type(list[Order])
    (returned,), _ = codec(give).decode(codec(give).encode(([{"id": "7", "day": "2030-05-01"}],), {}))
    assert returned == [Order(id=7, day=DAY)]


def test_models_are_taken_by_parameters_of_every_kind() -> None:
    def function(first: Order, /, *rest: Order, path: Path = Path("x"), **more: Refund) -> Any:
        return first, rest, path, more

    refund = Refund(amount=Decimal(1))
    args, kwargs = codec(function).decode(codec(function).encode((ORDER, ORDER), {"back": refund}))
    call: Callable[..., Any] = function
    assert call(*args, **kwargs) == (ORDER, (ORDER,), Path("x"), {"back": refund})
    assert "Express would come back as Order - at `$.rest[0]`" in refusal_of(function, ORDER, Express(id=1))


def refusal_of(function: Callable[..., Any], *args: object) -> str:
    with pytest.raises(InvalidArguments) as refused:
        codec(function).encode(args, {})
    return str(refused.value)


@pytest.mark.parametrize(
    ("kind", "value", "end"),
    [
        (Order, {"id": "x"}, "no valid Order: id: Input should be a valid integer, unable to parse string as an integer - at `$.value`"),
        (list[Order], [{"id": 1, "lines": [{"sku": "a", "count": 0}]}], "lines.0.count: Input should be greater than 0 - at `$.value[0]`"),
        (Order, Order.model_construct(id="x"), "id: Input should be a valid integer, unable to parse string as an integer - at `$.value`"),
        (Order, 5, "Input should be an object - at `$.value`"),
        (Picky, {"number": 1}, "no valid Picky: Value error, it must not be one - at `$.value`"),
        (Picky, {"number": 2}, "no valid Picky: KeyError(2) - at `$.value`"),
        (Point, {"z": 1}, "unexpected keyword argument 'z'\") - at `$.value`"),
        (Path, 5, "Expected `str`, got `int` - at `$.value`"),
        (Order | Refund, {"kind": "other"}, "no valid Order: id: Field required; no valid Refund: kind: Input should be 'refund'; amount: Field required - at `$.value`"),
        (Order | int, "x", "no valid Order: Input should be an object; Expected `int`, got `str` - at `$.value`"),
        # What would come back, but not as it was.
        (Order, Express(id=1), "Express would come back as Order - at `$.value`"),
        (list[Order], (Express(id=1),), "Express would come back as Order - at `$.value[0]`"),
        (Parcel, Parcel(Express(id=1), Path()), "Express would come back as Order - at `$.value.order`"),
        (Box[Order], Box[Order](item=Express(id=1)), "Express would come back as Order - at `$.value.item`"),
        (Order | Express, Express(id=1), "Express would come back as Order - at `$.value`"),
        (str | Path, Path("a"), "PosixPath would come back as str - at `$.value`"),
        (Login, Login(name="a", password=SecretStr("b")), "it would come back as another value - at `$.value.password`"),
        (Hidden, Hidden(shown=1, hidden=2), "it would come back as another value - at `$.value.hidden`"),
        (Open, Open(day=DAY), "it would come back as another value - at `$.value.day`"),  # type: ignore[call-arg]
        (Box[Any], Box[Any](item=(1, 2)), "at `$.value.item`"),
        (Box[float | None], Box[float | None](item=float("nan")), "at `$.value.item`"),
        # Where no type says what it is.
        (Any, ORDER, "a Order would not come back as one; annotate the parameter with its type - at `$.value`"),
        (dict, {"a": Path("a")}, "a PosixPath would not come back as one; annotate the parameter with its type - at `$.value.a`"),
        (Order | dict[str, Any], {"when": DAY}, "a date would not come back as one; annotate the parameter with its type - at `$.value.when`"),
        # What cannot be written.
        (Box[Any], Box[Any](item=object()), "PydanticSerializationError(Unable to serialize unknown type: <class 'object'>) - at `$.value`"),
        (Path, Path("\ud800"), "at `$.value`"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_a_model_that_does_not_fit_is_refused_with_its_path(kind: object, value: object, end: str) -> None:
    assert refusal(kind, value).endswith(end)


def test_the_error_of_a_model_does_not_show_the_values() -> None:
    assert "hunter2" not in refusal(Order, {"id": "hunter2"})


def test_the_error_of_a_model_names_a_few_problems() -> None:
    assert refusal(dict[str, Order], {"a": {"lines": [{}] * 9}}).endswith("; and 7 more - at `$.value[...]`")


@pytest.mark.parametrize("payload", ['{"value": {"number": 2}}', '{"value": 1}', "{}"])
def test_a_stored_model_that_is_not_valid_any_more_never_breaks_the_worker(payload: str) -> None:
    with pytest.raises(InvalidArguments, match=r"shop\.sell"):
        codec(of_type(Picky)).decode(payload)


def test_a_class_in_a_union_that_json_can_never_become_is_named() -> None:
    with pytest.raises(InvalidTask, match=r"_thread\.lock is not a type it can make"):
        codec(of_type(Order | threading.Lock().__class__))


def test_equal_models_have_equal_text_where_a_limit_tells_them_apart() -> None:
    arguments = codec(of_type(Order))
    payload = arguments.encode((ORDER,), {})
    assert arguments.value_of(payload, "value") == arguments.value_of(payload.replace(" ", ""), "value")


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        (["path=a/b", 'order={"id": 7}'], (Order(id=7), Path("a/b"))),
        (['{"path": "a/b", "order": {"id": 7, "day": "2030-05-01"}}'], (Order(id=7, day=DAY), Path("a/b"))),
    ],
)
def test_models_and_paths_are_read_from_the_command_line(given: list[str], arguments: object) -> None:
    def ship(order: Order, path: Path | None) -> None: ...

    handler = Scheduler("sqlite://").task(name="ship")(ship).handler
    args, kwargs = read_arguments(handler, given)
    assert handler.arguments.decode(handler.arguments.encode(args, kwargs)) == (arguments, {})


def test_a_result_that_a_model_cannot_write_says_why() -> None:
    assert encode_result([Box[Any](item=object())])[1] == (
        "the result cannot be stored as JSON: Box[Any] cannot be written: "
        "PydanticSerializationError(Unable to serialize unknown type: <class 'object'>)"
    )
    assert "NaN" in (encode_result(Box[float](item=float("nan")))[1] or "")
