"""Requests with schemas, JSON or rules that are built to cost as much as possible."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

SUSPENSIONS, _RUNS, _RULES = "/api/v1/suspensions", "/api/v1/runs", "/api/v1/policy/check"
_BODY_BYTES = 262_000
_STATE_BYTES = 5_700_000


class Attempt(NamedTuple):
    """One hostile request."""

    name: str
    path: str
    body: bytes


def list_attempts() -> Iterator[Attempt]:
    """Yield requests with schemas, JSON or rules that are built to cost as much as possible."""
    for name, schema, args in _list_schemas():
        yield Attempt(f"schema: {name}", SUSPENSIONS, _request_call(schema, args))
    texts = {
        "lists": b'{"a":[' + b"[]," * (_STATE_BYTES // 3) + b"[]]}",
        "texts": b'{"a":[' + b'"",' * (_STATE_BYTES // 3) + b'""]}',
        "escapes": b'{"a":"' + b"\\\\" * (_STATE_BYTES // 2) + b'"}',
        "unknown members": json.dumps({f"k{i}": 1 for i in range(19_000)}).encode(),
        "calls of nothing": b'{"calls":[' + b"{}," * (_BODY_BYTES // 3) + b"{}]}",
        "a long key": json.dumps({"é" * 60_000: [0] * 19_000}, ensure_ascii=False).encode(),
    }
    for name, body in texts.items():
        yield Attempt(f"JSON: {name}", SUSPENSIONS, body)
    run = {"agent": "demo", "input": "x" * 100_000, "context": {"x": list(range(18_000))}}
    yield Attempt("JSON: a large context", _RUNS, json.dumps(run).encode())
    conditions = "".join(f"- {{id: r{i}, action: deny, when: 'args.a > {i}'}}\n" for i in range(2_000))
    rules = {
        "lists": "rules: [" + "[]," * 60_000 + "]",
        "conditions": f"version: 1\ndefault: deny\nrules:\n{conditions}",
        "depth": "[" * 200_000,
        "aliases": "a: &a [x,x]\n" + "".join(f"b{i}: &b{i} [*a,*a,*a]\n" for i in range(5_000)),
        "quotes": "'" * 250_000,
    }
    for name, text in rules.items():
        yield Attempt(f"rules: {name}", _RULES, json.dumps({"text": text}).encode())


def _list_schemas() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    several = {"anyOf": [{"required": ["x"], "properties": {"x": {"$ref": "#/$defs/a"}}}] * 3}
    deep: Any = 1
    for _ in range(24):
        deep = {"x": deep}
    doubled = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(25)}
    yield "nothing hostile", {"type": "object"}, {}
    yield "recursion", {"$defs": {"a": several}, "$ref": "#/$defs/a"}, deep
    yield "doubled references", {"$defs": {**doubled, "d25": {"type": "string"}}, "$ref": "#/$defs/d0"}, {"a": 1}
    yield (
        "many alternatives",
        {"properties": {"x": {"items": {"anyOf": [{"type": "string"}] * 30}}}},
        {"x": [1] * 15_000},
    )
    yield "many properties", {"properties": {f"p{i}": {"type": "string"} for i in range(6_000)}}, {"p1": 1}
    yield "repeated pattern", {"properties": {"x": {"pattern": "((a{50}){50}){4}"}}}, {"x": "a" * 200_000}
    yield "looking pattern", {"properties": {"x": {"pattern": "^(?=a)(a|a|aa)*$"}}}, {"x": "a" * 200_000 + "b"}
    yield "long enum", {"properties": {"x": {"enum": list(range(8_000))}}}, {"x": "z"}
    yield "unique items", {"properties": {"x": {"uniqueItems": True}}}, {"x": [{"a": i} for i in range(8_000)]}
    yield "many values", {"type": "object"}, {"x": list(range(19_000))}
    yield "many keys", {"type": "object"}, {f"é{i}": i for i in range(15_000)}
    yield "many fractions", {"type": "object"}, {"x": [1.5e30] * 19_000}


def _request_call(schema: dict[str, Any], args: dict[str, Any]) -> bytes:
    call = {"tool": "t", "args": args, "definition": {"parameters": schema}}
    return json.dumps({"mode": "poll", "calls": [call]}).encode()
