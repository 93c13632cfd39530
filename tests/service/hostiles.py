"""What an attacker sends to keep the service from answering."""

from typing import Any

RECURSIVE: dict[str, Any] = {
    "$defs": {"a": {"anyOf": [{"required": ["x"], "properties": {"x": {"$ref": "#/$defs/a"}}}] * 3}},
    "$ref": "#/$defs/a",
}
"""Small and within every bound; every level of the value triples the work."""

ALIASES = "a: &a [x, x]\n" + "".join(f"b{n}: &b{n} [*a, *a, *a]\n" for n in range(3_000))
BRACKETS = "rules: [" + "[]," * 60_000 + "]"
CONDITIONS = "version: 1\ndefault: deny\nrules:\n" + "".join(
    f"- {{id: r{n}, action: deny, when: 'args.a > {n} && args.b.exists(x, x == {n})'}}\n" for n in range(2_000)
)


def deep(levels: int) -> Any:
    """Return a value that fits `RECURSIVE` up to its last level."""
    value: Any = {"y": 1}
    for _ in range(levels):
        value = {"x": value}
    return value
