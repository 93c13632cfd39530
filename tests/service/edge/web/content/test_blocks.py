from hypothesis import given, settings
from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.rendering.renderers import render_call
from sayso.core.text.summaries import list_values
from service.edge.web.content.blocks import Block, make_blocks
from service.edge.web.content.diffs import MOST_LINES
from tests.sayso.core.rendering.test_table import ARGS

SCHEMA: JsonObject = {
    "$defs": {"line": {"type": "object", "properties": {"qty": {"type": "integer", "title": "Pieces"}}}},
    "properties": {
        "order_id": {"type": "string", "title": "Order Id"},
        "amount": {"type": "number", "title": "To pay"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
        "to": {"type": "object", "properties": {"a.b": {"type": "string", "title": "Street"}}},
    },
}


def list_blocks(args: JsonObject, schema: JsonObject | None = None) -> list[Block]:
    blocks = make_blocks(render_call("book", args, schema), schema)
    return [*blocks.first, *blocks.rest]


@settings(deadline=None)
@given(ARGS)
def test_every_value_is_in_one_block(args: JsonObject) -> None:
    blocks = list_blocks(args)
    found = sorted(path for block in blocks for path in block.paths)
    assert found == (sorted(leaf.path for leaf in list_values(args)) if args else [])
    for block in blocks:
        inside = [value for row in block.table for cell in row for value in cell.values]
        assert not block.columns or sorted(inside) == sorted(block.values)


def test_lists_of_plain_values_are_one_block() -> None:
    assert [block.cells for block in list_blocks({"tags": ["a", 1, None], "m": [[1, 2], [3]], "e": []})] == [
        ["tags", "[a, 1, null]"],
        ["m[0]", "[1, 2]"],
        ["m[1]", "[3]"],
        ["e", "[]"],
    ]


def test_lists_that_a_line_would_blur_keep_a_row_for_each_value() -> None:
    mixed: JsonObject = {
        "a": ["x, y"],
        "b": ["two\nlines", "z"],
        "c": [{"k": 1}, 2],
        "d": [{"k": 1}],
        "e": [{}, {"k": 1}],
    }
    assert all(len(block.values) == 1 for block in list_blocks(mixed))
    assert [block.key for block in list_blocks({"lines": [{f"k{place}": 1} for place in range(9)]})] == [
        "k" + str(place) for place in range(9)
    ]


def test_table_has_every_key_of_its_objects() -> None:
    (table,) = list_blocks({"lines": [{"a": 1, "b.c": 2}, {"b.c": 3, "a": ""}, {"a": 4}]})
    assert [column.key for column in table.columns] == ["a", '["b.c"]']
    assert table.cells == ["lines", "a", '["b.c"]', "1", "2", '""', "3", "4", ""]


def test_table_has_the_plain_lists_of_its_objects() -> None:
    statements: list[JsonValue] = [
        {"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject"], "Resource": "arn:aws:s3:::artifacts/*"},
        {"Effect": "Allow", "Action": "iam:PassRole", "Resource": "*"},
    ]
    (version, table) = list_blocks({"Version": "2012-10-17", "Statement": statements})
    assert version.cells == ["Version", "2012-10-17"]
    assert table.cells == [
        *("Statement", "Effect", "Action", "Resource"),
        *("Allow", "[s3:GetObject, s3:PutObject]", "arn:aws:s3:::artifacts/*"),
        *("Allow", "iam:PassRole", "*"),
    ]


def test_list_of_a_table_that_a_line_would_blur_keeps_rows_and_lines() -> None:
    entries: list[JsonValue] = [{"to": ["a, b"], "cc": ["c", "d"]}, {"to": ["e"], "cc": ["f"]}]
    assert [block.cells[1] for block in list_blocks({"mails": entries})] == ["a, b", "[c, d]", "[e]", "[f]"]


def test_titles_come_from_the_schema_unless_they_repeat_the_name() -> None:
    args: JsonObject = {"order_id": "A", "amount": 1, "lines": [{"qty": 1}, {"qty": 2}], "to": {"a.b": "x"}, "new": 1}
    blocks = {block.paths[0]: block for block in list_blocks(args, SCHEMA)}
    assert {path: block.title for path, block in blocks.items() if block.title} == {
        "amount": "To pay",
        'to["a.b"]': "Street",
    }
    assert [column.title for column in blocks["lines[0].qty"].columns] == ["Pieces"]


def test_texts_of_a_list_of_edits_are_compared_in_pairs() -> None:
    edits: list[JsonValue] = [
        {"old_string": "retries = 3", "new_string": "retries = 5"},
        {"old_string": "gone\n", "new_string": ""},
        {"old_string": "", "new_string": '""'},
    ]
    blocks = list_blocks({"file_path": "a.py", "edits": edits})
    assert [block.cells for block in blocks[1:]] == [
        ["edits[0].old_string → edits[0].new_string", "retries = 3retries = 5"],
        ["edits[1].old_string → edits[1].new_string", "gone↵\n"],
        ["edits[2].old_string → edits[2].new_string", '""'],
    ]
    assert [[line.state for part in block.diff for line in part.lines] for block in blocks[1:]] == [
        ["removed", "added"],
        ["removed"],
        ["added"],
    ]


def test_many_edits_beyond_the_budget_are_shown_apart() -> None:
    edits: list[JsonValue] = [{"old": f"a {place}", "new": f"b {place}"} for place in range(MOST_LINES)]
    blocks = list_blocks({"path": "a.py", "edits": edits})
    assert sum(len(block.values) == 2 for block in blocks) == MOST_LINES // 2
    assert sum(len(block.values) for block in blocks) == 1 + 2 * MOST_LINES
