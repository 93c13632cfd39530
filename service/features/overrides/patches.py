"""The difference between two JSON values as a JSON Patch (RFC 6902)."""

from itertools import chain

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.rules import same_json


def make_patch(before: JsonValue, after: JsonValue, path: str = "") -> list[JsonObject]:
    """Return the operations that turn one value into the other; parts of arrays are compared place by place."""
    if isinstance(before, dict) and isinstance(after, dict):
        gone = [_do("remove", _join(path, name)) for name in before if name not in after]
        added = [_do("add", _join(path, name), value) for name, value in after.items() if name not in before]
        kept = (make_patch(before[name], after[name], _join(path, name)) for name in before if name in after)
        return [*gone, *chain.from_iterable(kept), *added]
    if isinstance(before, list) and isinstance(after, list):
        pairs = enumerate(zip(before, after, strict=False))
        kept = (make_patch(old, new, f"{path}/{place}") for place, (old, new) in pairs)
        gone = [_do("remove", f"{path}/{place}") for place in reversed(range(len(after), len(before)))]
        added = [_do("add", f"{path}/-", value) for value in after[len(before) :]]
        return [*chain.from_iterable(kept), *gone, *added]
    return [] if same_json(before, after) else [_do("replace", path, after)]


def _do(operation: str, path: str, *value: JsonValue) -> JsonObject:
    return {"op": operation, "path": path, **({"value": value[0]} if value else {})}


def _join(path: str, name: str) -> str:
    """Return the JSON Pointer (RFC 6901) of a member."""
    return f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
