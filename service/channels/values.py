"""Values that people type in chats. The desk validates them against the complete schema."""

from typing import Any

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject, canonical_json, parse_json
from sayso.core.records.items import Item
from sayso.core.records.tools import ToolDefinition
from sayso.errors import InvalidJson


def read_value(typed: str, item: Item, definition: ToolDefinition | None) -> JsonValue:
    """Return the value that a person typed: one of the choices, the text where a text is wanted, or JSON.

    What is neither stays a text, so that the desk can say what is wrong with it.
    """
    typed = typed.strip()
    for choice in item.choices or ():
        if typed == choice or typed == canonical_json(choice).decode():
            return choice
    if _takes_text(_find_schema(item, definition), typed):
        return typed
    try:
        return parse_json(typed)
    except InvalidJson:
        return typed


def _find_schema(item: Item, definition: ToolDefinition | None) -> JsonObject | None:
    if item.response_schema is not None or definition is None:
        return item.response_schema
    properties: Any = definition.parameters.get("properties")
    schema = properties.get(item.target_arg) if isinstance(properties, dict) else None
    return schema if isinstance(schema, dict) else None


def _takes_text(schema: JsonObject | None, typed: str) -> bool:
    if schema is None:
        return True
    kind, listed = schema.get("type"), schema.get("enum")
    if isinstance(listed, list) and typed in listed:
        return True
    return kind == "string" or (isinstance(kind, list) and "string" in kind)
