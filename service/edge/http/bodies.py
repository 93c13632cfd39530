"""Request bodies: parse JSON into strict models, and name the place and problem of every fault."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from sayso.core.canonical_json import parse_json
from sayso.core.records.decisions import DIGEST_PATTERN
from sayso.core.records.envelopes import ARGUMENT_PATTERN, FREE_PATTERN
from sayso.core.records.freezes import SCOPE_PATTERN
from sayso.core.records.tools import NAME_CHARACTERS, NAME_PATTERN
from sayso.errors import InvalidInput

_MAX_IN_SENTENCE = 3
_MAX_NAME_CHARS = 80

_PLAIN = {
    "missing": "is missing; add it",
    "extra_forbidden": "is not known here; remove it",
    "model_attributes_type": "is not an object; send one",
    "model_type": "is not an object; send one",
    "json_invalid": "is not JSON; correct it",
    "timezone_aware": "has no zone; write it as 2026-11-21T12:00:00Z",
}

_SHAPES = {  # messages in place of regular expressions
    SCOPE_PATTERN: "is no scope; write all, agent:<name> or tool:<name>",
    NAME_PATTERN: f"has a character that no tool's name may have; rename the tool with {NAME_CHARACTERS}",
    ARGUMENT_PATTERN: "is no argument; write it as args.customer",
    FREE_PATTERN: "is no argument; write it as args.customer, or args for all",
    DIGEST_PATTERN: "is no digest; send the item's own, 64 of 0-9 and a-f",
}

Model = TypeVar("Model", bound=BaseModel)


def read_body(raw: bytes, model: type[Model]) -> Model:
    """Parse a JSON body as `model`; raises `InvalidInput` with every fault."""
    parsed: JsonValue = parse_json(raw)
    try:
        return model.model_validate(parsed)
    except ValidationError as error:
        raise misfit(error.errors(include_url=False, include_input=False), "$") from None


def misfit(errors: Sequence[Mapping[str, Any]], root: str | None = None) -> InvalidInput:
    """Return one error with all of pydantic's faults, without the submitted values."""
    if any(error["type"] == "too_short" for error in errors):  # also reported for a list with an invalid element
        around = {tuple(error["loc"][:depth]) for error in errors for depth in range(len(error["loc"]))}
        errors = [error for error in errors if error["type"] != "too_short" or tuple(error["loc"]) not in around]
    faults: list[dict[str, str]] = []
    for error in errors[:20]:
        plain = _PLAIN.get(error["type"]) or _SHAPES.get(str(error.get("ctx", {}).get("pattern")))
        text = str(error["msg"]).removeprefix("Value error, ")
        message = plain or text[:1].lower() + text[1:].rstrip(".")
        faults.append({"path": _format_path(error["loc"], root), "message": message})
    sentence = "; ".join(f"{fault['path']} {fault['message']}" for fault in faults[:_MAX_IN_SENTENCE])
    more = f" (and {len(errors) - _MAX_IN_SENTENCE} more)" if len(errors) > _MAX_IN_SENTENCE else ""
    return InvalidInput(f"This does not fit: {sentence}{more}. Correct it and send it again.", errors=faults)


def _format_path(loc: Iterable[str | int], root: str | None) -> str:
    parts = [part for part in loc if part != "[key]"]  # the key itself stands before it
    if root is None:
        first, *parts = parts or ["body"]
        root = "$" if first == "body" else str(first)
    return root + "".join(f"[{part}]" if isinstance(part, int) else f".{str(part)[:_MAX_NAME_CHARS]}" for part in parts)
