"""Arguments and results that are shown to no one: they are stored as they are, and masked wherever they are read."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Annotated, Any, Final, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints

from duetime.errors import InvalidOption
from duetime.model.job import split_tags
from duetime.model.text import shown

T = TypeVar("T")


class SecretMark:
    """What tells an annotation that is secret."""

    def __repr__(self) -> str:
        return "Secret"


Secret: TypeAlias = Annotated[T, SecretMark()]
"""`Secret[str]` is a `str` whose value is masked wherever it would be shown."""
MASK: Final = "***"
"""What is shown instead."""
RESULT: Final = "return"
"""Stands for the result among the names of arguments."""
_SHORTEST: Final = 4
"""Of how many characters a text must be at least to be searched for in others."""


def is_secret(annotation: object) -> bool:
    """Whether an annotation, or a part of it, is secret: also a field of a dataclass, a struct or a model."""
    return _is_secret(annotation, set())


def _is_secret(annotation: object, seen: set[object]) -> bool:
    marks: Iterable[object] = getattr(annotation, "__metadata__", ())
    if any(isinstance(mark, SecretMark) for mark in marks):
        return True
    parts = [*get_args(annotation)]
    # What an alias or a new type stands for.
    parts += [
        getattr(annotation, name) for name in ("__value__", "__supertype__") if hasattr(annotation, name)
    ]
    shape = get_origin(annotation) or annotation
    if isinstance(shape, type) and shape not in seen:
        seen.add(shape)
        parts += _fields(shape)
    return any(_is_secret(part, seen) for part in parts)


def _fields(shape: type) -> list[object]:
    """Return the annotations of the fields of a class."""
    try:
        return [*get_type_hints(shape, include_extras=True).values()]
    except (NameError, TypeError, AttributeError):
        # Names that cannot be found: what is called secret is taken for secret.
        written = (text for base in shape.__mro__ for text in vars(base).get("__annotations__", {}).values())
        return [Secret if "Secret" in str(text) else text for text in written]


def check_secret(names: object) -> tuple[str, ...]:
    """Return the names of arguments that a user wrote, or raise `InvalidOption`."""
    several = isinstance(names, list | tuple | set | frozenset)
    listed = tuple(cast("Collection[object]", names)) if several else (None,)
    if not all(isinstance(name, str) for name in listed):
        raise InvalidOption(f"secret must be a list of parameters such as ['password'], not {shown(names)}")
    return cast("tuple[str, ...]", listed)


def masks_result(secret: str | None) -> bool:
    """Whether a result is masked, by what is stored of its job."""
    return secret is not None and RESULT in split_tags(secret)


def mask_arguments(arguments: Any, secret: str | None) -> Any:
    """Return arguments by name with those masked that are secret; all of them where they cannot be told apart."""
    if secret is None:
        return arguments
    if not isinstance(arguments, Mapping):
        return MASK
    hidden, given = split_tags(secret), cast("Mapping[str, Any]", arguments)
    return {name: MASK if name in hidden else value for name, value in given.items()}


def mask_payload(payload: str, secret: str | None) -> str:
    """Do the same for arguments as JSON."""
    if secret is None:
        return payload
    try:
        return json.dumps(mask_arguments(json.loads(payload), secret))
    except (ValueError, RecursionError):
        return MASK


def secret_texts(payload: str, names: Collection[str]) -> tuple[str, ...]:
    """Return how the secrets among some arguments may be written, the longest first."""
    try:
        given: object = json.loads(payload)
    except (ValueError, RecursionError):
        return ()
    arguments: Mapping[str, object] = cast("dict[str, object]", given) if isinstance(given, dict) else {}
    texts = {text for name in names for leaf in _leaves(arguments.get(name)) for text in _spellings(leaf)}
    return tuple(sorted((text for text in texts if len(text) >= _SHORTEST), key=len, reverse=True))


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Return a text with these masked."""
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text


def _leaves(value: object) -> Iterator[object]:
    match value:
        case Mapping():
            for item in cast("Mapping[object, object]", value).values():
                yield from _leaves(item)
        case list():
            for item in cast("list[object]", value):
                yield from _leaves(item)
        case None | bool():
            pass
        case _:
            yield value


def _spellings(leaf: object) -> tuple[str, ...]:
    """Return a value as text, and as Python and JSON write it between quotes."""
    return (leaf, repr(leaf)[1:-1], json.dumps(leaf)[1:-1]) if isinstance(leaf, str) else (str(leaf),)
