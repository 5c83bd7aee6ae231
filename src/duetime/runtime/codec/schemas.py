"""JSON Schemas of arguments, for those who have not the code."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePath
from typing import Any, Final

import msgspec

from duetime.runtime.codec.json_values import ENCODE_ERRORS, is_model, plain_values, union_members

_DEFINITIONS: Final = "#/$defs/{name}"


def schema_of(
    shape: type[msgspec.Struct], defaults: Mapping[str, object], *, secret: Collection[str] = ()
) -> dict[str, Any]:
    """Return the schema of a struct, with these defaults; of a type that has none it says nothing."""
    hoisted: dict[str, Any] = {}

    def of_custom(kind: Any) -> dict[str, Any]:
        if issubclass(kind, PurePath):
            return {"type": "string", "format": "path"}
        if (members := union_members(kind)) is not None:
            found, more = msgspec.json.schema_components(members, schema_hook=of_custom)
            hoisted.update(more)
            return {"anyOf": [*found]}
        if not (is_model(kind) and callable(getattr(kind, "model_json_schema", None))):
            return {}
        own: dict[str, Any] = kind.model_json_schema(by_alias=True)
        hoisted.update(own.pop("$defs", {}))
        return own

    try:
        (_,), named = msgspec.json.schema_components(
            [shape], schema_hook=of_custom, ref_template=_DEFINITIONS
        )
        schema: dict[str, Any] = named.pop(shape.__name__)
    except Exception:  # noqa: BLE001 - a model of the user's may raise anything
        hoisted, named = {}, {}
        schema = {"type": "object", "properties": {name: {} for name in shape.__struct_fields__}}
    properties: dict[str, Any] = schema.get("properties", {})
    for name, default in defaults.items():
        try:
            properties[name]["default"] = plain_values(default)
        except ENCODE_ERRORS:
            continue
    for name in [name for name in secret if name in properties]:
        properties[name] = {key: value for key, value in properties[name].items() if key != "default"}
        properties[name]["writeOnly"] = True
    schema.pop("title", None)
    if definitions := {**named, **hoisted}:
        schema["$defs"] = definitions
    return schema
