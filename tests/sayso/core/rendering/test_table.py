"""No renderer can hide a value, whatever the call."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from demo.model import load_turns
from sayso.core.canonical_json import JsonObject
from sayso.core.rendering.renderers import RENDERERS, render_call
from sayso.core.rendering.views import View, read_text
from sayso.core.text.summaries import list_values

KEYS = (
    *("command", "commands", "script", "cwd", "sql", "query", "database", "url", "method", "headers", "body", "data"),
    *("to", "cc", "bcc", "subject", "attachments", "path", "diff", "old_string", "new_string", "content", "amount"),
    *("currency", "from", "iban", "recipient", "reference", "\u202eto", "a.b", "", '"'),
)
TOOLS = ("shell", "db.query", "http_request", "send_email", "write_file", "pay", "refund_payment", "x", "\u043f\u0430y")
WORDS = (
    *(
        "rm -rf /",
        "sudo",
        "|",
        "&&",
        ";",
        "\n",
        "'",
        '"',
        "\\",
        "$(",
        "`",
        ")",
        "(",
        ">",
        "/etc/x",
        "#",
        "EOF",
        "sh -c",
    ),
    *("DELETE FROM t", "UPDATE t SET a=1", "WHERE", "OR", "1=1", "--", "/*", "*/", "WITH x AS", "DROP TABLE t", "$$"),
    *("https://a.example/x", "https://b@c.example", "http://[", "ann@example.com", '"b@c.de" <d@e.fr>', "EUR", "12.50"),
    *("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b", "DE89370400440532013000", "p\u0430ypal", "\u200b", " " * 20, "\n" * 6),
)
TEXTS = st.lists(st.sampled_from(WORDS) | st.text(max_size=4), max_size=6).map(" ".join)
VALUES = st.recursive(
    TEXTS | st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner),
    max_leaves=6,
)
ARGS = st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), VALUES, max_size=6)


@given(tool=st.sampled_from(TOOLS), args=ARGS)
def test_every_value_appears_once_and_as_stored(tool: str, args: JsonObject) -> None:
    check_complete(render_call(tool, args), args)


EXAMPLES: dict[str, tuple[str, JsonObject]] = {
    "shell": ("run", {"command": "rm -rf x; ls", "cwd": "/srv"}),
    "sql": ("db", {"sql": "DELETE FROM t WHERE a=1 OR b=2"}),
    "http": ("fetch", {"url": "https://example.com/x", "headers": {"a": "b"}}),
    "mail": ("send", {"to": ["a@example.com"], "bcc": "b@example.com", "body": "Hello\n"}),
    "file": ("edit_file", {"path": "a.py", "old_string": "x", "new_string": "y"}),
    "money": ("refund", {"amount": 250, "currency": "EUR", "to": "DE89370400440532013000"}),
}


@given(extra=ARGS)
def test_no_renderer_drops_a_value_beside_its_own(extra: JsonObject) -> None:
    for tool, own in EXAMPLES.values():
        args = {**extra, **own}
        check_complete(render_call(tool, args), args)


@pytest.mark.parametrize("name", RENDERERS)
def test_each_renderer_takes_its_call(name: str) -> None:
    tool, args = EXAMPLES[name]
    assert render_call(tool, args).renderer == name


def test_recorded_calls_are_rendered_in_full() -> None:
    for turn in load_turns():
        schemas = {tool.name: tool.parameters for tool in turn.tools}
        for call in turn.calls:
            view = render_call(call.name, call.arguments, schemas.get(call.name))
            check_complete(view, call.arguments)
            assert view.renderer == ("money" if "transfer" in call.name else "mail" if "mail" in call.name else "tree")


@pytest.mark.parametrize("text", ["p\u0430ypal", "a\u200bb", "x\u202ey", "\x1b[2J"])
def test_deceptive_characters_are_a_severe_flag(text: str) -> None:
    view = render_call("lookup", {"id": text})
    assert view.severe
    assert not render_call("lookup", {"id": "Zürich"}).flags


def test_call_that_fails_to_render_becomes_a_flagged_tree() -> None:
    view = render_call("fetch", {"url": "http://[x", "method": "GET"})
    assert (view.renderer, view.severe) == ("tree", True)
    assert [row.path for row in view.rest] == ["url", "method"]


def test_tree_names_the_most_telling_value() -> None:
    assert render_call("book_hotel", {"nights": 2}).headline == "book_hotel"
    assert render_call("open_project", {"mode": "r", "path": "/Foo/Bar"}).headline == "open_project: path /Foo/Bar"


def check_complete(view: View, args: JsonObject) -> None:
    """Check that the rows are exactly the values of the call, each with its whole stored text."""
    rows = {row.path: row.text for row in (*view.notable, *view.body, *view.rest)}
    leaves = list_values(args) if args else []
    assert len(rows) == len(view.notable) + len(view.body) + len(view.rest) == len(leaves)
    for leaf, stored in zip(leaves, flatten(args) if args else [], strict=True):
        assert rows[leaf.path] in (leaf.text, stored)
        assert isinstance(stored, str) is not leaf.literal
        assert leaf.literal or read_text(leaf) == stored


def flatten(value: JsonValue) -> list[JsonValue]:
    """Return all scalars and empty values in order."""
    children = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [one for child in children for one in flatten(child)] if children else [value]
