"""Read what comes in into strict models, and say of each thing that does not fit where it is and what is wrong."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from sayso.canonical_json import parse_json
from sayso.errors import InvalidInput
from sayso.records.decisions import DIGEST_PATTERN
from sayso.records.freezes import SCOPE_PATTERN
from sayso.records.tool_names import NAME_CHARACTERS, NAME_PATTERN

_LISTED = 20
_SPOKEN = 3
_LONGEST_WORD = 80

_PLAIN = {
    "missing": "is missing; add it",
    "extra_forbidden": "is not known here; remove it",
    "model_attributes_type": "is not an object; send one",
    "model_type": "is not an object; send one",
    "json_invalid": "is not JSON; correct it",
    "timezone_aware": "has no zone; write it as 2026-11-21T12:00:00Z",
}

_SHAPES = {
    SCOPE_PATTERN: "is no scope; write all, agent:<name> or tool:<name>",
    NAME_PATTERN: f"has a character that no tool's name may have; rename the tool with {NAME_CHARACTERS}",
    DIGEST_PATTERN: "is no digest; send the item's own, 64 of 0-9 and a-f",
}
"""What is said of a text that does not have the shape it should, instead of the expression."""

Model = TypeVar("Model", bound=BaseModel)


def read_body(raw: bytes, model: type[Model]) -> Model:
    """Return the one JSON object in `raw` as `model`; raises `InvalidInput` with every fault of it."""
    parsed: JsonValue = parse_json(raw)
    try:
        return model.model_validate(parsed)
    except ValidationError as error:
        raise misfit(error.errors(include_url=False, include_input=False), "$") from None


def misfit(errors: Sequence[Mapping[str, Any]], root: str | None = None) -> InvalidInput:
    """Return the one error that tells of all the faults pydantic found, without repeating what was sent."""
    if any(
        error["type"] == "too_short" for error in errors
    ):  # a list is said to be too short also where something in it does not fit
        around = {tuple(error["loc"][:depth]) for error in errors for depth in range(len(error["loc"]))}
        errors = [error for error in errors if error["type"] != "too_short" or tuple(error["loc"]) not in around]
    faults = [_describe_fault(error, root) for error in errors[:_LISTED]]
    spoken = "; ".join(f"{fault['path']} {fault['message']}" for fault in faults[:_SPOKEN])
    more = f" (and {len(errors) - _SPOKEN} more)" if len(errors) > _SPOKEN else ""
    return InvalidInput(f"This does not fit: {spoken}{more}. Correct it and send it again.", errors=faults)


def _describe_fault(error: Mapping[str, Any], root: str | None) -> dict[str, str]:
    plain = _PLAIN.get(error["type"]) or _SHAPES.get(str(error.get("ctx", {}).get("pattern")))
    said = str(error["msg"]).removeprefix("Value error, ")
    message = plain or said[:1].lower() + said[1:].rstrip(".")
    return {"path": _write_path(error["loc"], root), "message": message}


def _write_path(place: Iterable[str | int], root: str | None) -> str:
    """Write a place as `$.args.amount` in a body, as `query.limit` elsewhere."""
    words = list(place)
    if root is None:
        first, *words = words or ["body"]
        root = "$" if first == "body" else str(first)
    return root + "".join(f"[{word}]" if isinstance(word, int) else f".{str(word)[:_LONGEST_WORD]}" for word in words)
